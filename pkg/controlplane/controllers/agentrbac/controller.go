// Package agentrbac keeps the access rights of agents in line with the Clusters in Pull
// mode. The control plane creates these rights, so that an agent needs no permission to
// create any, and can do nothing in other clusters.
package agentrbac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// fieldManager owns the rights of agents.
const fieldManager = "karmada-agent-rights"

// Granter creates and deletes the access rights of agents, and the objects that
// those are about.
type Granter struct {
	client client.Client
	writer client.Client
}

// NewGranter returns a Granter with the clients of the controllers.
func NewGranter(e *env.Env) *Granter {
	return &Granter{client: e.Client, writer: uncached{Client: e.Client, reader: e.Live}}
}

// uncached is a client that reads past the cache.
type uncached struct {
	client.Client
	reader client.Reader
}

// Get implements client.Reader.
func (u uncached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.reader.Get(ctx, key, obj, opts...)
}

// reconciler grants the rights of the agents of Clusters in Pull mode, and revokes
// those of all others.
type reconciler struct {
	client client.Client
	rights *Granter
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env) error {
	err := builder.ControllerManagedBy(e.Manager).Named("agentRights").
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&certificatesv1.CertificateSigningRequest{}, controllers.EnqueueKey(clusterOfAuthor), builder.WithPredicates(createdOrDeleted())).
		Watches(&corev1.Secret{}, controllers.EnqueueKey(clusterOfOwner), builder.WithPredicates(controllers.Deleted())).
		Watches(&coordinationv1.Lease{}, controllers.EnqueueKey(clusterOfOwner), builder.WithPredicates(controllers.Deleted())).
		Watches(&rbacv1.ClusterRole{}, controllers.Enqueue(clusterOfRole), builder.WithPredicates(createdOrDeleted())).
		Watches(&rbacv1.ClusterRoleBinding{}, controllers.EnqueueKey(clusterOfOwner), builder.OnlyMetadata, builder.WithPredicates(replaced())).
		Watches(&rbacv1.Role{}, controllers.EnqueueKey(clusterOfOwner), builder.OnlyMetadata, builder.WithPredicates(replaced())).
		Watches(&rbacv1.RoleBinding{}, controllers.EnqueueKey(clusterOfOwner), builder.OnlyMetadata, builder.WithPredicates(replaced())).
		Watches(&corev1.Namespace{}, controllers.EnqueueKey(clusterOfNamespace), builder.WithPredicates(createdOrDeleted())).
		Complete(&reconciler{client: e.Client, rights: NewGranter(e)})
	if err != nil {
		return fmt.Errorf("adding the controller of agents' access rights: %w", err)
	}
	err = builder.ControllerManagedBy(e.Manager).Named("agentSlices").
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(clusterOfSlice), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.Func(NewGranter(e).limitSlices))
	if err != nil {
		return fmt.Errorf("adding the controller of agents' EndpointSlices: %w", err)
	}
	return nil
}

// createdOrDeleted passes objects that are new or gone.
func createdOrDeleted() predicate.Predicate {
	return controllers.Filter[client.Object]{Updated: controllers.NoUpdate[client.Object]}
}

// replaced passes objects that are gone or changed. Changes of rights by others are undone.
func replaced() predicate.Predicate {
	return controllers.Filter[client.Object]{Created: controllers.Never[client.Object], Updated: func(before, now client.Object) bool {
		return before.GetResourceVersion() != now.GetResourceVersion()
	}}
}

// clusterOfNamespace maps an execution namespace to its cluster: the roles in it go with
// it, and are created in the next one.
func clusterOfNamespace(namespace *corev1.Namespace) types.NamespacedName {
	cluster, _ := names.ClusterOfExecutionNamespace(namespace.Name) // empty for other namespaces
	return types.NamespacedName{Name: cluster}
}

// clusterOfSlice maps a Work with a collected EndpointSlice to its cluster.
func clusterOfSlice(work *workv1alpha1.Work) types.NamespacedName {
	if !services.Collected(work) {
		return types.NamespacedName{}
	}
	cluster, _ := names.ClusterOfExecutionNamespace(work.Namespace) // empty for other namespaces
	return types.NamespacedName{Name: cluster}
}

// clusterOfOwner maps an object that an agent writes to the Cluster that owns it.
func clusterOfOwner(obj client.Object) types.NamespacedName {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == "Cluster" && owner.APIVersion == clusterv1alpha1.GroupVersion.String() {
			return types.NamespacedName{Name: owner.Name}
		}
	}
	return types.NamespacedName{}
}

// clusterOfAuthor maps a request to the cluster whose agent made it.
func clusterOfAuthor(csr *certificatesv1.CertificateSigningRequest) types.NamespacedName {
	cluster, _ := names.ClusterOfAgentUser(csr.Spec.Username) // empty for other users
	return types.NamespacedName{Name: cluster}
}

