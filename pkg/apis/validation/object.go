// Package validation checks the objects of the federation beyond their schemas.
// Every function is pure and returns all problems it finds, each with the path of
// its field: the admission webhook, the aggregated API server, the CLI and tests
// call the same functions and return the same errors.
package validation

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Judge validates objects as admission does, without a server. It applies the
// defaults of the mutating webhooks first. It does not check the schemas of the
// CRDs.
type Judge struct {
	// Warner returns warnings about objects that are admitted.
	Warner Warner
	// Compile reports whether a script compiles.
	Compile func(lua string) error
	// Customizations are the existing ones, with which a new one may conflict.
	Customizations []configv1alpha1.ResourceInterpreterCustomization
}

// New validates an object that is to be created: an error is the reason for its
// rejection. Objects of kinds without rules are admitted.
func (j *Judge) New(obj *unstructured.Unstructured) (warnings []string, err error) {
	check := j.checks()[obj.GroupVersionKind()]
	if check == nil {
		return nil, nil
	}
	return check(obj)
}

type check func(obj *unstructured.Unstructured) ([]string, error)

// errUndecodable is the error for objects that cannot be decoded into their type.
var errUndecodable = errors.New("unable to decode")

// checkOf returns a check that calls a function with the typed object.
func checkOf[T any](validate func(obj *T) ([]string, error)) check {
	return func(obj *unstructured.Unstructured) ([]string, error) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
			return nil, fmt.Errorf("%w %s into %T: %w", errUndecodable, obj.GroupVersionKind(), typed, err)
		}
		return validate(typed)
	}
}

// listed returns a check that calls a function which returns a list of errors.
func listed[T any](validate func(obj *T) field.ErrorList) check {
	return checkOf(func(obj *T) ([]string, error) { return nil, validate(obj).ToAggregate() })
}

func (j *Judge) checks() map[schema.GroupVersionKind]check {
	policy, config := policyv1alpha1.SchemeGroupVersion, configv1alpha1.SchemeGroupVersion
	networking, autoscaling := networkingv1alpha1.SchemeGroupVersion, autoscalingv1alpha1.SchemeGroupVersion
	return map[schema.GroupVersionKind]check{
		policy.WithKind("PropagationPolicy"): checkOf(func(p *policyv1alpha1.PropagationPolicy) ([]string, error) {
			policyv1alpha1.DefaultSelectorNamespaces(p.Spec.ResourceSelectors, p.Namespace)
			return j.propagation(p)
		}),
		policy.WithKind("ClusterPropagationPolicy"): checkOf(func(p *policyv1alpha1.ClusterPropagationPolicy) ([]string, error) {
			return j.propagation(p)
		}),
		policy.WithKind("OverridePolicy"): checkOf(func(p *policyv1alpha1.OverridePolicy) ([]string, error) {
			policyv1alpha1.DefaultSelectorNamespaces(p.Spec.ResourceSelectors, p.Namespace)
			return j.Warner.OverridePolicy(p), ValidateOverridePolicy(p).ToAggregate()
		}),
		policy.WithKind("ClusterOverridePolicy"): checkOf(func(p *policyv1alpha1.ClusterOverridePolicy) ([]string, error) {
			return j.Warner.OverridePolicy(p), ValidateOverridePolicy(p).ToAggregate()
		}),
		policy.WithKind("ClusterTaintPolicy"): checkOf(func(p *policyv1alpha1.ClusterTaintPolicy) ([]string, error) {
			// Most installations have no webhook for it.
			warnings := j.Warner.ClusterTaintPolicy(p)
			for _, err := range ValidateClusterTaintPolicy(p, true) {
				warnings = append(warnings, err.Error())
			}
			return warnings, nil
		}),
		policy.WithKind("FederatedResourceQuota"): listed(ValidateFederatedResourceQuota),
		config.WithKind("ResourceInterpreterWebhookConfiguration"): checkOf(func(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) ([]string, error) {
			return j.Warner.InterpreterWebhooks(c), ValidateInterpreterWebhookConfiguration(c).ToAggregate()
		}),
		config.WithKind("ResourceInterpreterCustomization"): checkOf(func(c *configv1alpha1.ResourceInterpreterCustomization) ([]string, error) {
			return nil, ValidateCustomization(c, j.Customizations, j.Compile)
		}),
		autoscaling.WithKind("FederatedHPA"): listed(func(h *autoscalingv1alpha1.FederatedHPA) field.ErrorList {
			autoscalingv1alpha1.DefaultFederatedHPA(h)
			return ValidateFederatedHPA(h)
		}),
		autoscaling.WithKind("CronFederatedHPA"):   listed(ValidateCronFederatedHPACreate),
		networking.WithKind("MultiClusterService"): listed(ValidateMultiClusterService),
		networking.WithKind("MultiClusterIngress"): listed(ValidateMultiClusterIngress),
		workv1alpha2.SchemeGroupVersion.WithKind("ResourceBinding"): listed(func(b *workv1alpha2.ResourceBinding) field.ErrorList {
			return ValidateResourceBinding(b, false)
		}),
	}
}

// propagation validates a propagation policy; admission itself checks the identity.
func (j *Judge) propagation(p policyv1alpha1.Policy) ([]string, error) {
	policyv1alpha1.DefaultPropagationSpec(p.PropagationSpec())
	if err := ValidatePlacementSize(p, nil); err != nil {
		return nil, err
	}
	return j.Warner.PropagationPolicy(p), ValidatePropagationPolicy(p).ToAggregate()
}
