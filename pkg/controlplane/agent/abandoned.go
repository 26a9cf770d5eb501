package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// errAbandoned ends the agent of a cluster that was abandoned while the agent ran.
var errAbandoned = errors.New("the control plane abandoned this cluster, and it is cleaned up; register it again to have it back")

// membershipCheck triggers a check whether the cluster is still a member: its Cluster
// is gone, or the control plane denies access to the agent.
type membershipCheck struct{ controllers.Trigger }

func newMembershipCheck() membershipCheck { return membershipCheck{controllers.NewTrigger()} }

// watchFailed triggers the check when a watch is forbidden.
func (d membershipCheck) watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		d.Fire()
	}
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
}

// run cleans up if the cluster is abandoned while the agent runs, and offers the address of the member again when the
// Cluster lost it.
func (m *membership) run(ctx context.Context, clusters cache.Informer) error {
	lost := newMembershipCheck()
	seen := func(obj any) {
		if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok && m.lostAddress(cluster) {
			lost.Fire()
		}
	}
	_, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) },
		DeleteFunc: func(any) {
			m.log.Info("The Cluster of this member is gone from the control plane; the objects in the member stay. Register it again to manage them")
			m.options.check.Fire()
		},
	})
	if err != nil {
		return ended(ctx, fmt.Errorf("watching the cluster: %w", err))
	}
	again := m.clock.NewTimer(offerInterval)
	defer func() { again.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C():
			again = m.clock.NewTimer(offerInterval)
			if m.refusedAddress() {
				lost.Fire()
			}
			continue
		case <-lost.Trigger:
			if err := m.offer(ctx); err != nil && ctx.Err() == nil {
				m.log.Error(err, "The address of the member was not offered again")
			}
			continue
		case <-m.options.check.Trigger:
		}
		cleaned := false
		err := m.retry.until(ctx, "Cleaning up an abandoned cluster", func(ctx context.Context) (err error) {
			cleaned, err = m.cleanIfAbandoned(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case cleaned:
			return errAbandoned // the cached Works must not be applied again
		}
	}
}

// cleanIfAbandoned deletes the objects of the control plane from the member if the
// control plane abandoned the cluster, and reports whether it did. An administrator
// decided to delete them when the cluster was abandoned.
func (m *membership) cleanIfAbandoned(ctx context.Context) (bool, error) {
	tombstone := &corev1.ConfigMap{}
	err := m.plane.Get(ctx, client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: names.Tombstone(m.options.ClusterName)}, tombstone)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the tombstone of the cluster: %w", err)
	case tombstone.Data[member.TombstoneID] != m.id || tombstone.Data[member.TombstoneCleaned] != "":
		return false, nil
	}
	m.abandoned.Store(true) // no object is applied from here on
	m.log.Info("The control plane abandoned this cluster; deleting its objects here",
		"abandonedAt", tombstone.Data[member.TombstoneAbandoned], "objects", tombstone.Data[member.TombstoneCount])
	everything, err := client.New(m.memberConfig, client.Options{})
	if err != nil {
		return false, fmt.Errorf("connecting to the member cluster: %w", err)
	}
	api, err := access.NewMember(m.options.ClusterName, rest.CopyConfig(m.memberConfig), nil)
	if err != nil {
		return false, err
	}
	occupant := func(ctx context.Context, namespace string) (string, error) {
		return orphans.Occupant(ctx, api, namespace, func(*metav1.PartialObjectMetadata) bool { return false })
	}
	if _, err := member.CleanAbandoned(ctx, m.plane, everything, m.options.ClusterName, m.id, m.clock.Now(), occupant); err != nil {
		return false, err
	}
	m.log.Info("Deleted the objects of the control plane. Register the cluster again to have them back")
	return true, nil
}
