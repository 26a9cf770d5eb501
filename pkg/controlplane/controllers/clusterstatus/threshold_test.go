package clusterstatus

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestThreshold(t *testing.T) {
	type observation struct {
		began    int64
		observed metav1.ConditionStatus
		want     metav1.ConditionStatus
		took     int64
	}
	for _, tc := range []struct {
		name     string
		stored   metav1.ConditionStatus
		observed []observation
	}{
		{"the first observation of a new cluster counts", "", []observation{{0, "True", "True", 0}}},
		{"a new cluster that is not reachable", "", []observation{{0, "False", "False", 0}, {1, "True", "False", 0}, {31, "True", "True", 0}}},
		{"a short failure does not count", "True", []observation{{0, "True", "True", 0}, {5, "False", "True", 0}, {20, "True", "True", 0}, {40, "False", "True", 0}, {69, "False", "True", 0}}},
		{"a failure that lasts does", "True", []observation{{0, "True", "True", 0}, {5, "False", "True", 0}, {34, "False", "True", 0}, {35, "False", "False", 0}}},
		{"a failure begins with its first probe", "True", []observation{{0, "True", "True", 0}, {5, "False", "True", 3}, {32, "False", "False", 3}}},
		{"one probe is not enough, however long it takes", "True", []observation{{0, "True", "True", 0}, {5, "False", "True", 40}, {46, "False", "False", 0}}},
		{"after a start a failure must last too", "True", []observation{{0, "False", "True", 0}, {29, "False", "True", 0}, {30, "False", "False", 0}}},
		{"after a start a healthy cluster is Ready without delay", "False", []observation{{0, "True", "True", 0}}},
		{"a cluster must be healthy for the threshold", "False", []observation{{0, "False", "False", 0}, {10, "True", "False", 0}, {39, "True", "False", 0}, {40, "True", "True", 0}}},
		{"a relapse starts over", "False", []observation{{0, "False", "False", 0}, {10, "True", "False", 0}, {20, "False", "False", 0}, {30, "True", "False", 0}, {50, "True", "False", 0}, {60, "True", "True", 0}}},
		{"unknown becomes false without delay", "Unknown", []observation{{0, "False", "False", 0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			th := &threshold{success: 30 * time.Second, failure: 30 * time.Second}
			var stored *metav1.Condition
			if tc.stored != "" {
				stored = &metav1.Condition{Status: tc.stored}
			}
			for _, l := range tc.observed {
				got := th.adjust(stored, metav1.Condition{Status: l.observed}, time.Unix(l.began, 0), time.Unix(l.began+l.took, 0))
				if got.Status != l.want {
					t.Errorf("after %ds: %s, want %s", l.began, got.Status, l.want)
				}
				stored = &got
			}
		})
	}
}
