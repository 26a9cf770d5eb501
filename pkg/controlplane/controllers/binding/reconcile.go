package binding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

const (
	// parallel is the number of Works of one binding that are written at the same time.
	parallel = 8
	// slice is the number of Works of one binding that are written, or deleted, before its worker goes to the next binding.
	// A binding with more targets is wide.
	slice = 50
	// writeOn is the time until the next slice of writes, which comes behind all bindings that wait. deleteOn is that of
	// deletions: by then the cache shows most of those before.
	writeOn  = time.Nanosecond
	deleteOn = 100 * time.Millisecond
	// evictionPoll is the time between checks whether the Works of an evicted cluster
	// are deleted.
	evictionPoll = 5 * time.Second
	// maxMessage is the length of the message of a condition that the API server
	// accepts, in bytes.
	maxMessage = 32768
)

// errNoID is returned for a binding that admission did not label.
var errNoID = errors.New("the binding has no permanent id")

// outcome is what a reconcile found out about a binding.
type outcome struct {
	// binding is the binding as last written.
	binding workv1alpha2.Binding
	// known is true if refusal is known.
	known bool
	// refusal is why something is not delivered, or nil.
	refusal      *delivery.Refusal
	requeueAfter time.Duration
}

// Reconcile writes and deletes the Works of one binding.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := r.scope.New()
	err := r.client.Get(ctx, req.NamespacedName, b, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		r.writer.next.Delete(req.NamespacedName)
		r.pending.Forget(req.NamespacedName)
		return reconcile.Result{}, r.abandoned(ctx, req.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting %s %s: %w", r.scope.Kind, req.NamespacedName, err)
	}
	if b.GetDeletionTimestamp() != nil {
		after, err := r.finalize(ctx, b)
		return controllers.After(after, err)
	}
	if r.scope.ID(b) == "" {
		return reconcile.Result{}, fmt.Errorf("%s %s: %w", r.scope.Kind, req.NamespacedName, errNoID)
	}
	start := r.clock.Now()
	out, err := r.deliver(ctx, b)
	if out.known {
		if written := r.writeCondition(ctx, out.binding, out.refusal); written != nil {
			err = errors.Join(err, written)
		} else if permanent(err) {
			err = reconcile.TerminalError(err)
		}
	}
	r.duration.WithLabelValues(metrics.Result(err)).Observe(r.clock.Since(start).Seconds())
	return controllers.After(out.requeueAfter, err)
}

// permanent reports whether all that failed are overrides beyond their budget and Works that are too large. They fail alike
// until the policy, the template or the cluster changes, which the controller watches.
func permanent(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !permanent(err) })
	}
	return errors.Is(err, override.ErrBudget) || errors.Is(err, works.ErrTooLarge)
}

// finalize deletes the Works of a binding that is being deleted, unless they are left to
// the next binding, and then removes its finalizer. It returns when to try again if the
// Works are kept because the type of the template was deleted, or some are left to delete.
func (r *reconciler) finalize(ctx context.Context, b workv1alpha2.Binding) (time.Duration, error) {
	if !slices.Contains(b.GetFinalizers(), r.scope.Finalizer) {
		return 0, nil
	}
	if r.scope.ID(b) != "" {
		leave, kept, err := r.keeper.decide(ctx, b)
		if err != nil {
			return 0, err
		}
		if kept != nil {
			existing, err := r.owned.list(ctx, b)
			if err != nil {
				return 0, err
			}
			if len(existing) > 0 {
				r.events.refused(b, kept)
				return keptRetry, r.writeCondition(ctx, b, kept)
			}
		}
		if !leave {
			if more, err := r.deleteAll(ctx, b); more || err != nil {
				return deleteOn, err
			}
		}
	}
	return 0, patch.RemoveFinalizer(ctx, r.client, b, r.scope.Finalizer)
}

func (r *reconciler) deleteAll(ctx context.Context, b workv1alpha2.Binding) (more bool, err error) {
	more, err = r.owned.deleteAll(ctx, b)
	if err != nil {
		r.events.notCleanedUp(b, err)
	}
	return more, err
}

// deliver writes the Works of a binding that may deliver its template, and deletes
// those of one that must not.
func (r *reconciler) deliver(ctx context.Context, b workv1alpha2.Binding) (outcome, error) {
	refusal, err := r.guard.check(ctx, b)
	if err != nil {
		return outcome{}, err
	}
	if refusal == nil {
		return r.sync(ctx, b)
	}
	more, err := r.deleteAll(ctx, b)
	if err != nil {
		return outcome{}, err
	}
	r.events.refused(b, refusal)
	out := outcome{binding: b, known: true, refusal: refusal}
	if more {
		out.requeueAfter = deleteOn
	}
	return out, nil
}

