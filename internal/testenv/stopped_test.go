package testenv

import (
	"errors"
	"testing"
)

func TestStopped(t *testing.T) {
	for text, passes := range map[string]bool{
		"failed waiting for all runnables to end within grace period of 30s: context deadline exceeded": false,
		"leader election lost": true,
	} {
		if got := Stopped(errors.New(text)); (got != nil) != passes {
			t.Errorf("%q: %v", text, got)
		}
	}
	if err := Stopped(nil); err != nil {
		t.Error(err)
	}
}
