package phases

import (
	"context"
	"fmt"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
)

const (
	// reachLimit is how long the API server may take to answer here once its pods are ready.
	reachLimit = 30 * time.Second
	// probeTimeout is how long one request to the API server may take.
	probeTimeout = 3 * time.Second
)

// awaitAPIServer waits until the API server answers here.
func awaitAPIServer(ctx context.Context, s *State, p Phase) (string, error) {
	// An API server whose etcd was lost a moment ago still counts as ready.
	needed := []string{components.APIServer}
	if !s.Config.Etcd.External.Used() && s.Config.Runs(Etcd) {
		needed = []string{components.Etcd, components.APIServer}
	}
	for _, workload := range needed {
		if err := s.workloadReady(ctx, p.Name, workload); err != nil {
			return "", err
		}
	}
	rc, err := s.ControlPlaneConfig()
	if err != nil {
		return "", err
	}
	unready := func() string { return s.Tracker.Unready(needed) }
	if err := awaitAnswer(ctx, s, rc.Host, unready, func(ctx context.Context) error { return credentials.Readyz(ctx, rc) }); err != nil {
		return "", fmt.Errorf("the API server runs in the host cluster, but %s does not answer here: %w; name an address that leads to it with --karmada-apiserver-advertise-address", rc.Host, err)
	}
	return rc.Host + ", ", nil
}

// awaitAnswer waits until the API server answers here, for reachLimit from when all that it needs was last seen not
// ready.
func awaitAnswer(ctx context.Context, s *State, server string, unready func() string, probe func(context.Context) error) error {
	return s.waitAfterReady(ctx, reachLimit, APIServer, "an answer of "+server, unready, func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, probeTimeout)
		defer stop()
		return probe(ctx)
	})
}
