package binding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// Reasons of events on bindings and templates.
const (
	ReasonSyncWorkSucceed   = "SyncWorkSucceed"
	ReasonSyncWorkFailed    = "SyncWorkFailed"
	ReasonCleanupWorkFailed = "CleanupWorkFailed"
)

const (
	// parallel is how many Works of one binding are written at the same time.
	parallel = 8
	// evictionPoll is how long to wait at most before looking again whether a
	// cluster was left.
	evictionPoll = 5 * time.Second
)

// errNoID is returned for a binding that admission did not see.
var errNoID = errors.New("the binding has no permanent id")

// Reconcile brings the Works of one binding in line with it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := r.scope.New()
	if err := r.client.Get(ctx, req.NamespacedName, b, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	id := r.scope.ID(b)
	if b.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, r.finalize(ctx, b, id)
	}
	if id == "" {
		return reconcile.Result{}, fmt.Errorf("%s %s: %w", r.scope.Kind, req.NamespacedName, errNoID)
	}
	began := r.clock.Now()
	result, err := r.deliver(ctx, b, id)
	r.duration.WithLabelValues(metrics.Result(err)).Observe(r.clock.Since(began).Seconds())
	return result, err
}

// finalize deletes the Works of a binding that is being deleted and lets it go.
func (r *reconciler) finalize(ctx context.Context, b workv1alpha2.Binding, id string) error {
	drop, held, err := patch.RemoveFinalizer(b, r.scope.Finalizer)
	if err != nil || !held {
		return err
	}
	if id != "" {
		if err := r.deleteAll(ctx, b, id); err != nil {
			return err
		}
	}
	target := r.scope.New()
	target.SetNamespace(b.GetNamespace())
	target.SetName(b.GetName())
	if err := r.client.Patch(ctx, target, drop); client.IgnoreNotFound(err) != nil {
		// The API server's answer to a patch of finalizers that changed names no object.
		return fmt.Errorf("removing finalizer %s of %s %s: %w", r.scope.Finalizer, r.scope.Kind, client.ObjectKeyFromObject(b), err)
	}
	return nil
}

// unwanted returns the Works that are in none of the wanted clusters, or have
// another name than the binding's Works.
func (r *reconciler) unwanted(owner string, existing []workv1alpha1.Work, name string, wanted sets.Set[string]) []types.NamespacedName {
	var out []types.NamespacedName
	for _, key := range r.ledger.unseen(owner, existing) {
		if !inWanted(key.Namespace, wanted) {
			out = append(out, key)
		}
	}
	for i := range existing {
		w := &existing[i]
		if w.DeletionTimestamp == nil && (w.Name != name || !inWanted(w.Namespace, wanted)) {
			out = append(out, client.ObjectKeyFromObject(w))
		}
	}
	return out
}

func inWanted(namespace string, wanted sets.Set[string]) bool {
	cluster, err := names.ClusterOfExecutionNamespace(namespace)
	return err == nil && wanted.Has(cluster)
}

func (r *reconciler) deleteWorks(ctx context.Context, owner string, keys []types.NamespacedName) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, key := range keys {
		g.Go(func() error {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if err := r.client.Delete(ctx, work); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting work %s: %w", key, err)
			}
			r.ledger.deleted(owner, key)
			return nil
		})
	}
	return g.Wait()
}

func (r *reconciler) cleanupFailed(b workv1alpha2.Binding, err error) error {
	r.events.Warning(b, ReasonCleanupWorkFailed, err.Error())
	return err
}

// deliver brings the Works in line with a binding that may deliver its template,
// and deletes those of one that must not.
func (r *reconciler) deliver(ctx context.Context, b workv1alpha2.Binding, id string) (reconcile.Result, error) {
	refusal, err := r.refusal(ctx, b)
	if err != nil {
		return reconcile.Result{}, err
	}
	if refusal != nil {
		return reconcile.Result{}, r.refuse(ctx, b, id, refusal)
	}
	return r.sync(ctx, b, id)
}

func (r *reconciler) sync(ctx context.Context, b workv1alpha2.Binding, id string) (reconcile.Result, error) {
	spec := b.GetSpec()
	existing, err := r.worksOf(ctx, b, id)
	if err != nil {
		return reconcile.Result{}, err
	}
	targets := scope.Targets(spec)
	name := names.Work(spec.Resource.Kind, spec.Resource.Name, spec.Resource.Namespace)
	orphans := r.unwanted(ledgerKey(b, id), existing, name, scope.Names(scope.Kept(targets, spec.GracefulEvictionTasks)))
	if err := r.deleteWorks(ctx, ledgerKey(b, id), orphans); err != nil {
		return reconcile.Result{}, r.cleanupFailed(b, err)
	}
	if stillThere(existing, leaving(spec, targets)) {
		return reconcile.Result{RequeueAfter: evictionPoll}, nil
	}
	ref := &spec.Resource
	obj, err := r.store.Get(ctx, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if b, err = r.hold(ctx, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	s := &syncing{reconciler: r, binding: b, id: id, template: obj, targets: targets, existing: existing}
	changed, err := s.run(ctx)
	r.report(s, changed || len(orphans) > 0, err)
	return reconcile.Result{}, errors.Join(err, r.recordOverrides(ctx, b, err))
}

// report publishes what came of a sync, if anything.
func (r *reconciler) report(s *syncing, changed bool, err error) {
	name := s.binding.GetName()
	if r.scope.Namespaced {
		name = s.binding.GetNamespace() + "/" + name
	}
	switch {
	case err != nil:
		message := fmt.Sprintf("Failed to sync work of %s(%s): %v", r.scope.Kind, name, err)
		r.events.Warning(s.binding, ReasonSyncWorkFailed, message)
		r.events.Warning(s.template, ReasonSyncWorkFailed, message)
	case changed:
		message := fmt.Sprintf("Sync work of %s(%s) successful.", r.scope.Kind, name)
		r.events.Normal(s.template, ReasonSyncWorkSucceed, message)
		r.events.Recovered(s.binding)
		r.events.Detail(s.binding, ReasonSyncWorkSucceed, message)
	default:
		r.events.Recovered(s.template)
		r.events.Recovered(s.binding)
	}
}

// leaving returns the clusters that must be left before anything is written.
func leaving(spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster) sets.Set[string] {
	out := sets.New[string]()
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			out.Insert(task.FromCluster)
		}
	}
	for _, c := range targets {
		out.Delete(c.Name)
	}
	return out
}

func stillThere(existing []workv1alpha1.Work, clusters sets.Set[string]) bool {
	for i := range existing {
		if inWanted(existing[i].Namespace, clusters) {
			return true
		}
	}
	return false
}
