package agent

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/member"
)

// abandonedInterval is the time between questions whether the cluster was
// abandoned.
const abandonedInterval = 30 * time.Second

// followAbandonment cleans the member up if the control plane has abandoned the
// cluster. It runs in every replica: without its rights in the control plane none
// can lead.
func (a *agent) followAbandonment(ctx context.Context) {
	said := ""
	for {
		if err := a.cleanAbandoned(ctx); err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			a.log.Info("Cleaning up after being abandoned failed, trying again", "err", said)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.clock.After(abandonedInterval):
		}
	}
}

// cleanAbandoned removes what the control plane had put into the member if it has
// recorded that it abandoned the cluster. It must be registered again by a user to
// be taken back.
func (a *agent) cleanAbandoned(ctx context.Context) error {
	id, err := member.ID(ctx, a.memberAPI)
	if err != nil {
		return fmt.Errorf("reading the id of the member: %w", err)
	}
	everything, err := client.New(a.memberConfig, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the member: %w", err)
	}
	found, err := member.CleanAbandoned(ctx, a.plane, everything, a.options.ClusterName, id, a.clock.Now())
	if found && err == nil {
		a.log.Info("The control plane had abandoned this cluster; what it had put here is removed. Register the cluster again to have it back")
	}
	return err
}
