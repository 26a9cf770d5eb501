// Package federationtest makes federations for tests.
package federationtest

import (
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// start is the time at which federations are made.
func start() time.Time { return time.Unix(1_700_000_000, 0) }

// Deps returns dependencies without an environment and without output.
func Deps() federation.Deps {
	return federation.Deps{Program: "karmadactl", Getenv: func(string) string { return "" }, Now: start, Progress: progress.Discard{}}
}

// Saved returns the federation "f" with the member "member1", whose record is in a new directory. Nothing of it runs.
func Saved(tb testing.TB) *federation.Federation {
	tb.Helper()
	f := federation.New(tb.TempDir(), "f", "", start())
	f.Members = []string{"member1"}
	if err := f.Save(); err != nil {
		tb.Fatal(err)
	}
	return f
}
