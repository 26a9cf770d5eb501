package execution

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

func TestNewsOfApplied(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64, message string) *metav1.Condition {
		return &metav1.Condition{Status: status, ObservedGeneration: generation, Message: message}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	tests := []struct {
		name     string
		old, now *metav1.Condition
		want     bool
	}{
		{"nothing is known", nil, nil, false},
		{"applied for the first time", nil, condition(yes, 1, ""), true},
		{"applied still", condition(yes, 1, ""), condition(yes, 1, ""), false},
		{"a change was applied", condition(yes, 1, ""), condition(yes, 2, ""), true},
		{"it failed", condition(yes, 1, ""), condition(no, 1, "a"), true},
		{"it fails still", condition(no, 1, "a"), condition(no, 2, "a"), false},
		{"it fails in another way", condition(no, 1, "a"), condition(no, 1, "b"), true},
		{"it works again", condition(no, 1, "a"), condition(yes, 1, ""), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := newsOfApplied(tt.old, tt.now); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestReasonOf(t *testing.T) {
	if got := reasonOf("Failed to apply all manifests (0/1): no such kind"); got != "no such kind" {
		t.Errorf("got %q", got)
	}
	if got := reasonOf("something else"); got != "something else" {
		t.Errorf("got %q", got)
	}
}

func TestWorkChanged_InAControlPlaneThatWentBack(t *testing.T) {
	work := func(version, manifest string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2, UID: "u", ResourceVersion: version}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
		return w
	}
	tests := []struct {
		name     string
		old, now *workv1alpha1.Work
		want     bool
	}{
		{"only the status", work("5", "{}"), work("6", "{}"), false},
		{"an older version", work("9", "{}"), work("6", "{}"), true},
		{"the same generation of something else", work("5", "{}"), work("6", "{ }"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := workChanged(tt.old, tt.now); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