// sync writes the Works of the targets and deletes the others.
func (r *reconciler) sync(ctx context.Context, b workv1alpha2.Binding) (outcome, error) {
	spec := b.GetSpec()
	existing, err := r.owned.list(ctx, b)
	if err != nil {
		return outcome{}, err
	}
	targets := scope.Targets(spec)
	name := names.Work(spec.Resource.Kind, spec.Resource.Name, spec.Resource.Namespace)
	unwanted, waiting := suspended(r.owned.unwanted(b, existing, name, scope.Names(scope.Kept(targets, spec.GracefulEvictionTasks))), spec.Suspension)
	more, err := r.owned.delete(ctx, b, unwanted)
	if err != nil {
		r.events.notCleanedUp(b, err)
		return outcome{}, err
	}
	if more {
		return outcome{requeueAfter: deleteOn}, nil
	}
	if anyIn(existing, purged(spec, targets)) {
		return outcome{binding: b, known: waiting != nil, refusal: waiting, requeueAfter: evictionPoll}, nil
	}
	if after := r.pending.Wait(b); after > 0 {
		return outcome{binding: b, known: waiting != nil, refusal: waiting, requeueAfter: after}, nil
	}
	ref := &spec.Resource
	template, err := r.store.Get(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return r.templateGone(ctx, b)
	}
	if err != nil {
		return outcome{}, err
	}
	if text := manifest.CannotDeactivate(template); text != "" {
		if _, claimed := policy.Of(template); claimed {
			refusal := &delivery.Refusal{Reason: delivery.ReasonActsInControlPlane, Message: text}
			r.events.refused(b, refusal)
			return outcome{binding: b, known: true, refusal: refusal}, nil
		}
	}
	if b, err = r.addFinalizer(ctx, b); err != nil {
		return outcome{}, client.IgnoreNotFound(err)
	}
	j := &job{binding: b, template: template, targets: targets, existing: existing}
	changed, more, err := r.writer.write(ctx, j)
	if more {
		return outcome{requeueAfter: writeOn}, nil
	}
	r.events.synced(j, changed || len(unwanted) > 0, err)
	refusal := cmp.Or(refusalOf(err), waiting)
	return outcome{binding: b, known: err == nil || refusal != nil, refusal: refusal}, err
}

// suspended takes the Works out of those to delete that are in clusters to which dispatching is suspended: nothing is deleted there
// until it resumes. It returns the others, and what the condition of the binding says, or nil.
func suspended(unwanted []types.NamespacedName, suspension *workv1alpha2.Suspension) ([]types.NamespacedName, *delivery.Refusal) {
	var rest []types.NamespacedName
	var clusters []string
	for _, key := range unwanted {
		cluster, err := names.ClusterOfExecutionNamespace(key.Namespace)
		if err != nil || !scope.DispatchingSuspended(suspension, cluster) {
			rest = append(rest, key)
		} else if !slices.Contains(clusters, cluster) {
			clusters = append(clusters, cluster)
		}
	}
	if len(clusters) == 0 {
		return rest, nil
	}
	slices.Sort(clusters)
	return rest, &delivery.Refusal{Reason: delivery.ReasonDeletionSuspended, Message: fmt.Sprintf(
		"Dispatching to clusters %s is suspended: the object stays there, although the binding does not want it any more, until it resumes", strings.Join(clusters, ", "))}
}

// refusalOf returns the condition for an error of writing Works, or nil.
func refusalOf(err error) *delivery.Refusal {
	switch {
	case errors.Is(err, override.ErrForbidden):
		return &delivery.Refusal{Reason: delivery.ReasonOverrideForbidden, Message: err.Error()}
	case errors.Is(err, override.ErrBudget):
		return &delivery.Refusal{Reason: delivery.ReasonOverrideTooLarge, Message: err.Error()}
	case errors.Is(err, works.ErrTooLarge):
		return &delivery.Refusal{Reason: delivery.ReasonWorkTooLarge, Message: err.Error()}
	}
	return nil
}

// templateGone reports in the condition of a binding that its template was deleted with
// its type. Otherwise the binding is about to be deleted.
func (r *reconciler) templateGone(ctx context.Context, b workv1alpha2.Binding) (outcome, error) {
	kept, err := r.keeper.deletedWithType(ctx, &b.GetSpec().Resource, b.GetCreationTimestamp())
	if err != nil || kept == nil {
		return outcome{}, err
	}
	r.events.refused(b, kept)
	return outcome{binding: b, known: true, refusal: kept, requeueAfter: keptRetry}, nil
}

// addFinalizer returns the binding with the finalizer of the controller: bindings that
// users create do not have it.
func (r *reconciler) addFinalizer(ctx context.Context, b workv1alpha2.Binding) (workv1alpha2.Binding, error) {
	next := b.DeepCopyObject().(workv1alpha2.Binding)
	if !controllerutil.AddFinalizer(next, r.scope.Finalizer) {
		return b, nil
	}
	stored, _, err := patch.Write(ctx, r.client, b, next)
	return stored, err
}

// writeCondition writes the condition of a refusal. A binding that is not refused has
// none.
func (r *reconciler) writeCondition(ctx context.Context, b workv1alpha2.Binding, refusal *delivery.Refusal) error {
	var none status.Written[*workv1alpha2.ResourceBindingStatus]
	_, err := r.status.Write(ctx, b, &none, func(s *workv1alpha2.ResourceBindingStatus) {
		if refusal == nil {
			meta.RemoveStatusCondition(&s.Conditions, workv1alpha2.Deliverable)
			return
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: workv1alpha2.Deliverable, Status: metav1.ConditionFalse, Reason: refusal.Reason,
			Message:            refusal.Message[:min(len(refusal.Message), maxMessage)],
			LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
	})
	return err
}

// purged returns the clusters whose Works must be deleted before any is written.
func purged(spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster) sets.Set[string] {
	out := sets.New[string]()
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			out.Insert(task.FromCluster)
		}
	}
	return out.Difference(scope.Names(targets))
}

// anyIn reports whether any Work is in one of the clusters.
func anyIn(list []workv1alpha1.Work, clusters sets.Set[string]) bool {
	return slices.ContainsFunc(list, func(w workv1alpha1.Work) bool { return inClusters(w.Namespace, clusters) })
}
