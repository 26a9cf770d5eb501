//go:build unix

package process

import "testing"

func TestKillPending(t *testing.T) {
	for name, tc := range map[string]struct {
		status string
		want   bool
	}{
		"nothing":               {"Name:\tkubelite\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n", false},
		"terminated":            {"SigPnd:\t0000000000000000\nShdPnd:\t0000000000004000\n", false},
		"killed":                {"SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n", true},
		"its thread was killed": {"SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n", true},
		"what it blocks":        {"SigBlk:\t0000000000000100\n", false},
		"no number":             {"ShdPnd:\tx\n", false},
	} {
		if got := killPending(tc.status); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
