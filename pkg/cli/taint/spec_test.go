package taint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func taintOf(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want change
		err  string
	}{
		"add with value":       {args: []string{"cluster", "foo", "a=b:NoSchedule"}, want: change{clusters: []string{"foo"}, add: []corev1.Taint{taintOf("a", "b", "NoSchedule")}}},
		"add without value":    {args: []string{"clusters", "foo", "bar", "a:NoExecute"}, want: change{clusters: []string{"foo", "bar"}, add: []corev1.Taint{taintOf("a", "", "NoExecute")}}},
		"empty value":          {args: []string{"clusters", "foo", "a=:NoExecute"}, want: change{clusters: []string{"foo"}, add: []corev1.Taint{taintOf("a", "", "NoExecute")}}},
		"remove one effect":    {args: []string{"cluster", "foo", "a:NoSchedule-"}, want: change{clusters: []string{"foo"}, remove: []corev1.Taint{taintOf("a", "", "NoSchedule")}}},
		"remove all effects":   {args: []string{"cluster", "foo", "x.io/a-"}, want: change{clusters: []string{"foo"}, remove: []corev1.Taint{taintOf("x.io/a", "", "")}}},
		"resources after":      {args: []string{"cluster", "foo", "a-", "bar"}, err: "all resources must be specified before taint changes: bar"},
		"other type":           {args: []string{"nodes", "foo", "a-"}, err: `invalid resource type nodes, only ["cluster" "clusters"] are supported`},
		"no name":              {args: []string{"cluster", "a-"}, err: "at least one resource name must be specified"},
		"no spec":              {args: []string{"cluster", "foo"}, err: "at least one taint update is required"},
		"bad effect":           {args: []string{"cluster", "foo", "a=b:Never"}, err: "invalid taint effect: Never, unsupported taint effect"},
		"no effect":            {args: []string{"cluster", "foo", "a=b"}, err: "invalid taint spec: a=b; write key=value:Effect, key:Effect, key:Effect- or key-"},
		"two values":           {args: []string{"cluster", "foo", "a=b=c:NoSchedule"}, err: "invalid taint spec: a=b=c:NoSchedule; write key=value:Effect, key:Effect, key:Effect- or key-"},
		"two effects":          {args: []string{"cluster", "foo", "a:NoSchedule:NoExecute"}, err: "invalid taint spec: a:NoSchedule:NoExecute; write key=value:Effect, key:Effect, key:Effect- or key-"},
		"duplicate":            {args: []string{"cluster", "foo", "a=b:NoSchedule", "a=c:NoSchedule"}, err: "duplicated taints with the same key and effect: a=c:NoSchedule"},
		"added and removed":    {args: []string{"cluster", "foo", "a=b:NoSchedule", "a-"}, err: `can not both modify and remove the following taint(s) in the same command: {"a":"NoSchedule"}`},
		"other effect removed": {args: []string{"cluster", "foo", "a=b:NoSchedule", "a:NoExecute-"}, want: change{clusters: []string{"foo"}, add: []corev1.Taint{taintOf("a", "b", "NoSchedule")}, remove: []corev1.Taint{taintOf("a", "", "NoExecute")}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tt.args, false)
			if text(err) != tt.err {
				t.Fatalf("error %q, want %q", text(err), tt.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(change{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestChange_apply(t *testing.T) {
	a, b := taintOf("a", "1", "NoSchedule"), taintOf("b", "", "NoExecute")
	for name, tt := range map[string]struct {
		old  []corev1.Taint
		c    change
		want []corev1.Taint
		word string
		err  string
	}{
		"new ones come first":     {[]corev1.Taint{b}, change{add: []corev1.Taint{a}}, []corev1.Taint{a, b}, "tainted", ""},
		"existing is refused":     {[]corev1.Taint{a}, change{add: []corev1.Taint{taintOf("a", "2", "NoSchedule")}}, nil, "", "cluster foo already has a taint(s) with same effect(s) and --overwrite is false"},
		"existing is overwritten": {[]corev1.Taint{b, a}, change{overwrite: true, add: []corev1.Taint{taintOf("a", "2", "NoSchedule")}}, []corev1.Taint{taintOf("a", "2", "NoSchedule"), b}, "modified", ""},
		"other effect is other":   {[]corev1.Taint{a}, change{add: []corev1.Taint{taintOf("a", "", "NoExecute")}}, []corev1.Taint{taintOf("a", "", "NoExecute"), a}, "tainted", ""},
		"removed":                 {[]corev1.Taint{a, b}, change{remove: []corev1.Taint{taintOf("a", "", "")}}, []corev1.Taint{b}, "untainted", ""},
		"added and removed":       {[]corev1.Taint{b}, change{add: []corev1.Taint{a}, remove: []corev1.Taint{taintOf("b", "", "NoExecute")}}, []corev1.Taint{a}, "modified", ""},
		"absent cannot go":        {[]corev1.Taint{a}, change{remove: []corev1.Taint{taintOf("b", "", "NoExecute")}}, nil, "", `cluster foo: taint "b:NoExecute" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			got, word, err := tt.c.apply("foo", tt.old)
			if text(err) != tt.err || word != tt.word {
				t.Errorf("%q, %q; want %q, %q", word, text(err), tt.word, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
