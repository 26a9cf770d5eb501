package memory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIdleness_Begins(t *testing.T) {
	tests := []struct {
		name   string
		cycles []uint64 // count at each check
		want   []bool
	}{
		{"idle all the time", []uint64{0, 0, 1, 1, 2}, []bool{false, false, false, false, false}},
		{"once after work", []uint64{5, 9, 9, 9}, []bool{false, false, true, false}},
		{"a single collection is not work", []uint64{5, 6, 7}, []bool{false, true, false}},
		{"not while work goes on", []uint64{5, 10, 15, 20}, []bool{false, false, false, false}},
		{"after each time with work", []uint64{5, 5, 10, 10}, []bool{false, true, false, true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var idle idleness
			var got []bool
			for _, n := range tt.cycles {
				got = append(got, idle.begins(n))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("looks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGCCycles(t *testing.T) {
	if a, b := gcCycles(), gcCycles(); b < a {
		t.Errorf("the count went from %d to %d", a, b)
	}
}
