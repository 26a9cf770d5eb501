package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// immutableRetry is the time until fields are written again that a member did not change. A change of an object that belongs to
// the Work, or of the template, writes them before.
const immutableRetry = time.Minute

// result is how the objects of a Work were applied.
type result struct {
	execution.Result
	failed []failedObject
}

// failure returns why the Work is reconciled again: nil after errors that are published, and that no repetition helps.
func (r *result) failure() error {
	if r == nil || r.Immutable {
		return nil
	}
	return r.Err
}

// problem returns why objects were not applied, beginning with one of them; empty if they were.
func (r *result) problem() string {
	if r.Err == nil {
		return ""
	}
	if len(r.failed) > 0 {
		return r.failed[0].name + ": " + r.failed[0].message
	}
	return execution.Text(r.Err.Error())
}

// apply does what a step needs of the objects in the member.
func (r *runner) apply(ctx context.Context, t *reconciliation) error {
	switch {
	case t.step == execution.StepApply:
		began := r.deps.Clock.Now()
		t.result = &result{Result: execution.Result{Total: len(t.work.Spec.Workload.Manifests)}}
		t.result.Err = r.applyObjects(ctx, t)
		if onlyImmutable(t.result.Err) {
			t.result.Immutable, t.again = true, immutableRetry
		}
		if of, _ := scope.BindingOf(t.work); of == nil {
			r.deps.Stuck.set(r.cluster, stuckApply, t.work.Name, t.result.problem())
		}
		r.duration.WithLabelValues(metrics.Result(t.result.Err)).Observe(r.deps.Clock.Since(began).Seconds())
	case t.step == execution.StepObserve && execution.IsApplied(&t.work.Status):
		if err := r.parse(t.work, t.state); err != nil {
			return err
		}
		for _, o := range t.state.objects {
			if err := r.resolve(t.member, t.work.Name, o); err != nil { //nolint:contextcheck // what it begins ends with the runner
				return err
			}
			view, _ := r.view(o.kind, o.key)
			o.applied = o.applied.Observed(view.Snapshot)
		}
	}
	return nil
}

// applyObjects applies the objects of a Work to the member.
func (r *runner) applyObjects(ctx context.Context, t *reconciliation) error {
	if err := r.parse(t.work, t.state); err != nil {
		return err
	}
	errs := r.clearRemoved(ctx, t)
	for i := range t.state.objects {
		wait, complete, err := r.applyObject(ctx, t, i)
		switch {
		case err != nil:
			errs = append(errs, err)
			t.result.failed = append(t.result.failed, failure(t.work.Spec.Workload.Manifests[i].Raw, err))
			continue
		case !complete:
			t.result.Incomplete = true
		default:
			t.result.Succeeded++
		}
		t.again = controllers.Earliest(t.again, wait)
	}
	return utilerrors.NewAggregate(errs)
}

// applyObject applies one object to the member. It returns when to do so again if
// nothing happens until then, and whether the object is as desired.
func (r *runner) applyObject(ctx context.Context, t *reconciliation, i int) (wait time.Duration, complete bool, err error) {
	o := t.state.objects[i]
	if err := r.resolve(t.member, t.work.Name, o); err != nil { //nolint:contextcheck // what it begins ends with the runner
		return 0, false, err
	}
	view, revision := r.view(o.kind, o.key)
	o.applied = o.applied.WithRevision(revision)
	action, wait := execution.Decide(execution.Facts{
		Applied: o.applied, View: view, Now: r.deps.Clock.Now(),
		Preexisting: meta.FindStatusCondition(t.work.Status.Conditions, workv1alpha1.WorkApplied) != nil,
	})
	switch action {
	case execution.ActionWait:
		return wait, false, nil
	case execution.ActionNone:
		o.applied = o.applied.Confirmed(view.Snapshot)
		return wait, true, nil
	}
	w := r.writer(t, o)
	if w.statusIsField, err = t.member.StatusIsField(o.gvr); err != nil {
		return 0, false, err
	}
	if o.applied, err = w.apply(ctx, o.applied, t.work.Spec.Workload.Manifests[i].Raw, action, view.Snapshot); err != nil {
		return 0, false, err
	}
	if !view.Synced {
		r.retry(o.kind)
	}
	return wait, true, nil
}

// writer returns the writer of an object.
func (r *runner) writer(t *reconciliation, o *object) *writer {
	w := &writer{
		cluster: r.cluster, timeout: r.deps.Timeout, hasher: r.hasher, clock: r.deps.Clock, metrics: r.writes, retainer: r.rules,
		written: func(obj *unstructured.Unstructured) { r.events.objectApplied(obj, r.cluster) },
		member:  t.member, gvk: o.gvk, key: o.key, work: types.NamespacedName{Namespace: t.work.Namespace, Name: t.work.Name},
		current: func(ctx context.Context) error { return r.current(ctx, t.work) },
	}
	if w.resource = t.member.Dynamic().Resource(o.gvr); o.key.Namespace != "" {
		w.resource = t.member.Dynamic().Resource(o.gvr).Namespace(o.key.Namespace)
	}
	return w
}

