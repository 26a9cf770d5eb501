// Package agents gives the agents of clusters in Pull mode their identities and
// their rights, and takes them away. An agent never makes its own rights, and
// nobody else makes them for it.
package agents

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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/apply"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// fieldManager owns the rights of agents.
const fieldManager = "karmada-agent-rights"

// Rights keeps what agents may do in line with the clusters there are.
type Rights struct {
	client client.Client
	live   client.Reader
	writer client.Client
}

func newRights(mgr manager.Manager) *Rights {
	return &Rights{client: mgr.GetClient(), live: mgr.GetAPIReader(), writer: uncached{Client: mgr.GetClient(), reader: mgr.GetAPIReader()}}
}

// uncached is a client that reads past the cache.
type uncached struct {
	client.Client
	reader client.Reader
}

// Get implements client.Reader.
func (u uncached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.reader.Get(ctx, key, obj, opts...) //nolint:wrapcheck // a client like any other
}

// SetupRights adds the controller that gives and takes the rights of agents.
func SetupRights(_ context.Context, mgr manager.Manager) error {
	r := newRights(mgr)
	err := builder.ControllerManagedBy(mgr).Named("agentRights").
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&certificatesv1.CertificateSigningRequest{}, handler.EnqueueRequestsFromMapFunc(clusterOfAuthor), builder.WithPredicates(comings())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(clusterOfOwner), builder.WithPredicates(goings())).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(clusterOfOwner), builder.WithPredicates(goings())).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(clusterOfRole), builder.WithPredicates(comings())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of agents' rights: %w", err)
	}
	return nil
}

// comings passes objects that come and go.
func comings() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// goings passes objects that go.
func goings() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// clusterOfOwner maps what an agent writes to, to its cluster.
func clusterOfOwner(_ context.Context, obj client.Object) []reconcile.Request {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == "Cluster" && owner.APIVersion == clusterv1alpha1.GroupVersion.String() {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: owner.Name}}}
		}
	}
	return nil
}

// clusterOfAuthor maps a request to the cluster whose agent made it.
func clusterOfAuthor(_ context.Context, obj client.Object) []reconcile.Request {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	cluster, ok := names.ClusterOfAgentUser(csr.Spec.Username)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}

// clusterOfRole maps the role of an agent to its cluster: a role without a cluster
// is removed, and one that is removed is made again.
func clusterOfRole(_ context.Context, obj client.Object) []reconcile.Request {
	cluster, ok := names.ClusterOfAgentRole(obj.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
}

// Reconcile handles one cluster.
func (r *Rights) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := r.client.Get(ctx, req.NamespacedName, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.revoke(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: req.Name}})
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading cluster %s: %w", req.Name, err)
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return reconcile.Result{}, r.revoke(ctx, cluster)
	case cluster.DeletionTimestamp != nil:
		return reconcile.Result{}, nil // it still has to clean up
	}
	return reconcile.Result{}, r.grant(ctx, cluster, false)
}

// foreign reports whether the rights of an agent were made by another implementation
// of "register". Those that the control plane makes are owned by the Cluster.
func (r *Rights) foreign(ctx context.Context, cluster string) (bool, error) {
	role := &rbacv1.ClusterRole{}
	err := r.client.Get(ctx, client.ObjectKey{Name: names.AgentRole(cluster)}, role)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading cluster role %s: %w", names.AgentRole(cluster), err)
	}
	return len(clusterOfOwner(ctx, role)) == 0, nil
}

// grant makes sure that the agent of a cluster has its rights and what they are
// about. Rights that another implementation made stay as they are, for its agent may
// need them, unless they are to be renewed.
func (r *Rights) grant(ctx context.Context, cluster *clusterv1alpha1.Cluster, renew bool) error {
	if !renew {
		foreign, err := r.foreign(ctx, cluster.Name)
		if err != nil || foreign {
			return err
		}
	}
	access := registration.AgentAccess{Cluster: cluster.Name, Namespace: credentialsNamespace(cluster)}
	var err error
	if access.Requests, err = r.requests(ctx, cluster.Name); err != nil {
		return err
	}
	for _, name := range []string{names.ExecutionNamespace(cluster.Name), access.Namespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()}}
		if err := r.ensure(ctx, ns); err != nil {
			return err
		}
	}
	owner := []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}}
	for _, obj := range registration.AgentObjects(access) {
		obj.SetOwnerReferences(owner)
		if err := r.ensure(ctx, obj); err != nil {
			return err
		}
	}
	objects := registration.AgentRBAC(access)
	for _, obj := range objects {
		obj.SetOwnerReferences(owner)
		if access.Namespace != clusterv1alpha1.NamespaceKarmadaCluster {
			obj.SetAnnotations(map[string]string{agentcert.NamespaceAnnotation: access.Namespace})
		}
	}
	applier := &apply.Applier{Client: r.writer, Manager: fieldManager}
	if _, err := applier.Apply(ctx, objects...); err != nil {
		return fmt.Errorf("granting the rights of the agent of cluster %q: %w", cluster.Name, err)
	}
	return nil
}

// ensure makes an object that is not there. One that was of an earlier cluster of
// the name is taken over, or it would go after that cluster.
func (r *Rights) ensure(ctx context.Context, obj client.Object) error {
	have, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", obj)
	}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(obj), have)
	switch {
	case apierrors.IsNotFound(err):
		err = r.client.Create(ctx, obj)
	case err == nil && otherOwner(have, obj) != "":
		err = fmt.Errorf("it belongs to cluster %q", otherOwner(have, obj))
	case err == nil && orphaned(have, obj.GetOwnerReferences()):
		base, ok := have.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", have)
		}
		have.SetOwnerReferences(obj.GetOwnerReferences())
		if lease, ok := have.(*coordinationv1.Lease); ok {
			lease.Spec = coordinationv1.LeaseSpec{} // who held it has lost its rights
		}
		err = r.client.Patch(ctx, have, client.MergeFrom(base))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
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

// orphaned says whether none of the owners owns an object.
func orphaned(obj client.Object, owners []metav1.OwnerReference) bool {
	for _, owner := range owners {
		if !slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			return true
		}
	}
	return false
}

// revoke takes the rights of an agent away.
func (r *Rights) revoke(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: names.AgentRole(cluster.Name)}}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(role), role)
	if apierrors.IsNotFound(err) {
		return nil // it is the last to be removed
	}
	if err != nil {
		return fmt.Errorf("reading cluster role %s: %w", role.Name, err)
	}
	objects := registration.AgentRBAC(registration.AgentAccess{Cluster: cluster.Name, Namespace: credentialsNamespace(role)})
	var errs []error
	for _, obj := range slices.Backward(objects) {
		if err := r.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("removing %T %s: %w", obj, obj.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
