package execution

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/metrics"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// reconcile reconciles one Work. It returns when to do so again if nothing happens until
// then: never if 0.
func (r *runner) reconcile(ctx context.Context, name string) (time.Duration, error) {
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
	if cluster != nil && !cluster.DeletionTimestamp.IsZero() {
		r.leave()
	}
	s := r.works.get(name, work.UID)
	if !work.DeletionTimestamp.IsZero() {
		return 0, r.remove(ctx, cluster, work, s)
	}
	if cluster == nil {
		return 0, nil // the event of its creation enqueues the Work
	}
	if services.Stored(work) {
		return 0, nil
	}
	return r.dispatch(ctx, cluster, work, s)
}

// removed drops the state of a Work that is gone, and with the last one the runner of a
// cluster that is gone.
func (r *runner) removed(ctx context.Context, name string) error {
	r.forget(name)
	cluster, err := r.c.cluster(ctx, r.cluster)
	if err == nil && cluster == nil && r.works.len() == 0 {
		go r.c.retire(r.base, r) //nolint:contextcheck // it waits for the workers, of which this is one, and outlives the request
	}
	return err
}

// dispatch applies the objects of a Work to the member and writes the status.
func (r *runner) dispatch(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, s *workState) (time.Duration, error) {
	rep := report{suspended: ptr.Deref(work.Spec.SuspendDispatching, false)}
	if !cluster.Ready() {
		// The event that the cluster became Ready enqueues the Work.
		return r.reporter.report(ctx, work, s, rep)
	}
	m, err := r.open(ctx, cluster)
	if err != nil {
		return 0, err
	}
	rep.reachable = true
	if rep.suspended {
		if err := r.applier.observe(m, work, s); err != nil {
			return 0, err
		}
		return r.reporter.report(ctx, work, s, rep)
	}
	began := r.c.deps.Clock.Now()
	rep.result = new(r.applier.apply(ctx, m, work, s))
	if err = rep.result.Err; rep.result.Immutable {
		err = nil // it is published, and nothing is repeated
	}
	s.failing.Store(err != nil)
	r.c.duration.WithLabelValues(metrics.Result(rep.result.Err)).Observe(r.c.deps.Clock.Since(began).Seconds())
	wait, statusErr := r.reporter.report(ctx, work, s, rep)
	if statusErr != nil {
		err = statusErr
	}
	if wait == 0 || rep.result.wait > 0 && rep.result.wait < wait {
		wait = rep.result.wait
	}
	return wait, err
}

// open returns the member and has the informers use it.
func (r *runner) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error) {
	m, err := r.c.deps.Members.Member(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", r.cluster, err)
	}
	r.informers.Bind(m)
	return m, nil
}
