package agents

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// The subresources that a right to have requests approved is named after.
const (
	renewal   = "selfclusteragent"
	enrolment = "clusteragent"

	approvedReason = "AutoApproved"
	approvedSelf   = "Auto approving self karmada agent certificate after SubjectAccessReview."
	approvedFirst  = "Auto approving karmada agent certificate after SubjectAccessReview."
)

// Approver answers requests for certificates of agents.
type Approver struct {
	client client.Client
	live   client.Reader
	rights *Rights
}

// SetupApprover adds the controller that answers requests for certificates.
func SetupApprover(_ context.Context, mgr manager.Manager) error {
	a := &Approver{client: mgr.GetClient(), live: mgr.GetAPIReader(), rights: newRights(mgr)}
	err := builder.ControllerManagedBy(mgr).Named("agentcsrapproving").
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(predicate.NewPredicateFuncs(open))).
		Complete(a)
	if err != nil {
		return fmt.Errorf("adding the approver of agents' certificates: %w", err)
	}
	return nil
}

// open says whether a request may be for an agent and nobody has answered it.
func open(obj client.Object) bool {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	return ok && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName &&
		len(csr.Status.Certificate) == 0 && len(csr.Status.Conditions) == 0
}

// Reconcile answers one request, or leaves it to others.
func (a *Approver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := a.client.Get(ctx, req.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, ok := agentcert.Requested(&csr.Spec)
	if !open(csr) || !ok {
		return reconcile.Result{}, nil
	}
	f := facts{name: name, csr: csr.DeepCopy()}
	f.description, f.undescribed = agentcert.Described(csr)
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

// allowed says whether whoever asks may have such requests approved.
func (a *Approver) allowed(ctx context.Context, f facts) (bool, error) {
	if f.self() {
		if ok, err := a.review(ctx, f.csr, renewal); ok || err != nil {
			return ok, err
		}
	}
	return a.review(ctx, f.csr, enrolment)
}

func (a *Approver) review(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, subresource string) (bool, error) {
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
		return false, fmt.Errorf("reviewing what the author of certificate request %s may do: %w", csr.Name, err)
	}
	return review.Status.Allowed, nil
}

// gather reads what the decision depends on, past the caches: a name must not be
// given away twice.
func (a *Approver) gather(ctx context.Context, f *facts) error {
	var err error
	if f.cluster, err = read(ctx, a.live, &clusterv1alpha1.Cluster{}, "", f.name); err != nil || f.self() {
		return err
	}
	if f.tombstone, err = read(ctx, a.live, &corev1.ConfigMap{}, clusterv1alpha1.NamespaceKarmadaCluster, names.Tombstone(f.name)); err != nil {
		return err
	}
	if id := tokenID(f.csr); id != "" {
		if f.token, err = read(ctx, a.live, &corev1.Secret{}, metav1.NamespaceSystem, registration.TokenSecretName(id)); err != nil {
			return err
		}
	}
	f.namespace, err = read(ctx, a.live, &corev1.Namespace{}, "", credentialsNamespace(f.csr))
	return err
}

// read returns an object, or nil when there is none.
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

// prepare does what an identity needs before it exists: nobody else can take the
// name, the token is used up, the rights are there.
func (a *Approver) prepare(ctx context.Context, f facts) error {
	if err := a.reserveToken(ctx, f); err != nil {
		return err
	}
	if f.cluster == nil {
		f.cluster = newCluster(f)
		if err := a.client.Create(ctx, f.cluster); err != nil {
			return fmt.Errorf("registering cluster %q: %w", f.name, err)
		}
		log.FromContext(ctx).Info("Registered a cluster", "cluster", f.name, "certificateSigningRequest", f.csr.Name)
		if err := a.clearGrave(ctx, f); err != nil {
			return err
		}
	}
	if err := a.bindToken(ctx, f); err != nil {
		return err
	}
	return a.rights.grant(ctx, f.cluster, !f.self())
}

// clearGrave removes what remembers an earlier cluster of the name, if that was
// cleaned up. If not, the agent does it first and needs to know what.
func (a *Approver) clearGrave(ctx context.Context, f facts) error {
	if f.tombstone == nil || f.tombstone.Data[member.TombstoneCleaned] == "" {
		return nil
	}
	for _, obj := range append(registration.TombstoneRBAC(f.name), f.tombstone) {
		if err := a.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing what remembers an earlier cluster %q: %w", f.name, err)
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
	if namespace := credentialsNamespace(f.csr); namespace != clusterv1alpha1.NamespaceKarmadaCluster {
		c.Annotations[agentcert.NamespaceAnnotation] = namespace
	}
	return c
}

// answer writes the decision into the request.
func (a *Approver) answer(ctx context.Context, f facts, v verdict) error {
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvedReason, Message: approvedFirst,
		LastUpdateTime: metav1.NewTime(time.Now()), //nolint:forbidigo // when it was answered
	}
	switch {
	case v != (verdict{}):
		condition.Type, condition.Reason, condition.Message = certificatesv1.CertificateDenied, v.reason, v.message
		log.FromContext(ctx).Info("Refused an agent's certificate", "cluster", f.name, "certificateSigningRequest", f.csr.Name, "reason", v.reason)
	case f.self():
		condition.Message = approvedSelf
	}
	f.csr.Status.Conditions = append(f.csr.Status.Conditions, condition)
	err := a.client.SubResource("approval").Update(ctx, f.csr)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("answering certificate request %s: %w", f.csr.Name, err)
	}
	return nil
}
