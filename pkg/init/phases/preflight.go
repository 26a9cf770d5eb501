package phases

import (
	"context"

	"github.com/karmada-toolkit/karmada/pkg/init/preflight"
)

// Preflight is the phase that checks what can be checked.
const Preflight = "preflight"

func preflightPhase() Phase {
	return Phase{Name: Preflight, Doc: "Check the host cluster, the permissions and the local directories", run: runPreflight}
}

func runPreflight(ctx context.Context, s *State, _ Phase) error {
	if err := preflight.Check(ctx, preflight.Deps{Request: s.Request, Facts: s.Facts, Host: s.HostAPI, Now: s.Now}); err != nil {
		return err
	}
	s.Progress.Done(Preflight, "nothing is in the way")
	return nil
}
