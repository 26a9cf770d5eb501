package fanout

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEach_KeepsOrderAndPartialResults(t *testing.T) {
	bad := errors.New("bad")
	got := Each(t.Context(), Limits{}, []string{"c", "a", "b"}, func(_ context.Context, c string) (string, error) {
		if c == "a" {
			return "half", bad
		}
		return "of " + c, nil
	})
	values := map[string]string{}
	var order []string
	for _, o := range got {
		order = append(order, o.Cluster)
		values[o.Cluster] = o.Value
	}
	if diff := cmp.Diff([]string{"c", "a", "b"}, order); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"c": "of c", "a": "half", "b": "of b"}, values); diff != "" {
		t.Error(diff)
	}
	if !errors.Is(got[1].Err, bad) || got[0].Err != nil || got[2].Err != nil {
		t.Errorf("errors: %v", got)
	}
}

func TestEach_DeadlinePerCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		start := time.Now()
		got := Each(t.Context(), Limits{Deadline: 2 * time.Second}, []string{"dead", "alive", "deaf"}, func(ctx context.Context, c string) (int, error) {
			switch c {
			case "dead": // heeds its context
				<-ctx.Done()
				return 0, ctx.Err()
			case "deaf": // does not
				<-release
			}
			return 1, nil
		})
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %s, want 2s", took)
		}
		for i, late := range []bool{true, false, true} {
			if errors.Is(got[i].Err, ErrDeadline) != late {
				t.Errorf("%s: %v, late %v", got[i].Cluster, got[i].Err, late)
			}
		}
		close(release)
	})
}

func TestEach_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		clusters := make([]string, 20)
		start := time.Now()
		Each(t.Context(), Limits{Parallel: 5}, clusters, func(context.Context, string) (int, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			return 0, nil
		})
		if most.Load() != 5 {
			t.Errorf("%d at once, want 5", most.Load())
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("took %s, want 4s", took)
		}
	})
}

func TestEach_CancelledEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		got := Each(ctx, Limits{Parallel: 1}, []string{"a", "b"}, func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		for _, o := range got {
			if !errors.Is(o.Err, context.Canceled) {
				t.Errorf("%s: got %v, want cancelled", o.Cluster, o.Err)
			}
		}
	})
}
