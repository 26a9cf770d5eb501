package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// reconcile reconciles one Work. It returns when to do so again if nothing happens until
// then: never if 0.
func (r *runner) reconcile(ctx context.Context, name string) (time.Duration, error) {
	work := &workv1alpha1.Work{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, work, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return 0, r.removed(ctx, name)
	}
	if err != nil {
		return 0, fmt.Errorf("reading work %s/%s: %w", r.namespace, name, err)
	}
	cluster, err := r.current(ctx, r.cluster)
	if err != nil {
		return 0, err
	}
	if cluster != nil && !r.deps.Accept(cluster) {
		r.forget(name)
		return 0, r.answer(ctx, cluster, work)
	}
	if cluster != nil && !cluster.DeletionTimestamp.IsZero() {
		r.leave()
	}
	s := r.works.get(name, work.UID)
	if !work.DeletionTimestamp.IsZero() {
		return r.remove(ctx, cluster, work, s)
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
	cluster, err := r.current(ctx, r.cluster)
	if err == nil && cluster == nil && r.works.len() == 0 {
		go r.retire(r) // it waits for the workers, of which this is one, and outlives the request
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
	if !slices.Contains(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer) { // somebody wrote it by hand
		err := r.finalizer.write(ctx, work, append(slices.Clone(work.Finalizers), workv1alpha2.ExecutionControllerFinalizer))
		return 0, client.IgnoreNotFound(err) // its event enqueues the Work
	}
	began := r.deps.Clock.Now()
	rep.result = new(r.applier.apply(ctx, m, work, s))
	if err = rep.result.Err; rep.result.Immutable {
		err = nil // it is published, and nothing is repeated
	}
	s.failing.Store(err != nil)
	if of, _ := scope.BindingOf(work); of == nil {
		r.deps.Stuck.set(r.cluster, stuckApply, work.Name, rep.result.problem())
	}
	r.duration.WithLabelValues(metrics.Result(rep.result.Err)).Observe(r.deps.Clock.Since(began).Seconds())
	wait, statusErr := r.reporter.report(ctx, work, s, rep)
	if statusErr != nil {
		err = statusErr
	}
	return controllers.Earliest(wait, rep.result.wait), err
}

// open returns the member and has the informers use it.
func (r *runner) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error) {
	m, err := r.deps.Members.Member(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", r.cluster, err)
	}
	r.informers.Bind(m)
	return m, nil
}

// remove deletes or releases the objects of a Work that is being deleted, and then
// removes its finalizer. If the cluster is not Ready, that waits until it is, or until
// the cluster is being deleted too. Objects that the binding still wants stay as they are:
// another Work follows. It returns when to try again if an agent waits for the answer to that.
func (r *runner) remove(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, s *workState) (time.Duration, error) {
	if s.finalized || !slices.Contains(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer) {
		return 0, nil
	}
	if cluster != nil && !cluster.Ready() && cluster.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	if cluster != nil && cluster.Ready() {
		m, err := r.open(ctx, cluster)
		if err != nil {
			return 0, err
		}
		wanted, wait, err := r.keeps(ctx, cluster, work, s)
		if err != nil || wait > 0 {
			return wait, err
		}
		if wait, err := r.clear(ctx, m, cluster, work, s, wanted); err != nil || wait > 0 {
			return wait, err
		}
	}
	if err := r.finalizer.remove(ctx, work); err != nil {
		return 0, err
	}
	s.finalized = true
	r.deps.Stuck.clear(r.cluster, work.Name)
	r.works.release(work.Name, s)
	return 0, nil
}

const (
	// finalizingGrace is how long an object may be being deleted before the Work reports what it waits for, and finalizingRetry the
	// longest time between checks.
	finalizingGrace, finalizingRetry = 30 * time.Second, 2 * time.Minute
)

// clear removes the objects of a Work that is being deleted, unless the binding still wants them. It returns when to check again those that
// the member is deleting: a cluster that is removed does not wait for them.
func (r *runner) clear(ctx context.Context, m *access.Member, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, s *workState, wanted bool) (time.Duration, error) {
	if wanted {
		return 0, nil
	}
	waits, err := r.applier.clear(ctx, m, work, s)
	since := r.deps.Clock.Since(work.DeletionTimestamp.Time)
	switch {
	case errors.Is(err, errNotEmpty):
		return emptyRetry, nil
	case err != nil:
		return 0, errors.Join(err, r.reporter.removing(ctx, work, s, workv1alpha1.WorkRemovalFailedReason, err.Error()))
	case len(waits) == 0 || !cluster.DeletionTimestamp.IsZero():
		return 0, nil
	case since >= finalizingGrace:
		err = r.reporter.removing(ctx, work, s, workv1alpha1.WorkFinalizingReason, strings.Join(waits, "; "))
	}
	return max(emptyRetry, min(since/4, finalizingRetry)), err
}

// answerTimeout is how long an agent waits for the answer whether a Work that is being deleted is wanted. Without it, the objects are
// deleted.
const answerTimeout = 5 * time.Second

// keeps reports whether the objects of a Work that is being deleted stay, or how long to wait for the answer.
func (r *runner) keeps(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, s *workState) (bool, time.Duration, error) {
	if of, _ := scope.BindingOf(work); of == nil || r.deps.ReadBindings {
		wanted, err := r.wanted(ctx, cluster, work)
		return wanted, 0, err
	}
	answer := work.Annotations[workv1alpha2.WantedAnnotation]
	if s.leaving.IsZero() {
		s.leaving = r.deps.Clock.Now()
	}
	if wait := answerTimeout - r.deps.Clock.Since(s.leaving); answer == "" && wait > 0 {
		return false, wait, nil
	}
	return answer == "true", 0, nil
}

// answer writes, for the agent of a cluster, which sees no bindings, whether a Work that is being deleted is wanted.
func (r *runner) answer(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work) error {
	of, _ := scope.BindingOf(work)
	if of == nil || !r.deps.ReadBindings || work.DeletionTimestamp.IsZero() || work.Annotations[workv1alpha2.WantedAnnotation] != "" {
		return nil
	}
	wanted, err := r.wanted(ctx, cluster, work)
	if err != nil {
		return err
	}
	data, err := patch.Metadata(map[string]any{"annotations": map[string]string{workv1alpha2.WantedAnnotation: strconv.FormatBool(wanted)}}, work.UID, "")
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.client.Patch(ctx, work.DeepCopy(), client.RawPatch(types.MergePatchType, data)))
}

