package replicas

import "testing"

func TestCapacity_Roomier(t *testing.T) {
	base := NewCapacity(clusterOf(list("cpu", "4", "pods", "10"), list("cpu", "1"), nil), true)
	for _, tc := range []struct {
		name string
		now  *Capacity
		want bool
	}{
		{"the same", NewCapacity(clusterOf(list("cpu", "5", "pods", "10"), list("cpu", "2"), nil), true), false},
		{"less of everything", NewCapacity(clusterOf(list("cpu", "2", "pods", "9"), nil, nil), true), false},
		{"more pods", NewCapacity(clusterOf(list("cpu", "2", "pods", "11"), nil, nil), true), true},
		{"more cpu", NewCapacity(clusterOf(list("cpu", "4", "pods", "9"), nil, nil), true), true},
		{"a new resource", NewCapacity(clusterOf(list("cpu", "3", "pods", "9", "example.com/gpu", "1"), nil, nil), true), true},
		{"modeled now", NewCapacity(withModels(clusterOf(list("cpu", "3", "pods", "9"), nil, nil), 1), true), true},
		{"unknown", &Capacity{}, false},
	} {
		if got := tc.now.Roomier(base); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	if !base.Roomier(&Capacity{}) {
		t.Error("room that becomes known is more")
	}
}