// clusterOfRole maps the role of an agent to its cluster: a role without a cluster
// is deleted, and one that was deleted is created again.
func clusterOfRole(_ context.Context, obj client.Object) []reconcile.Request {
	cluster, ok := names.ClusterOfAgentRole(obj.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}

// Reconcile grants or revokes the rights of the agent of one cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := r.client.Get(ctx, req.NamespacedName, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.rights.revoke(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: req.Name}})
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading cluster %s: %w", req.Name, err)
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return reconcile.Result{}, r.rights.revoke(ctx, cluster)
	case cluster.DeletionTimestamp != nil:
		return reconcile.Result{}, r.rights.forget(ctx, cluster.Name) // the agent keeps its rights while it cleans up
	}
	return reconcile.Result{}, r.rights.Grant(ctx, cluster, false)
}

// foreign reports whether the rights of an agent were created by another implementation
// of "register". Those that the control plane creates are owned by the Cluster.
func (g *Granter) foreign(ctx context.Context, cluster string) (bool, error) {
	role := &rbacv1.ClusterRole{}
	err := g.writer.Get(ctx, client.ObjectKey{Name: names.AgentRole(cluster)}, role) // the cache may be behind that of what caused the call
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading cluster role %s: %w", names.AgentRole(cluster), err)
	}
	return byAnother(role), nil
}

// byAnother reports whether another implementation created an object.
func byAnother(obj client.Object) bool { return clusterOfOwner(obj).Name == "" }

// Grant ensures that the agent of a cluster has its access rights, and that the
// objects which those are about exist. Rights that another implementation created are
// kept unless they are to be replaced, because its agent may need them.
func (g *Granter) Grant(ctx context.Context, cluster *clusterv1alpha1.Cluster, replaceForeign bool) error {
	if !replaceForeign {
		if foreign, err := g.foreign(ctx, cluster.Name); err != nil || foreign {
			return err
		}
	}
	access := registration.AgentAccess{Cluster: cluster.Name, Namespace: agentcert.CredentialsNamespace(cluster)}
	var err error
	if access.Requests, err = g.requests(ctx, cluster.Name); err != nil {
		return err
	}
	for _, name := range []string{names.ExecutionNamespace(cluster.Name), access.Namespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()}}
		if err := g.ensure(ctx, ns); err != nil {
			return err
		}
	}
	owner := []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}}
	objects := registration.AgentRBAC(access)
	for _, obj := range objects {
		obj.SetOwnerReferences(owner)
		if access.Namespace != clusterv1alpha1.NamespaceKarmadaCluster {
			obj.SetAnnotations(map[string]string{agentcert.NamespaceAnnotation: access.Namespace})
		}
	}
	applier := &apply.Applier{Client: g.writer, Manager: fieldManager}
	if !replaceForeign {
		applier.Keep = byAnother
	}
	if _, err := applier.Apply(ctx, objects...); err != nil {
		return fmt.Errorf("granting the rights of the agent of cluster %q: %w", cluster.Name, err)
	}
	for _, obj := range registration.AgentObjects(access) {
		obj.SetOwnerReferences(owner)
		if err := g.ensure(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates an object that does not exist. One of an earlier cluster of the same
// name gets the new owner, or it would be garbage collected with that cluster.
func (g *Granter) ensure(ctx context.Context, obj client.Object) error {
	have, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", obj)
	}
	err := g.client.Get(ctx, client.ObjectKeyFromObject(obj), have)
	switch {
	case apierrors.IsNotFound(err):
		err = g.client.Create(ctx, obj)
	case err == nil && otherOwner(have, obj) != "":
		err = fmt.Errorf("it belongs to cluster %q", otherOwner(have, obj))
	case err == nil && orphaned(have, obj.GetOwnerReferences()):
		err = patch.Change(ctx, g.client, have, func() {
			have.SetOwnerReferences(obj.GetOwnerReferences())
			if lease, ok := have.(*coordinationv1.Lease); ok {
				lease.Spec = coordinationv1.LeaseSpec{} // the holder has lost its rights
			}
		})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// otherOwner returns the cluster that owns an object which is to be owned by
// another cluster, or "".
func otherOwner(have, wanted client.Object) string {
	for _, owner := range wanted.GetOwnerReferences() {
		return clusterv1alpha1.OtherOwner(have, owner.Name)
	}
	return ""
}

// orphaned reports whether an owner is missing in an object.
func orphaned(obj client.Object, owners []metav1.OwnerReference) bool {
	return slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool {
		return !slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
	})
}

// revoke deletes the access rights of an agent.
func (g *Granter) revoke(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.AgentRole(cluster.Name)}}
	// A role that the cache does not have yet is revoked when it has, see clusterOfRole.
	err := g.client.Get(ctx, client.ObjectKeyFromObject(role), role)
	if apierrors.IsNotFound(err) {
		return nil // the cluster role is deleted last
	}
	if err != nil {
		return fmt.Errorf("reading cluster role %s: %w", role.Name, err)
	}
	objects := registration.AgentRBAC(registration.AgentAccess{Cluster: cluster.Name, Namespace: agentcert.CredentialsNamespace(role)})
	var errs []error
	for _, obj := range slices.Backward(objects) {
		if err := g.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", obj, obj.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
