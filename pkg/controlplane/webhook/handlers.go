package webhook

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

// Deps is what the handlers need from outside.
type Deps struct {
	// NewID returns a fresh UUID.
	NewID func() string
	// Reader reads from the cache, LiveReader from the API server.
	Reader, LiveReader client.Reader
	// Writer writes the ledgers of quotas.
	Writer client.Writer
	// Metrics registers metrics.
	Metrics prometheus.Registerer
	// Clock is the real clock by default.
	Clock clock.PassiveClock
	// Clusters returns the names of the clusters that have joined, false when that
	// is not known. It may be nil.
	Clusters func(ctx context.Context) ([]string, bool)
	// Served reports whether an API serves a kind. It may be nil.
	Served func(apiVersion, kind string) bool
	// Access reviews what the author of a policy may change. Nil reviews nothing.
	Access *Access
	// AllowNoExecute admits ClusterTaintPolicies that evict.
	AllowNoExecute bool
	// Enforcement is the feature gate FederatedQuotaEnforcement, Components is
	// MultiplePodTemplatesScheduling.
	Enforcement, Components bool
}

// Handlers returns what is served, by path.
func Handlers(d Deps) (map[string]http.Handler, error) {
	convert, err := newConverter()
	if err != nil {
		return nil, err
	}
	out := map[string]http.Handler{
		"/convert": convert,
		"/readyz/": http.StripPrefix("/readyz/", &healthz.Handler{}),
	}
	for _, set := range []map[string]admission.Handler{mutators(d), validators(d)} {
		for path, handler := range set {
			out[path] = &admission.Webhook{Handler: handler}
		}
	}
	return out, nil
}

func policyKind(kind string) schema.GroupVersionKind {
	return policyv1alpha1.SchemeGroupVersion.WithKind(kind)
}

// mutators returns the mutating handlers by path.
func mutators(d Deps) map[string]admission.Handler {
	return map[string]admission.Handler{
		"/mutate-propagationpolicy": newMutator(policyKind("PropagationPolicy"), func(req *admission.Request, p *policyv1alpha1.PropagationPolicy) {
			policyv1alpha1.DefaultSelectorNamespaces(p.Spec.ResourceSelectors, req.Namespace)
			defaultPolicy(req, p, d.NewID)
		}),
		"/mutate-clusterpropagationpolicy": newMutator(policyKind("ClusterPropagationPolicy"), func(req *admission.Request, p *policyv1alpha1.ClusterPropagationPolicy) {
			defaultPolicy(req, p, d.NewID)
		}),
		"/mutate-overridepolicy": newMutator(policyKind("OverridePolicy"), func(req *admission.Request, p *policyv1alpha1.OverridePolicy) {
			policyv1alpha1.DefaultSelectorNamespaces(p.Spec.ResourceSelectors, req.Namespace)
		}),
		"/mutate-resourcebinding": newLabeler(workv1alpha2.SchemeGroupVersion.WithKind("ResourceBinding"),
			workv1alpha2.ResourceBindingPermanentIDLabel, d.NewID, func(b *workv1alpha2.ResourceBinding) *metav1.ObjectMeta { return &b.ObjectMeta }),
		"/mutate-clusterresourcebinding": newLabeler(workv1alpha2.SchemeGroupVersion.WithKind("ClusterResourceBinding"),
			workv1alpha2.ClusterResourceBindingPermanentIDLabel, d.NewID, func(b *workv1alpha2.ClusterResourceBinding) *metav1.ObjectMeta { return &b.ObjectMeta }),
		"/mutate-work": &workMutator{kind: workv1alpha1.SchemeGroupVersion.WithKind("Work"), newID: d.NewID},
		"/mutate-federatedhpa": newMutator(autoscalingv1alpha1.SchemeGroupVersion.WithKind("FederatedHPA"), func(_ *admission.Request, h *autoscalingv1alpha1.FederatedHPA) {
			autoscalingv1alpha1.DefaultFederatedHPA(h)
		}),
		"/mutate-multiclusterservice": newMutator(networkingv1alpha1.SchemeGroupVersion.WithKind("MultiClusterService"), func(_ *admission.Request, s *networkingv1alpha1.MultiClusterService) {
			setID(&s.ObjectMeta, networkingv1alpha1.MultiClusterServicePermanentIDLabel, d.NewID)
		}),
	}
}

