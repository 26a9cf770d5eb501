package phases

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
)

// APIServer is the phase that installs the API server of the control plane.
const APIServer = "apiserver"

const (
	// reachLimit is how long the API server may take to answer here once its pods are ready.
	reachLimit = 30 * time.Second
	// probeTimeout is how long one request to the API server may take.
	probeTimeout = 3 * time.Second
)

func apiServer() Phase {
	return Phase{
		Name: APIServer, Doc: "Install the API server and wait until it answers here", Needs: []string{Namespace},
		host: apiServerObjects, run: runAPIServer,
	}
}

func apiServerObjects(in *Inputs) ([]client.Object, error) {
	deployment, err := components.APIServerDeployment(in.Config)
	if err != nil {
		return nil, err
	}
	return []client.Object{components.APIServerService(in.Config), deployment}, nil
}

// runAPIServer installs the API server and waits until it answers here.
func runAPIServer(ctx context.Context, s *State, p Phase) error {
	creds, err := s.Credentials()
	if err != nil {
		return err
	}
	result, err := s.applyHost(ctx, p)
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("%w; the port is chosen with --port", err)
	}
	if err != nil {
		return err
	}
	// An API server whose etcd was lost a moment ago still counts as ready.
	needed := []string{components.Etcd, components.APIServer}
	if s.Config.Etcd.External.Used() || !s.Config.Runs(Etcd) {
		needed = needed[1:]
	}
	for _, workload := range needed {
		if err := s.ready(ctx, p.Name, workload); err != nil {
			return err
		}
	}
	rc, err := creds.RESTConfig()
	if err != nil {
		return err
	}
	unready := func() string { return s.Tracker.Unready(needed) }
	if err := awaitAnswer(ctx, s, rc.Host, unready, func(ctx context.Context) error { return credentials.Readyz(ctx, rc) }); err != nil {
		return fmt.Errorf("the API server runs in the host cluster, but %s does not answer here: %w; name an address that leads to it with --karmada-apiserver-advertise-address", rc.Host, err)
	}
	s.Progress.Done(p.Name, rc.Host+", "+result)
	return nil
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
