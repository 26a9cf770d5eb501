// Package agentcsr approves and denies the certificate requests of agents, and creates
// the Cluster of an agent that registers.
package agentcsr

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// The subresources of certificatesigningrequests whose creation a user must be allowed
// to have its requests approved.
const (
	renewalSubresource      = "selfclusteragent"
	registrationSubresource = "clusteragent"
)

const (
	approvedReason      = "AutoApproved"
	renewalMessage      = "Auto approving self karmada agent certificate after SubjectAccessReview."
	registrationMessage = "Auto approving karmada agent certificate after SubjectAccessReview."
)

// approver approves and denies certificate requests of agents.
type approver struct {
	// grant is that of Setup.
	grant  func(ctx context.Context, cluster *clusterv1alpha1.Cluster, replaceForeign bool) error
	clock  clock.PassiveClock
	client client.Client
	live   client.Reader
}

// Setup adds the controller to the manager. The function ensures the access rights of the agent of a cluster before its
// certificate is approved. Rights that another implementation created are kept unless they are to be replaced.
func Setup(_ context.Context, e *env.Env, grant func(ctx context.Context, cluster *clusterv1alpha1.Cluster, replaceForeign bool) error) error {
	passes := predicate.NewPredicateFuncs(func(obj client.Object) bool { return pending(obj) || refused(obj) != nil })
	return controllers.Add(e.Manager, "agentcsrapproving", &certificatesv1.CertificateSigningRequest{}, passes,
		controller.Options{MaxConcurrentReconciles: 5}, &approver{grant: grant, clock: e.Clock, client: e.Client, live: e.Live})
}

// pending reports whether a request may be of an agent and is neither approved nor
// denied.
func pending(obj client.Object) bool {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	return ok && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName &&
		len(csr.Status.Certificate) == 0 && len(csr.Status.Conditions) == 0
}

// Reconcile approves or denies one request. A request of another kind is for other
// controllers.
func (a *approver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := a.client.Get(ctx, req.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, ok := agentcert.Requested(&csr.Spec)
	if denial := refused(csr); ok && denial != nil {
		return a.forget(ctx, csr, name, denial)
	}
	if !pending(csr) || !ok {
		return reconcile.Result{}, nil
	}
	f := facts{name: name, csr: csr.DeepCopy()}
	f.description, f.descriptionErr = agentcert.Described(csr)
	allowed, err := a.allowed(ctx, f)
	if err != nil || !allowed {
		return reconcile.Result{}, err
	}
	if err := a.gather(ctx, &f); err != nil {
		return reconcile.Result{}, err
	}
	v := decide(f)
	if v == (verdict{}) {
		if err = a.prepare(ctx, f); apierrors.IsInvalid(err) {
			v, err = refuse("InvalidCluster", "%v", err), nil
		}
	}
	if v != (verdict{}) {
		err = a.releaseToken(ctx, f)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, a.answer(ctx, f, v)
}

// allowed reports whether the author of a request may have it approved.
func (a *approver) allowed(ctx context.Context, f facts) (bool, error) {
	if f.renewal() {
		if ok, err := a.review(ctx, f.csr, renewalSubresource); ok || err != nil {
			return ok, err
		}
	}
	return a.review(ctx, f.csr, registrationSubresource)
}

func (a *approver) review(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, subresource string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(csr.Spec.Extra))
	for key, value := range csr.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create", Subresource: subresource, Version: "*",
		},
	}}
	if err := a.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("reviewing the access of the author of certificate request %s: %w", csr.Name, err)
	}
	return review.Status.Allowed, nil
}