// current returns an error if the control plane has another Work than the cache.
func (r *runner) current(ctx context.Context, work *workv1alpha1.Work) error {
	stored := &workv1alpha1.Work{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(work), stored); err != nil {
		return fmt.Errorf("reading work %s/%s after a conflict: %w", work.Namespace, work.Name, err)
	}
	if stored.UID != work.UID || !sameManifests(stored.Spec.Workload.Manifests, work.Spec.Workload.Manifests) {
		return fmt.Errorf("work %s/%s has changed since it was read, trying again with the current one", work.Namespace, work.Name)
	}
	return nil
}

// clearObjects deletes or releases the objects of a Work. It returns what those wait for that are being deleted.
func (r *runner) clearObjects(ctx context.Context, t *reconciliation) (waits []string, err error) {
	if err := r.parse(t.work, t.state); err != nil {
		ctrllog.FromContext(ctx).Info("Leaving the objects of a Work whose manifests are invalid", "Work", t.work.Name, "err", err)
		return nil, nil
	}
	errs := r.clearRemoved(ctx, t)
	for _, o := range t.state.objects {
		more, err := r.clearObject(ctx, t, o)
		errs = append(errs, err)
		if len(more) > 0 {
			waits = append(waits, fmt.Sprintf("%s %s waits for %s", o.gvk.Kind, strings.TrimPrefix(o.key.String(), "/"), strings.Join(more, ", ")))
		}
	}
	return waits, errors.Join(errs...)
}

// clearRemoved deletes or releases the objects of manifests that a Work had, and keeps those in mind that fail.
func (r *runner) clearRemoved(ctx context.Context, t *reconciliation) (errs []error) {
	t.state.removed = slices.DeleteFunc(t.state.removed, func(o *object) bool {
		_, err := r.clearObject(ctx, t, o)
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	})
	return errs
}

// clearObject deletes or releases an object of a Work. It returns what the object waits for if it is being deleted.
func (r *runner) clearObject(ctx context.Context, t *reconciliation, o *object) ([]string, error) {
	mapping, err := t.member.Mapping(o.gvk)
	if meta.IsNoMatchError(err) {
		return nil, nil // it was deleted with its type
	}
	if err != nil {
		return nil, fmt.Errorf("finding the resource of %s: %w", o.gvk, err)
	}
	o.gvr = mapping.Resource
	w := r.writer(t, o)
	kept := ptr.Deref(t.work.Spec.PreserveResourcesOnDeletion, false)
	if namespace := corev1.SchemeGroupVersion.WithKind("Namespace"); !kept && o.gvk == namespace {
		occupant, err := r.occupant(ctx, t, o.key.Name)
		if err != nil {
			return nil, err
		}
		if kept = occupant != ""; kept {
			r.events.namespaceKept(r.cluster, o.key.Name, occupant)
		}
	}
	if kept {
		return nil, w.release(ctx)
	}
	var known *execution.Snapshot
	if o.kind != nil {
		view, _ := r.view(o.kind, o.key)
		known = view.Snapshot
	}
	return w.remove(ctx, known)
}

// errNotEmpty is returned for a namespace whose deletion waits for that of the objects of other Works in it.
var errNotEmpty = errors.New("the namespace waits for the deletion of the objects in it")

const (
	// emptyRetry is the time between checks whether these are gone.
	emptyRetry = 2 * time.Second
	// emptyLimit is how long a namespace waits for objects whose Works are not being deleted. Then it stays.
	emptyLimit = 30 * time.Second
)

// occupant returns what a namespace is kept for that a member loses with a Work, or "" if it is to be deleted: deleting it would delete
// objects that are preserved, or that the control plane did not put there. The objects of other Works go first.
func (r *runner) occupant(ctx context.Context, t *reconciliation, namespace string) (string, error) {
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.InNamespace(r.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing works: %w", err)
	}
	mayWait := t.work.DeletionTimestamp != nil && r.deps.Clock.Since(t.work.DeletionTimestamp.Time) < emptyLimit
	known := map[string]bool{}
	for i := range list.Items {
		other := &list.Items[i]
		known[other.Name] = true
		if other.Name == t.work.Name {
			continue
		}
		if _, key := scope.BindingOf(other); key.Namespace == namespace {
			if other.DeletionTimestamp == nil && !mayWait {
				return "the object of work " + other.Name, nil
			}
			return "", errNotEmpty
		}
	}
	wait := false
	found, err := orphans.Occupant(ctx, t.member, namespace, func(o *metav1.PartialObjectMetadata) bool {
		ours := mayWait && o.Annotations[workv1alpha2.WorkNamespaceAnnotation] == r.namespace && known[o.Annotations[workv1alpha2.WorkNameAnnotation]]
		wait = wait || ours
		return ours
	})
	if err == nil && found == "" && wait {
		err = errNotEmpty
	}
	return found, err
}
