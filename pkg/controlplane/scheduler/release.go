package scheduler

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
)

// Bindings whose policy was deleted, and those whose scheduling is suspended, are
// not scheduled. They still lose the clusters that leave: a cluster stays until
// no binding names it. A binding that has a placement is scheduled by it then, so
// that its replicas go elsewhere; any other only loses the target.

// mustRelease reports whether a binding that is not scheduled has targets that leave.
func (s *scheduler) mustRelease(b workv1alpha2.Binding) bool {
	if len(b.GetSpec().Clusters) == 0 || !assigned(b, s.options.SchedulerName) || !b.GetDeletionTimestamp().IsZero() {
		return false
	}
	terminating, missing := core.Leaving(b.GetSpec(), s.clusters.Snapshot())
	return len(terminating)+len(missing) > 0
}

// clusterGone removes a cluster from the facts and enqueues what still targets it.
func (s *scheduler) clusterGone(name string) {
	s.clusters.remove(name)
	s.requeueTargeting(name)
}

// requeueTargeting enqueues the bindings that have the cluster as a target, also
// those that no policy claims and those whose affinity does not select it.
func (s *scheduler) requeueTargeting(cluster string) {
	var found []known
	s.bindings.each(func(_ key, b known) {
		if b.GetSpec().TargetContains(cluster) && assigned(b, s.options.SchedulerName) {
			found = append(found, b)
		}
	})
	for _, b := range found {
		s.push(b.scope, b, eventCluster)
	}
}

// need returns whether a binding is due. One that no policy claims is due only
// while a target leaves.
func (s *scheduler) need(ctx context.Context, b known) (core.Need, error) {
	if b.owned {
		need, err := core.NeedsScheduling(b, s.ladder())
		if err != nil || need.Due() {
			return need, err
		}
	}
	leaving, err := s.leaving(ctx, b)
	if err != nil || len(leaving) == 0 {
		return core.Need{}, err
	}
	return core.Need{Cause: core.CauseTerminating, Type: core.ReconcileSchedule}, nil
}

// leaving returns the targets that are being deleted or are gone. A cluster that
// was not observed is read from the API server: it may have joined just now.
func (s *scheduler) leaving(ctx context.Context, b known) ([]string, error) {
	terminating, missing := core.Leaving(b.GetSpec(), s.clusters.Snapshot())
	for _, name := range missing {
		err := s.live.Get(ctx, types.NamespacedName{Name: name}, &clusterv1alpha1.Cluster{})
		switch {
		case apierrors.IsNotFound(err):
			terminating = append(terminating, name)
		case err != nil:
			return nil, fmt.Errorf("reading cluster %q, a target of %s: %w", name, core.Ref(b), err)
		}
	}
	return terminating, nil
}

// release removes the clusters that leave from the targets of a binding, and
// changes nothing else.
func (s *scheduler) release(ctx context.Context, b known) (outcome, error) {
	if !assigned(b, s.options.SchedulerName) || !b.GetDeletionTimestamp().IsZero() {
		return finished, nil
	}
	leaving, err := s.leaving(ctx, b)
	if err != nil || len(leaving) == 0 {
		return finished, err
	}
	var left any
	if targets := slices.DeleteFunc(slices.Clone(b.GetSpec().Clusters), func(t workv1alpha2.TargetCluster) bool {
		return slices.Contains(leaving, t.Name)
	}); len(targets) > 0 {
		left = targets
	}
	body := map[string]any{
		"metadata": map[string]any{"resourceVersion": b.GetResourceVersion()},
		"spec":     map[string]any{"clusters": left},
	}
	_, err = s.patch(ctx, s.client, b, body, true)
	if client.IgnoreNotFound(err) != nil {
		return failed, err
	}
	return finished, nil
}
