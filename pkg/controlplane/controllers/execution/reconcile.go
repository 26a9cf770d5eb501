package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// reconciliation is one reconciliation of a Work: what was read, what is decided, and how it ended.
type reconciliation struct {
	work    *workv1alpha1.Work
	cluster *clusterv1alpha1.Cluster // nil if it does not exist
	state   *workState
	step    execution.Step
	// member is set for the steps that need it.
	member *access.Member
	// result is how the objects were applied; nil if that was not tried.
	result *result
	// again is when to reconcile the Work again if nothing happens until then: never if 0.
	again time.Duration
}

// reconcile reconciles one Work. It returns when to do so again if nothing happens until then: never if 0.
func (r *runner) reconcile(ctx context.Context, name string) (time.Duration, error) {
	t, err := r.load(ctx, name)
	if err != nil || t == nil {
		return 0, err
	}
	switch t.step {
	case execution.StepNone:
	case execution.StepAnswer:
		r.forget(name)
		err = r.answer(ctx, t)
	case execution.StepAddFinalizer:
		err = r.finalizer.add(ctx, t.work) // its event enqueues the Work
	case execution.StepRemove, execution.StepRemoveFinalizer:
		err = r.remove(ctx, t)
	case execution.StepReport, execution.StepObserve, execution.StepApply:
		if err = r.apply(ctx, t); err == nil {
			err = cmp.Or(r.report(ctx, t), t.result.failure())
		}
	}
	return t.again, err
}

// load reads a Work and its cluster, and decides what is done. It returns nil if the Work is gone.
func (r *runner) load(ctx context.Context, name string) (*reconciliation, error) {
	t := &reconciliation{work: &workv1alpha1.Work{}}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, t.work, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		r.forget(name)
		return nil, nil
	}
	if err == nil {
		t.cluster, err = r.find(ctx, r.cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("reading work %s/%s: %w", r.namespace, name, err)
	}
	t.step = execution.Next(t.work, t.cluster, t.cluster != nil && r.deps.Accept(t.cluster), services.Stored(t.work))
	if t.state = r.state(t.work); t.state.finalized {
		return nil, nil
	}
	if t.cluster != nil && !t.cluster.DeletionTimestamp.IsZero() {
		r.leave()
	}
	switch t.step {
	case execution.StepObserve, execution.StepApply, execution.StepRemove:
		t.member, err = r.open(ctx, t.cluster)
	default:
	}
	return t, err
}

const (
	// finalizingGrace is how long an object may be being deleted before the Work reports what it waits for, and finalizingRetry the
	// longest time between checks.
	finalizingGrace, finalizingRetry = 30 * time.Second, 2 * time.Minute
	// answerTimeout is how long an agent waits for the answer whether a Work that is being deleted is wanted. Without it, the objects are
	// deleted.
	answerTimeout = 5 * time.Second
)

// remove deletes or releases the objects of a Work that is being deleted, if they can be reached, and then removes its finalizer. Objects
// that the binding still wants stay as they are: another Work follows.
func (r *runner) remove(ctx context.Context, t *reconciliation) error {
	if t.step == execution.StepRemove {
		wanted, err := r.wants(ctx, t)
		if err == nil && t.again == 0 && !wanted {
			err = r.clear(ctx, t)
		}
		if err != nil || t.again > 0 {
			return err
		}
	}
	if err := r.finalizer.remove(ctx, t.work); err != nil {
		return err
	}
	t.state.finalized = true
	r.deps.Stuck.clear(r.cluster, t.work.Name)
	r.release(t.work.Name, t.state)
	return nil
}

// wants reports whether the objects of a Work that is being deleted stay. An agent waits for the answer.
func (r *runner) wants(ctx context.Context, t *reconciliation) (bool, error) {
	if of, _ := scope.BindingOf(t.work); of == nil || r.deps.ReadBindings {
		return r.wanted(ctx, t)
	}
	answer := t.work.Annotations[workv1alpha2.WantedAnnotation]
	if t.state.leaving.IsZero() {
		t.state.leaving = r.deps.Clock.Now()
	}
	if wait := answerTimeout - r.deps.Clock.Since(t.state.leaving); answer == "" {
		t.again = max(0, wait)
	}
	return answer == "true", nil
}

// clear removes the objects. It tries again while the member is deleting them: a cluster that is removed does not wait for that.
func (r *runner) clear(ctx context.Context, t *reconciliation) error {
	waits, err := r.clearObjects(ctx, t)
	since := r.deps.Clock.Since(t.work.DeletionTimestamp.Time)
	switch {
	case errors.Is(err, errNotEmpty):
		t.again = emptyRetry
		return nil
	case err != nil:
		return errors.Join(err, r.reportRemoving(ctx, t, workv1alpha1.WorkRemovalFailedReason, err.Error()))
	case len(waits) == 0 || !t.cluster.DeletionTimestamp.IsZero():
		return nil
	}
	if t.again = max(emptyRetry, min(since/4, finalizingRetry)); since < finalizingGrace {
		return nil
	}
	return r.reportRemoving(ctx, t, workv1alpha1.WorkFinalizingReason, strings.Join(waits, "; "))
}

