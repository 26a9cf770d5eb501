package inotify

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestExplain(t *testing.T) {
	const instances = "fs.inotify.max_user_instances"
	other := errors.New("no such host")
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"another error", other, false},
		{"the system's error, wrapped", fmt.Errorf("watching a certificate: %w", syscall.EMFILE), true},
		{"the text of it", errors.New("karmada stopped while starting: exit status 1: too many open files"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Explain(tt.err)
			if !errors.Is(got, tt.err) {
				t.Errorf("%v does not wrap %v", got, tt.err)
			}
			if got != nil && strings.Contains(got.Error(), instances) != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestExplanation_NamesTheLimitThatWasMet(t *testing.T) {
	for _, tt := range []struct {
		open, limit uint64
		want        bool
	}{{20, 1024, false}, {1023, 1024, true}, {0, 1024, true}, {0, 0, true}} {
		if got := explanation(tt.open, tt.limit); strings.Contains(got, "ulimit -n") != tt.want {
			t.Errorf("%d of %d: got %q", tt.open, tt.limit, got)
		}
	}
}
