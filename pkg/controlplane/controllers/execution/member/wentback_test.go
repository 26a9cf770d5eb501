package member

import (
	"context"
	"slices"
	"testing"
)

// A member that reports ever older versions causes one comparison of everything at once, and one at the end of an interval.
func TestInformers_WentBackIsLimited(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls []string
	i := NewInformers(ctx, Config{WentBack: func(_, to string) { calls = append(calls, to) }})
	t.Cleanup(func() { cancel(); i.Wait() })
	for _, to := range []string{"9", "8", "7"} {
		i.WentBack("10", to)
	}
	if want := []string{"9"}; !slices.Equal(calls, want) {
		t.Fatalf("at once: %q, want %q", calls, want)
	}
	i.openGate() // the interval ends
	if want := []string{"9", "7"}; !slices.Equal(calls, want) {
		t.Fatalf("at the end of the interval: %q, want %q", calls, want)
	}
	i.WentBack("10", "6")
	if len(calls) != 2 {
		t.Errorf("in the interval after it: %q", calls)
	}
	i.openGate()
	i.openGate() // nothing happened in the last interval
	i.WentBack("10", "5")
	if want := []string{"9", "7", "6", "5"}; !slices.Equal(calls, want) {
		t.Errorf("later: %q, want %q", calls, want)
	}
}