// answer writes, for the agent of a cluster, which sees no bindings, whether a Work that is being deleted is wanted.
func (r *runner) answer(ctx context.Context, t *reconciliation) error {
	of, _ := scope.BindingOf(t.work)
	if of == nil || !r.deps.ReadBindings || t.work.DeletionTimestamp.IsZero() || t.work.Annotations[workv1alpha2.WantedAnnotation] != "" {
		return nil
	}
	wanted, err := r.wanted(ctx, t)
	if err != nil {
		return err
	}
	change := map[string]any{"annotations": map[string]string{workv1alpha2.WantedAnnotation: strconv.FormatBool(wanted)}}
	return client.IgnoreNotFound(r.client.Patch(ctx, patch.Named(t.work), patch.Metadata(change, t.work.UID, "")))
}

// wanted reports whether the binding of a Work wants it: somebody else deleted the Work. The cache is asked first, because bindings delete most
// Works.
func (r *runner) wanted(ctx context.Context, t *reconciliation) (bool, error) {
	of, key := scope.BindingOf(t.work)
	if of == nil || !r.deps.ReadBindings || !t.cluster.DeletionTimestamp.IsZero() {
		return false, nil
	}
	for _, reader := range []client.Reader{r.client, r.live} {
		binding := of.New()
		if err := reader.Get(ctx, key, binding); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if !of.Wants(binding, t.work) {
			return false, nil
		}
	}
	return true, nil
}

// finalizer adds and removes the finalizer of Works.
type finalizer struct {
	client client.Client
	live   client.Reader
	// updateOnly reports that patching a Work was forbidden.
	updateOnly atomic.Bool
}

// maxAttempts limits the writes of one object that conflict with those of others.
const maxAttempts = 4

// add adds the finalizer of the controller. The next event of the Work repeats it if somebody else changed the Work meanwhile.
func (f *finalizer) add(ctx context.Context, work *workv1alpha1.Work) error {
	return client.IgnoreNotFound(f.write(ctx, work, append(slices.Clone(work.Finalizers), workv1alpha2.ExecutionControllerFinalizer)))
}

// remove removes the finalizer of the controller. The cached Work may be out of date, so each write requires the version that it was computed
// from.
func (f *finalizer) remove(ctx context.Context, work *workv1alpha1.Work) error {
	uid := work.UID
	for range maxAttempts {
		err := f.write(ctx, work, slices.DeleteFunc(slices.Clone(work.Finalizers), func(name string) bool {
			return name == workv1alpha2.ExecutionControllerFinalizer
		}))
		if apierrors.IsConflict(err) {
			stored := &workv1alpha1.Work{}
			if err = f.live.Get(ctx, client.ObjectKeyFromObject(work), stored); err == nil && stored.UID == uid {
				work = stored
				continue
			}
		}
		if err = client.IgnoreNotFound(err); err != nil {
			return fmt.Errorf("removing the finalizer of work %s/%s: %w", work.Namespace, work.Name, err)
		}
		return nil
	}
	return fmt.Errorf("removing the finalizer of work %s/%s: it keeps changing", work.Namespace, work.Name)
}

// write sets the finalizers of a version of a Work. Agents that other tools registered may update Works, but not patch them.
func (f *finalizer) write(ctx context.Context, work *workv1alpha1.Work, finalizers []string) error {
	if !f.updateOnly.Load() {
		err := f.client.Patch(ctx, patch.Named(work), patch.Metadata(map[string]any{"finalizers": finalizers}, work.UID, work.ResourceVersion))
		if !apierrors.IsForbidden(err) {
			return err
		}
		f.updateOnly.Store(true)
	}
	updated := work.DeepCopy()
	updated.Finalizers = finalizers
	return f.client.Update(ctx, updated)
}

// reconcileClusterless removes the finalizer of a Work that is being deleted and whose cluster does not exist.
func (c *Controller) reconcileClusterless(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	work := &workv1alpha1.Work{}
	if err := c.client.Get(ctx, key, work, client.UnsafeDisableDeepCopy); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if r := c.runner(ctx, work); r != nil {
		r.addLow(work.Name)
		return 0, nil
	}
	if execution.Next(work, nil, false, false) != execution.StepRemoveFinalizer {
		return 0, nil // the event of the creation of the cluster enqueues the Work
	}
	return 0, c.finalizer.remove(ctx, work)
}
