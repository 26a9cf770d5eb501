package role

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// required are the lists that the caches of the roles are filled from.
var required = []string{ //nolint:gochecknoglobals // never changed
	"/apis/policy.karmada.io/v1alpha1/propagationpolicies?limit=1",
	"/apis/work.karmada.io/v1alpha1/works?limit=1",
	"/apis/work.karmada.io/v1alpha2/resourcebindings?limit=1",
	"/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations?limit=1",
	"/apis/cluster.karmada.io/v1alpha1/clusters?limit=1",
}

// waitForAPIs returns when the control plane serves everything the roles need. It
// says what it waits for every two seconds.
func waitForAPIs(ctx context.Context, cfg *rest.Config, timeout time.Duration) error {
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	get := func(path string) error {
		path, query, _ := strings.Cut(path, "?")
		r := clients.CoreV1().RESTClient().Get().AbsPath(path)
		if query != "" {
			r = r.Param("limit", "1")
		}
		return r.Do(ctx).Error()
	}
	logger := log.FromContext(ctx)
	said := time.NewTicker(2 * time.Second)
	defer said.Stop()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for _, path := range append([]string{"/readyz"}, required...) {
		for {
			err := get(path)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for the control plane to serve %s: %w", path, err)
			case <-said.C:
				logger.Info("Waiting for the control plane", "path", path, "problem", err.Error())
			case <-retry.C:
			}
		}
	}
	return nil
}
