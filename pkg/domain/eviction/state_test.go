package eviction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func stateOf(path, status string) (string, error) {
	out, err := preserve(&policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "a", JSONPath: path}}},
		&workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(status)}}}}, "m1")
	return out["a"], err
}

func TestPreserve_Paths(t *testing.T) {
	const status = `{"id":"x1","n":4,"list":[{"name":"a"},{"name":"b"}],"m":{"k.io/x":"v"},"long":"` + "éééééééééééééééééééééééééééééééééééééééé" + `"}`
	for path, want := range map[string]string{
		"{.id}": "x1", "id-{.id}-{.n}": "id-x1-4", "{.list[1].name}": "b", "{.list[-1].name}": "b", `{.m['k\.io/x']}`: "v", `{.m.k\.io/x}`: "v",
		"{.list[0]}": `{"name":"a"}`, "{.long}": strings.Repeat("é", 30) + "...",
	} {
		if got, err := stateOf(path, status); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}

// A policy may be older than the checks of admission.
func TestPreserve_RefusesWhatMultipliesOrRecurses(t *testing.T) {
	list := "[" + strings.Repeat("1,", 249) + "1]"
	union := "[" + strings.Repeat("0,", 249) + "0]"
	for _, path := range []string{
		"{" + strings.Repeat("@", 1_900_000) + "}", "{.a" + union + union + union + "}", "{.a[*]}", "{..a}", "{.a[0:2]}", "{.a[?(@==1)]}", "{range .a[*]}{@}{end}",
	} {
		build.Bounded(t, time.Minute, 64<<20, func() {
			_, err := stateOf(path, `{"a":`+list+`}`)
			if err == nil {
				t.Errorf("%.64s: there is no error", path)
			} else if len(err.Error()) > 1024 {
				t.Errorf("%.64s: the error has %d bytes", path, len(err.Error()))
			}
		})
	}
	many := &policyv1alpha1.StatePreservation{Rules: make([]policyv1alpha1.StatePreservationRule, 10_000)}
	status := &workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte("{}")}}}}
	if _, err := preserve(many, status, "m1"); err == nil || !strings.Contains(err.Error(), "10000 rules") {
		t.Errorf("got %v", err)
	}
}

func TestStateWarnings_ShowNoLongText(t *testing.T) {
	rule := policyv1alpha1.StatePreservationRule{AliasLabelName: "a", JSONPath: "{" + strings.Repeat("@", 1_900_000) + "}"}
	got := StateWarnings(&policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{StatePreservation: &policyv1alpha1.StatePreservation{
		Rules: []policyv1alpha1.StatePreservationRule{rule},
	}}})
	if len(got) != 1 || len(got[0]) > 1024 {
		t.Errorf("%d warnings, %.200q", len(got), fmt.Sprint(got))
	}
}

// Every path is evaluated in proportion to its length and to the status, and gives at most what a label can hold.
func FuzzPreserve(f *testing.F) {
	const status = `{"a":[[[1,2,3],[4]],{"b":"c"}],"b":{"c":"` + "0123456789012345678901234567890123456789012345678901234567890123456789" + `"}}`
	for _, path := range []string{"{.a[0][0][0]}", "x-{.b.c}{ .a }", "{.a[0,0,0][0,0][0,0]}", "{..}", `{.b['c']}{.b\.c}`, "{@@@@}", "{range .a[*]}{.b}{end}", "{.a['b}{..']}", `{.a['\`, "{.a[-1].b}"} {
		f.Add(path, status)
	}
	f.Fuzz(func(t *testing.T, path, status string) {
		build.Bounded(t, 30*time.Second, 16<<20+uint64(64*len(path)*(len(status)+1)), func() {
			if got, err := stateOf(path, status); err == nil && len(got) > validation.LabelValueMaxLength {
				t.Errorf("%q gives %d bytes", path, len(got))
			}
		})
	})
}