// gather reads the objects that the decision depends on from the API server: with a
// cache, one name could be given to two clusters.
func (a *approver) gather(ctx context.Context, f *facts) error {
	var err error
	if f.cluster, err = read(ctx, a.live, &clusterv1alpha1.Cluster{}, "", f.name); err != nil || f.renewal() {
		return err
	}
	if f.tombstone, err = read(ctx, a.live, &corev1.ConfigMap{}, clusterv1alpha1.NamespaceKarmadaCluster, names.Tombstone(f.name)); err != nil {
		return err
	}
	if f.cluster == nil {
		if f.member, err = a.memberOf(ctx, f.csr); err != nil {
			return err
		}
	}
	if id := tokenID(f.csr); id != "" {
		if f.token, err = read(ctx, a.live, &corev1.Secret{}, metav1.NamespaceSystem, registration.TokenSecretName(id)); err != nil {
			return err
		}
	}
	f.namespace, err = read(ctx, a.live, &corev1.Namespace{}, "", agentcert.CredentialsNamespace(f.csr))
	return err
}

// memberOf returns the Cluster whose id the request proves, or nil.
func (a *approver) memberOf(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (*clusterv1alpha1.Cluster, error) {
	clusters := &clusterv1alpha1.ClusterList{}
	if err := a.live.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		if agentcert.Proven(clusters.Items[i].Spec.ID, csr) {
			return &clusters.Items[i], nil
		}
	}
	return nil, nil
}

// read returns an object, or nil if it does not exist.
func read[T client.Object](ctx context.Context, c client.Reader, into T, namespace, name string) (T, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if err == nil {
		return into, nil
	}
	var none T
	if err = client.IgnoreNotFound(err); err != nil {
		return none, fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return none, nil
}

// prepare does what must precede a certificate: it reserves the token, creates the
// Cluster, which reserves the name, and grants the access rights.
func (a *approver) prepare(ctx context.Context, f facts) error {
	if err := a.reserveToken(ctx, f); err != nil {
		return err
	}
	if f.cluster == nil {
		f.cluster = newCluster(f)
		if err := a.client.Create(ctx, f.cluster); err != nil {
			return fmt.Errorf("registering cluster %q: %w", f.name, err)
		}
		log.FromContext(ctx).Info("Registered a cluster", "cluster", f.name, "certificateSigningRequest", f.csr.Name)
		if err := a.deleteTombstone(ctx, f); err != nil {
			return err
		}
	}
	if err := a.bindToken(ctx, f); err != nil {
		return err
	}
	return a.grant(ctx, f.cluster, !f.renewal())
}

// deleteTombstone deletes the tombstone of an earlier cluster of the name, if that was
// cleaned up. Otherwise the agent still needs it to clean up.
func (a *approver) deleteTombstone(ctx context.Context, f facts) error {
	if f.tombstone == nil || f.tombstone.Data[member.TombstoneCleaned] == "" {
		return nil
	}
	for _, obj := range append(registration.TombstoneRBAC(f.name), f.tombstone) {
		if err := a.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the tombstone of an earlier cluster %q: %w", f.name, err)
		}
	}
	return nil
}

func newCluster(f facts) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: f.name, Annotations: map[string]string{agentcert.RequestAnnotation: f.csr.Name}},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Pull,
			Provider: f.description.Provider, Region: f.description.Region, Zones: f.description.Zones,
		},
	}
	if id := tokenID(f.csr); id != "" {
		c.Annotations[agentcert.TokenAnnotation] = id
	}
	if namespace := agentcert.CredentialsNamespace(f.csr); namespace != clusterv1alpha1.NamespaceKarmadaCluster {
		c.Annotations[agentcert.NamespaceAnnotation] = namespace
	}
	return c
}

// answer writes the decision to the request.
func (a *approver) answer(ctx context.Context, f facts, v verdict) error {
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvedReason, Message: registrationMessage,
		LastUpdateTime: metav1.NewTime(a.clock.Now()),
	}
	switch {
	case v != (verdict{}):
		condition.Type, condition.Reason, condition.Message = certificatesv1.CertificateDenied, v.reason, v.message
		log.FromContext(ctx).Info("Denied the certificate of an agent", "cluster", f.name, "certificateSigningRequest", f.csr.Name, "reason", v.reason)
	case f.renewal():
		condition.Message = renewalMessage
	}
	f.csr.Status.Conditions = append(f.csr.Status.Conditions, condition)
	err := a.client.SubResource("approval").Update(ctx, f.csr)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("approving or denying certificate request %s: %w", f.csr.Name, err)
	}
	return nil
}
