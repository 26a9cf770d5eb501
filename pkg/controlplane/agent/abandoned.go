package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// errAbandoned ends the agent of a cluster that was abandoned while it worked.
var errAbandoned = errors.New("the control plane abandoned this cluster, and it is cleaned up; register it again to have it back")

// doubt collects reasons to ask whether the cluster is still a member: its Cluster
// is gone, or the control plane refuses the agent.
type doubt chan struct{}

func newDoubt() doubt { return make(doubt, 1) }

func (d doubt) raise() {
	select {
	case d <- struct{}{}:
	default:
	}
}

// watchFailed raises doubt when a watch is refused.
func (d doubt) watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		d.raise()
	}
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
}

// watchAbandoned cleans up should the cluster be abandoned while the agent works.
func (a *agent) watchAbandoned(ctx context.Context) error {
	clusters, err := a.mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return ended(ctx, fmt.Errorf("watching the cluster: %w", err))
	}
	_, err = clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {
		a.log.Info("The control plane does not have this cluster any more; what is in it stays. If that was a mistake, register it again")
		a.options.doubt.raise()
	}})
	if err != nil {
		return ended(ctx, fmt.Errorf("watching the cluster: %w", err))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.options.doubt:
		}
		cleaned := false
		err := a.insist(ctx, "Cleaning up after being abandoned", func() (err error) {
			cleaned, err = a.cleanIfAbandoned(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was to end
		case err != nil:
			return err
		case cleaned:
			return errAbandoned // what is remembered of Works must not be put back
		}
	}
}

// cleanIfAbandoned removes what the control plane had put into the member if it
// gave the cluster up while nobody heard of it, and says whether it did: that what
// it had put here is to go is what an administrator decided then.
func (a *agent) cleanIfAbandoned(ctx context.Context) (bool, error) {
	tombstone := &corev1.ConfigMap{}
	err := a.plane.Get(ctx, client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: names.Tombstone(a.options.ClusterName)}, tombstone)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking whether the cluster was abandoned: %w", err)
	case tombstone.Data[member.TombstoneID] != a.id || tombstone.Data[member.TombstoneCleaned] != "":
		return false, nil
	}
	a.abandoned.Store(true) // from here on nothing is put back
	a.log.Info("The control plane abandoned this cluster; deleting what it had put here",
		"abandonedAt", tombstone.Data[member.TombstoneAbandoned], "objects", tombstone.Data[member.TombstoneCount])
	everything, err := client.New(a.memberConfig, client.Options{})
	if err != nil {
		return false, fmt.Errorf("connecting to the member cluster: %w", err)
	}
	if _, err := member.CleanAbandoned(ctx, a.plane, everything, a.options.ClusterName, a.id, a.clock.Now()); err != nil {
		return false, err
	}
	a.log.Info("What the control plane had put here is removed. Register the cluster again to have it back")
	return true, nil
}