func defaultPolicy(req *admission.Request, p policyv1alpha1.Policy, newID func() string) {
	policyv1alpha1.DefaultPropagationSpec(p.PropagationSpec())
	if req.Operation == admissionv1.Create {
		policyv1alpha1.DefaultNewPolicy(p, newID())
	}
}

// validators returns the validating handlers by path.
func validators(d Deps) map[string]admission.Handler {
	customizations := &customizationCheck{reader: d.LiveReader}
	out := networkingValidators()
	maps.Copy(out, map[string]admission.Handler{
		"/validate-propagationpolicy": newValidator(policyKind("PropagationPolicy"), checkPolicy[policyv1alpha1.PropagationPolicy]).
			withWarnings(func(ctx context.Context, p *policyv1alpha1.PropagationPolicy) []string {
				return append(d.warner(ctx).PropagationPolicy(p), eviction.StateWarnings(p.Spec.Failover)...)
			}).withAdvice(func(ctx context.Context, p *policyv1alpha1.PropagationPolicy) []string {
			return d.advice(ctx, p)
		}),
		"/validate-clusterpropagationpolicy": newValidator(policyKind("ClusterPropagationPolicy"), d.checkClusterPolicy).
			withWarnings(func(ctx context.Context, p *policyv1alpha1.ClusterPropagationPolicy) []string {
				return append(d.warner(ctx).PropagationPolicy(p), eviction.StateWarnings(p.Spec.Failover)...)
			}).withAdvice(func(ctx context.Context, p *policyv1alpha1.ClusterPropagationPolicy) []string {
			return d.advice(ctx, p)
		}),
		"/validate-overridepolicy": newValidator(policyKind("OverridePolicy"), d.checkOverridePolicy).withWarnings(func(ctx context.Context, p *policyv1alpha1.OverridePolicy) []string {
			return d.warner(ctx).OverridePolicy(p)
		}),
		"/validate-clusteroverridepolicy": newValidator(policyKind("ClusterOverridePolicy"), checkOverrides[policyv1alpha1.ClusterOverridePolicy]).withWarnings(func(ctx context.Context, p *policyv1alpha1.ClusterOverridePolicy) []string {
			return d.warner(ctx).OverridePolicy(p)
		}),
		"/validate-federatedresourcequota": newValidator(policyKind("FederatedResourceQuota"), pure(func(q *policyv1alpha1.FederatedResourceQuota) error {
			return validation.ValidateFederatedResourceQuota(q).ToAggregate()
		})).withWarnings(func(_ context.Context, q *policyv1alpha1.FederatedResourceQuota) []string {
			return quota.Warnings(q, d.Enforcement)
		}),
		"/validate-clustertaintpolicy": newValidator(policyKind("ClusterTaintPolicy"), pure(func(p *policyv1alpha1.ClusterTaintPolicy) error {
			return validation.ValidateClusterTaintPolicy(p, d.AllowNoExecute).ToAggregate()
		})).withWarnings(func(ctx context.Context, p *policyv1alpha1.ClusterTaintPolicy) []string {
			return d.warner(ctx).ClusterTaintPolicy(p)
		}),
		"/validate-resourceinterpretercustomization": newValidator(
			configv1alpha1.SchemeGroupVersion.WithKind("ResourceInterpreterCustomization"), customizations.check),
		"/validate-resourcebinding":            newBindingValidator(d),
		"/validate-resourcedeletionprotection": admission.HandlerFunc(protect),
		"/validate-agent-work":                 &agentLimits{},
		"/validate-resourceinterpreterwebhookconfiguration": newValidator(
			configv1alpha1.SchemeGroupVersion.WithKind("ResourceInterpreterWebhookConfiguration"),
			pure(func(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) error {
				return validation.ValidateInterpreterWebhookConfiguration(c).ToAggregate()
			})).withWarnings(func(_ context.Context, c *configv1alpha1.ResourceInterpreterWebhookConfiguration) []string {
			return validation.Warner{}.InterpreterWebhooks(c)
		}),
	})
	return out
}

