package clusterstatus

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestThreshold(t *testing.T) {
	type observation struct {
		at       int64
		observed metav1.ConditionStatus
		want     metav1.ConditionStatus
	}
	for _, tc := range []struct {
		name     string
		stored   metav1.ConditionStatus
		observed []observation
	}{
		{"the first observation of a new cluster counts", "", []observation{{0, "True", "True"}}},
		{"a new cluster that is not reachable", "", []observation{{0, "False", "False"}, {1, "True", "False"}, {31, "True", "True"}}},
		{"a short failure does not count", "True", []observation{{0, "True", "True"}, {5, "False", "True"}, {20, "True", "True"}, {40, "False", "True"}, {69, "False", "True"}}},
		{"a failure that lasts does", "True", []observation{{0, "True", "True"}, {5, "False", "True"}, {34, "False", "True"}, {35, "False", "False"}}},
		{"after a start a failure must last too", "True", []observation{{0, "False", "True"}, {29, "False", "True"}, {30, "False", "False"}}},
		{"after a start a healthy cluster is Ready without delay", "False", []observation{{0, "True", "True"}}},
		{"a cluster must be healthy for the threshold", "False", []observation{{0, "False", "False"}, {10, "True", "False"}, {39, "True", "False"}, {40, "True", "True"}}},
		{"a relapse starts over", "False", []observation{{0, "False", "False"}, {10, "True", "False"}, {20, "False", "False"}, {30, "True", "False"}, {50, "True", "False"}, {60, "True", "True"}}},
		{"unknown becomes false without delay", "Unknown", []observation{{0, "False", "False"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			th := &threshold{success: 30 * time.Second, failure: 30 * time.Second}
			var stored *metav1.Condition
			if tc.stored != "" {
				stored = &metav1.Condition{Status: tc.stored}
			}
			for _, l := range tc.observed {
				got := th.adjust(stored, metav1.Condition{Status: l.observed}, time.Unix(l.at, 0))
				if got.Status != l.want {
					t.Errorf("after %ds: %s, want %s", l.at, got.Status, l.want)
				}
				stored = &got
			}
		})
	}
}