// wanted reports whether the binding of a Work wants it: somebody else deleted the Work. The
// cache is asked first, because bindings delete most Works.
func (r *runner) wanted(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work) (bool, error) {
	of, key := scope.BindingOf(work)
	if of == nil || !r.deps.ReadBindings || !cluster.DeletionTimestamp.IsZero() {
		return false, nil
	}
	for _, reader := range []client.Reader{r.client, r.live} {
		binding := of.New()
		if err := reader.Get(ctx, key, binding); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if !of.Wants(binding, work) {
			return false, nil
		}
	}
	return true, nil
}

// finalizer removes the finalizer of Works.
type finalizer struct {
	client client.Client
	live   client.Reader
	// updateOnly reports that patching a Work was forbidden.
	updateOnly atomic.Bool
}

// maxAttempts limits the writes of the finalizers of a Work that conflict with others.
const maxAttempts = 4

// remove removes the finalizer of the controller. The cached Work may be out of date, so
// each write requires the version that it was computed from.
func (f *finalizer) remove(ctx context.Context, work *workv1alpha1.Work) error {
	for range maxAttempts {
		err := f.write(ctx, work, slices.DeleteFunc(slices.Clone(work.Finalizers), func(name string) bool {
			return name == workv1alpha2.ExecutionControllerFinalizer
		}))
		if !apierrors.IsConflict(err) {
			if err = client.IgnoreNotFound(err); err != nil {
				return fmt.Errorf("removing the finalizer of work %s/%s: %w", work.Namespace, work.Name, err)
			}
			return nil
		}
		stored := &workv1alpha1.Work{}
		if err := f.live.Get(ctx, client.ObjectKeyFromObject(work), stored); err != nil {
			return client.IgnoreNotFound(err)
		}
		if stored.UID != work.UID {
			return nil
		}
		work = stored
	}
	return fmt.Errorf("removing the finalizer of work %s/%s: it keeps changing", work.Namespace, work.Name)
}

// write sets the finalizers of a version of a Work. Agents that other tools registered
// may update Works, but not patch them.
func (f *finalizer) write(ctx context.Context, work *workv1alpha1.Work, finalizers []string) error {
	if !f.updateOnly.Load() {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": work.UID, "resourceVersion": work.ResourceVersion, "finalizers": finalizers,
		}})
		if err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		key := metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}
		err = f.client.Patch(ctx, &workv1alpha1.Work{ObjectMeta: key}, client.RawPatch(types.MergePatchType, patch))
		if !apierrors.IsForbidden(err) {
			return err
		}
		f.updateOnly.Store(true)
	}
	updated := work.DeepCopy()
	updated.Finalizers = finalizers
	return f.client.Update(ctx, updated)
}
