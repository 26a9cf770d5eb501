package progress

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"
)

func TestPrinter_PrintsNewReasonsAndNamesTheOtherSteps(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := NewPrinter(&out, func() time.Time { return now }, Timeline)
	for _, step := range []string{"a", "b", "c"} {
		p.Begin(step)
	}
	now = now.Add(2 * time.Second)
	p.Waiting("a", "0 of 1 pods ready")
	now = now.Add(2 * time.Second)
	p.Waiting("b", "0 of 1 pods ready")
	p.Waiting("c", "0 of 1 pods ready")
	now = now.Add(2 * time.Second)
	p.Waiting("c", "0 of 1 pods ready")
	p.Done("a", "ready")
	p.Waiting("a", "too late")
	now = now.Add(2 * time.Second)
	p.Waiting("b", "0 of 1 pods ready: no image")
	p.Failed("b", "failed")
	want := "" +
		"  …   2.0s  a: 0 of 1 pods ready\n" +
		"  …   4.0s  b: 0 of 1 pods ready\n" +
		"  …   4.0s  still waiting for a\n" +
		"  …   6.0s  c: 0 of 1 pods ready\n" +
		"  …   6.0s  still waiting for a, b\n" +
		"  ✓   6.0s  a: ready (6.0s)\n" +
		"  …   8.0s  b: 0 of 1 pods ready: no image\n" +
		"  …   8.0s  still waiting for c\n" +
		"  ✗   8.0s  b: failed (8.0s)\n"
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestPrinter_RepeatsAReasonThatDoesNotChange(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := NewPrinter(&out, func() time.Time { return now }, Timeline)
	p.Begin("a")
	for range 2 {
		p.Waiting("a", "0 of 1 pods ready")
		now = now.Add(15 * time.Second)
	}
	want := "  …   0.0s  a: 0 of 1 pods ready\n  …  15.0s  a: 0 of 1 pods ready\n"
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestPrinter_ColumnsShowHowLongStepsTook(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := NewPrinter(&out, func() time.Time { return now }, Columns)
	now = now.Add(time.Minute)
	p.Begin("member1")
	now = now.Add(2100 * time.Millisecond)
	p.Waiting("member1", "the API server to answer")
	now = now.Add(2 * time.Second)
	p.Waiting("member1", "the API server to answer")
	p.Done("member1", "Kubernetes v1.36.3")
	want := "" +
		"  … member1                    2.1s  waiting for the API server to answer\n" +
		"  …                            4.1s  still waiting for member1\n" +
		"  ✓ member1                    4.1s  Kubernetes v1.36.3\n"
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}

func TestBegin_EndsAStepThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		interrupted bool
		err         error
		want        string
	}{
		"no error":                       {false, nil, ""},
		"no error, although interrupted": {true, nil, ""},
		"an error":                       {false, errors.New("no image"), "  ✗ a                          0.0s  failed\n"},
		"an error of the end":            {true, context.Canceled, "  ✗ a                          0.0s  interrupted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := NewReminder(NewPrinter(&out, func() time.Time { return time.Unix(0, 0) }, Columns), time.Now)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			if tc.interrupted {
				interrupt()
			}
			err := func() (err error) {
				defer Begin(ctx, r, "a", &err)()
				return tc.err
			}()
			if tc.err != nil {
				r.Waiting("a", "too late")
			}
			if !errors.Is(err, tc.err) || out.String() != tc.want {
				t.Errorf("%v, got:\n%swant:\n%s", err, out.String(), tc.want)
			}
		})
	}
}

func TestColumns_KeepTheirWidth(t *testing.T) {
	for steps, want := range map[string]string{
		"a":                                   "  … a                          2.0s  waiting for b\n",
		"stop member100-estimator":            "  … stop member100-estimator   2.0s  waiting for b\n",
		"member1, member2":                    "  … member1, member2           2.0s  waiting for b\n",
		"karmada-apiserver, member1, member2": "  … karmada-apiserver +2       2.0s  waiting for b\n",
		"member1, member2, member3, member10": "  … member1 +3                 2.0s  waiting for b\n",
	} {
		if got := Columns(Line{Steps: steps, Text: "b", Mark: markWaiting, Took: 2 * time.Second}); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}
