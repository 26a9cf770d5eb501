package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/wait"
)

// WaitReachable waits until the user of a kubeconfig reaches a member through the
// control plane: the permissions of users are created some time after the cluster.
// After the limit it returns the last response.
func WaitReachable(ctx context.Context, controlPlane *rest.Config, name string, report Reporter, limit time.Duration) (string, error) {
	client, err := rest.HTTPClientFor(controlPlane)
	if err != nil {
		return "", fmt.Errorf("connecting to the control plane: %w", err)
	}
	url := controlPlane.Host + "/apis/cluster.karmada.io/v1alpha1/clusters/" + name + "/proxy/api/v1/namespaces?limit=1"
	state := "no answer yet"
	what := func() string {
		return fmt.Sprintf("cluster %q to be reached through the control plane (%s)", name, state)
	}
	err = await(ctx, limit, report, what, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false, fmt.Errorf("requesting cluster %q: %w", name, err)
		}
		resp, err := client.Do(req)
		if err != nil {
			state = err.Error()
			return false, nil
		}
		defer resp.Body.Close() //nolint:errcheck // only the status counts
		state = resp.Status
		return resp.StatusCode == http.StatusOK, nil
	})
	if errors.Is(err, wait.ErrTimeout) {
		return state, nil
	}
	return "", err
}
