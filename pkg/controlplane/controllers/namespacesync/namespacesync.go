// Package namespacesync propagates the namespaces of the control plane to every
// member cluster.
package namespacesync

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// Component is the name of the controller.
const Component = "namespace-sync-controller"

// parallel is how many Works of one namespace are written at the same time.
const parallel = 16

type reconciler struct {
	client    client.Client
	store     *templates.Store
	skipped   *propagation.Namespaces
	works     *works.Writer
	overrides *works.Overrides
}

func namespaceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Namespace") }

// Setup adds the controller to the manager. Reserved namespaces, default and the skipped ones are not propagated.
func Setup(_ context.Context, e *env.Env, skipped *propagation.Namespaces) error {
	r := &reconciler{
		client: e.Client, store: e.Store, skipped: skipped, works: e.Works(),
		overrides: &works.Overrides{Events: events.ForManager(e.Manager, works.OverrideComponent, events.Transitions)},
	}
	return e.Controller(Component, e.NamespaceSyncs, 1).
		WatchesRawSource(templates.Source{Store: e.Store, Kinds: []schema.GroupKind{namespaceKind().GroupKind()}, Requests: r.changed}).
		Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(r.all), builder.WithPredicates(controllers.Created())).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, controllers.Enqueue(r.overridden),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(namespaceOfWork), builder.WithPredicates(r.works.ChangedByOthers())).
		Complete(r)
}

// Reconcile propagates one namespace to every cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ns, err := r.store.Get(ctx, namespaceKind(), "", req.Name)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if !r.skipped.Syncs(ns) {
		return reconcile.Result{}, nil
	}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := r.client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing clusters: %w", err)
	}
	policies, err := works.ListOverridePolicies(ctx, r.client, "")
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.each(ctx, ns, clusters.Items, policies)
}

// each writes the Work of every cluster, also when one of them fails.
func (r *reconciler) each(ctx context.Context, ns *unstructured.Unstructured, clusters []clusterv1alpha1.Cluster, policies override.Policies) error {
	errs := make([]error, len(clusters))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range clusters {
		cluster := &clusters[i]
		// The creation of an execution namespace enqueues the namespaces again.
		if cluster.DeletionTimestamp != nil || r.store.Cached(namespaceKind(), "", names.ExecutionNamespace(cluster.Name)) == nil {
			continue
		}
		g.Go(func() error {
			errs[i] = r.one(ctx, ns, cluster, policies)
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return errors.Join(errs...)
}

func (r *reconciler) one(ctx context.Context, ns *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, policies override.Policies) error {
	obj, applied, err := override.Apply(ns.DeepCopy(), cluster, policies)
	if err != nil {
		r.overrides.Failed(ns, err)
		if errors.Is(err, override.ErrBudget) {
			return nil // it fails alike until the policy, the namespace or the cluster changes
		}
		return err
	}
	annotations, err := applied.Annotations()
	if err != nil {
		return err
	}
	result, err := r.works.Write(ctx, &works.Want{
		Namespace: names.ExecutionNamespace(cluster.Name), Name: names.Work(ns.GetKind(), ns.GetName(), ""),
		Annotations: annotations, Owner: metav1.NewControllerRef(ns, namespaceKind()),
		Object: obj, UID: ns.GetUID(),
	})
	if errors.Is(err, works.ErrForeign) {
		return nil // a policy propagates the namespace, and its binding takes precedence
	}
	if err == nil && result != works.Unchanged {
		r.overrides.Succeeded(ns, cluster.Name, applied)
	}
	return err
}
