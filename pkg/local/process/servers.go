package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// discoverable returns nil when clusters are among the kinds that the control plane
// serves. After a restart of the API server that can be later than when they can be
// listed.
func discoverable(cfg *rest.Config) error {
	found, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	_, lists, err := found.ServerGroupsAndResources() // other groups may be missing
	for _, list := range lists {
		if list.GroupVersion == clusterv1alpha1.GroupVersion.String() && len(list.APIResources) > 0 {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the control plane does not serve %s yet", clusterv1alpha1.GroupVersion), err)
}

// awaitListening waits until a server listens at an address.
func awaitListening(ctx context.Context, address string) error {
	return wait.Until(ctx, wait.Options{Interval: pollInterval}, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
