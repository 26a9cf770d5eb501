package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPace_Next(t *testing.T) {
	for name, tc := range map[string]struct {
		current int
		live    uint64
		want    int
	}{
		"nothing in use":               {300, 0, 300},
		"room for all":                 {300, 250, 300},
		"the room that is left":        {300, 400, 150},
		"little change":                {145, 400, 145},
		"back to the percentage":       {290, 250, 300},
		"above the target":             {300, 900, 50},
		"far above the target":         {50, 5000, 50},
		"larger than any heap can get": {50, math.MaxUint64 / 300, 50},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&pace{percent: 300, current: tc.current, target: 1000}).next(tc.live); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestPace_SetsThePercentage(t *testing.T) {
	before := debug.SetGCPercent(300)
	defer debug.SetGCPercent(before)
	p := &pace{percent: 300, current: 300, target: 1}
	runtime.GC()
	p.adjust()
	got := debug.SetGCPercent(300)
	if got != leastPercent {
		t.Errorf("got %d, want %d", got, leastPercent)
	}
}
