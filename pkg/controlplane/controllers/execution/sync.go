package execution

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// sync handles one Work. It returns when to look again, if nothing happens until
// then.
func (r *runner) sync(ctx context.Context, name string) (time.Duration, error) {
	work := &workv1alpha1.Work{}
	err := r.c.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, work, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return 0, r.removed(ctx, name)
	}
	if err != nil {
		return 0, fmt.Errorf("reading work %s/%s: %w", r.namespace, name, err)
	}
	cluster, err := r.c.cluster(ctx, r.cluster)
	if err != nil {
		return 0, err
	}
	if cluster != nil && !r.c.deps.Accept(cluster) {
		r.forget(name)
		return 0, nil
	}
	s := r.state(name, work.UID)
	if !work.DeletionTimestamp.IsZero() {
		return 0, r.remove(ctx, cluster, work, s)
	}
	if cluster == nil {
		return 0, nil // its arrival wakes the Work
	}
	return r.dispatch(ctx, cluster, work, s)
}

// removed forgets a Work that is gone, and the cluster with its last one.
func (r *runner) removed(ctx context.Context, name string) error {
	r.forget(name)
	cluster, err := r.c.cluster(ctx, r.cluster)
	if err != nil || cluster != nil {
		return err
	}
	r.mu.Lock()
	left := len(r.works)
	r.mu.Unlock()
	if left == 0 {
		go r.c.retire(r) // waits for the workers, of which this is one
	}
	return nil
}

// dispatch brings the objects of a Work into the member and reports on them.
func (r *runner) dispatch(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, s *state) (time.Duration, error) {
	suspended := ptr.Deref(work.Spec.SuspendDispatching, false)
	if !ready(cluster) {
		// The Work waits for the cluster, which wakes it when it is Ready.
		return r.report(ctx, work, s, report{suspended: suspended})
	}
	member, err := r.c.deps.Members.Member(ctx, cluster)
	if err != nil {
		return 0, fmt.Errorf("opening cluster %s: %w", r.cluster, err)
	}
	r.rebind(member)
	rep := report{suspended: suspended, reachable: true}
	if suspended {
		if err := r.followAll(member, work, s); err != nil {
			return 0, err
		}
		return r.report(ctx, work, s, rep)
	}
	began := r.c.deps.Clock.Now()
	rep.applied = new(r.apply(ctx, member, work, s))
	s.failing.Store(rep.applied.err != nil)
	r.c.metrics.synced(r.c.deps.Clock.Since(began), rep.applied.err)
	wait, err := r.report(ctx, work, s, rep)
	if err == nil {
		err = rep.applied.err
	}
	if wait == 0 || rep.applied.wait > 0 && rep.applied.wait < wait {
		wait = rep.applied.wait
	}
	return wait, err
}

// followAll has the objects of a suspended Work observed, if they were applied.
func (r *runner) followAll(member memberMapper, work *workv1alpha1.Work, s *state) error {
	if !appliedTrue(&work.Status) {
		return nil
	}
	if err := r.load(work, s); err != nil {
		return err
	}
	for _, o := range s.objects {
		if err := r.resolve(member, work.Name, o); err != nil {
			return err
		}
	}
	return nil
}
