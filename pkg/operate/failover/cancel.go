package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

// Cancel ends the evictions from a cluster that are under way, and returns them: the cluster is a target of the workloads
// again with the replicas that they had. It returns those that it left, too: the taints of the cluster would evict them
// again. A cluster that is gone gets no workload back.
func Cancel(ctx context.Context, c client.Client, name string, now time.Time) (cancelled, left []Eviction, err error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); apierrors.IsNotFound(err) {
		cluster = nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("reading cluster %q: %w", name, err)
	}
	var evicted []workv1alpha2.Binding
	err = eachBinding(ctx, c, func(b workv1alpha2.Binding) {
		if _, ok := leaves(b, name); ok {
			evicted = append(evicted, b)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	for _, b := range evicted {
		e, _ := leaves(b, name)
		ended, err := cancel(ctx, c, b, name, cluster, now)
		switch {
		case err != nil:
			return cancelled, left, fmt.Errorf("cancelling the eviction of %s from cluster %q: %w", e.Workload, name, err)
		case ended:
			cancelled = append(cancelled, e)
		default:
			left = append(left, e)
		}
	}
	slices.SortFunc(cancelled, compare)
	slices.SortFunc(left, compare)
	return cancelled, left, nil
}

// leaves returns the eviction of a binding from a cluster, and false if it is not under way or the binding is being deleted.
func leaves(b workv1alpha2.Binding, cluster string) (Eviction, bool) {
	tasks := Tasks(b)
	i := slices.IndexFunc(tasks, func(e Eviction) bool { return e.Cluster == cluster })
	if i < 0 || b.GetDeletionTimestamp() != nil {
		return Eviction{}, false
	}
	return tasks[i], true
}

// cancel ends the eviction of one binding, and reports whether it did.
func cancel(ctx context.Context, c client.Client, b workv1alpha2.Binding, name string, cluster *clusterv1alpha1.Cluster, now time.Time) (ended bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return client.IgnoreNotFound(err)
		}
		locked := patch.Locked(b)
		spec := b.GetSpec()
		targets := spec.Clusters
		spec.Clusters, spec.GracefulEvictionTasks = eviction.Cancel(spec, b.GetStatus(), name)
		if cluster == nil || !cluster.DeletionTimestamp.IsZero() {
			spec.Clusters = targets
		} else if e, again := due(b, cluster, now); again && e.Phase == Pending && !e.At.After(now) {
			ended = false
			return nil
		}
		ended = true
		return c.Patch(ctx, b, locked)
	})
	return ended && err == nil, err
}