// networkingValidators returns the handlers of the kinds for autoscaling and
// networking.
func networkingValidators() map[string]admission.Handler {
	autoscaling, networking := autoscalingv1alpha1.SchemeGroupVersion, networkingv1alpha1.SchemeGroupVersion
	return map[string]admission.Handler{
		"/validate-federatedhpa": newValidator(autoscaling.WithKind("FederatedHPA"), pure(func(h *autoscalingv1alpha1.FederatedHPA) error {
			return validation.ValidateFederatedHPA(h).ToAggregate()
		})),
		"/validate-cronfederatedhpa": newValidator(autoscaling.WithKind("CronFederatedHPA"), createOrUpdate(
			validation.ValidateCronFederatedHPACreate, validation.ValidateCronFederatedHPAUpdate)),
		"/validate-multiclusterservice": newValidator(networking.WithKind("MultiClusterService"), createOrUpdate(
			validation.ValidateMultiClusterService, validation.ValidateMultiClusterServiceUpdate)).
			withWarnings(multiClusterServiceWarnings),
		"/validate-multiclusteringress": newValidator(networking.WithKind("MultiClusterIngress"), createOrUpdate(
			validation.ValidateMultiClusterIngress, validation.ValidateMultiClusterIngressUpdate)),
	}
}

// multiClusterServiceWarnings warns about fields that have no effect.
func multiClusterServiceWarnings(_ context.Context, m *networkingv1alpha1.MultiClusterService) []string {
	var out []string
	for _, f := range []struct {
		path, instead string
		set           bool
	}{
		{"spec.range", "spec.providerClusters", len(m.Spec.Range.ClusterNames) > 0},
		{"spec.serviceProvisionClusters", "spec.providerClusters", len(m.Spec.ServiceProvisionClusters) > 0},
		{"spec.serviceConsumptionClusters", "spec.consumerClusters", len(m.Spec.ServiceConsumptionClusters) > 0},
	} {
		if f.set {
			out = append(out, fmt.Sprintf("%s has no effect: use %s", f.path, f.instead))
		}
	}
	return out
}

// createOrUpdate makes a check of one function for new objects and one for
// changed ones.
func createOrUpdate[T any](create func(*T) field.ErrorList, update func(obj, old *T) field.ErrorList) func(context.Context, *admission.Request, *T, *T) error {
	return func(_ context.Context, _ *admission.Request, obj, old *T) error {
		if old == nil {
			return create(obj).ToAggregate()
		}
		return update(obj, old).ToAggregate()
	}
}

// warner returns what warns about policies, with what is known of clusters.
func (d Deps) warner(ctx context.Context) validation.Warner {
	w := validation.Warner{Served: d.Served}
	if d.Clusters == nil {
		return w
	}
	if names, ok := d.Clusters(ctx); ok {
		w.Known = func(name string) bool { return slices.Contains(names, name) }
	}
	return w
}

// checkPolicy validates a propagation policy: its identity, then its spec.
func checkPolicy[T any, P interface {
	*T
	policyv1alpha1.Policy
}](_ context.Context, _ *admission.Request, obj, old *T) error {
	var before policyv1alpha1.Policy
	if old != nil {
		before = P(old)
	}
	if err := validation.ValidatePolicyIdentity(P(obj), before); err != nil {
		return err
	}
	if err := validation.ValidatePlacementSize(P(obj), before); err != nil {
		return err
	}
	if old == nil {
		return validation.ValidatePropagationPolicy(P(obj)).ToAggregate()
	}
	return validation.ValidatePropagationPolicyUpdate(P(obj), before).ToAggregate()
}

// checkClusterPolicy validates a ClusterPropagationPolicy and reviews what its author may deactivate.
func (d Deps) checkClusterPolicy(ctx context.Context, req *admission.Request, obj, old *policyv1alpha1.ClusterPropagationPolicy) error {
	if err := checkPolicy(ctx, req, obj, old); err != nil {
		return err
	}
	return d.Access.deactivated(ctx, req, obj)
}

// checkOverridePolicy validates an OverridePolicy and reviews what its author may change.
func (d Deps) checkOverridePolicy(ctx context.Context, req *admission.Request, obj, old *policyv1alpha1.OverridePolicy) error {
	if err := checkOverrides(ctx, req, obj, old); err != nil {
		return err
	}
	return d.Access.overridden(ctx, req, obj)
}

// checkOverrides validates an override policy.
func checkOverrides[T any, P interface {
	*T
	policyv1alpha1.OverridePolicyObject
}](_ context.Context, _ *admission.Request, obj, old *T) error {
	if old == nil {
		return validation.ValidateOverridePolicy(P(obj)).ToAggregate()
	}
	return validation.ValidateOverridePolicyUpdate(P(obj), P(old)).ToAggregate()
}
