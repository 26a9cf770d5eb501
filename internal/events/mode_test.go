package events

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/record"
)

func TestMode_Flag(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want Mode
		err  string
	}{
		{nil, Transitions, ""},
		{[]string{"--events=contract"}, Contract, ""},
		{[]string{"--events=transitions"}, Transitions, ""},
		{[]string{"--events=all"}, Transitions, `invalid argument "all" for "--events" flag: unknown value "all", must be transitions or contract`},
	} {
		var m Mode
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		m.AddFlag(fs)
		text := ""
		if err := fs.Parse(tc.args); err != nil {
			text = err.Error()
		}
		if text != tc.err || m != tc.want || m.All() != (tc.want == Contract) {
			t.Errorf("%v: %q, %q", tc.args, m, text)
		}
	}
}

func TestRecorder_Detail(t *testing.T) {
	for mode, want := range map[Mode][]string{
		"":          {"Warning Failed x"},
		Transitions: {"Warning Failed x"},
		Contract:    {"Warning Failed x", "Normal Read y"},
	} {
		fake := record.NewFakeRecorder(10)
		r := New(fake).WithMode(mode)
		r.Warning(pod("1"), "Failed", "x")
		r.Detail(pod("1"), "Read", "y")
		r.Warning(pod("1"), "Failed", "x") // a detail is no recovery
		close(fake.Events)
		var got []string
		for e := range fake.Events {
			got = append(got, e)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}
