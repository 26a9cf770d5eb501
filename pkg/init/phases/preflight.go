package phases

import (
	"context"

	"github.com/karmada-toolkit/karmada/pkg/init/preflight"
)

// runPreflight checks everything that can be checked before anything is written.
func runPreflight(ctx context.Context, s *State, _ Phase) (string, error) {
	return "nothing is in the way", preflight.Check(ctx, preflight.Deps{Config: s.Config, Facts: s.Facts, Host: s.HostAPI, Now: s.Now})
}
