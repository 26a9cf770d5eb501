package works

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/events"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
)

// OverrideComponent is the source of the events about overrides.
const OverrideComponent = "override-manager"

// Reasons of events on templates.
const (
	ReasonApplyOverridePolicySucceed = "ApplyOverridePolicySucceed"
	ReasonApplyOverridePolicyFailed  = "ApplyOverridePolicyFailed"
)

// ListOverridePolicies returns the override policies in reach of the objects of a
// namespace, or the cluster-scoped ones if it is empty. They are shared and read-only.
func ListOverridePolicies(ctx context.Context, c client.Reader, namespace string) (override.Policies, error) {
	var out override.Policies
	cops := &policyv1alpha1.ClusterOverridePolicyList{}
	if err := c.List(ctx, cops, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing cluster override policies: %w", err)
	}
	for i := range cops.Items {
		out = append(out, &cops.Items[i])
	}
	if namespace == "" {
		return out, nil
	}
	ops := &policyv1alpha1.OverridePolicyList{}
	if err := c.List(ctx, ops, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing override policies: %w", err)
	}
	for i := range ops.Items {
		out = append(out, &ops.Items[i])
	}
	return out, nil
}

// Overrides records on templates which override policies were applied.
type Overrides struct {
	Events *events.Recorder
}

// Failed records that an override policy could not be applied. Other errors are
// not recorded.
func (o *Overrides) Failed(template *unstructured.Unstructured, err error) {
	if failed, ok := errors.AsType[*override.Error](err); ok {
		o.Events.Warning(template, ReasonApplyOverridePolicyFailed,
			fmt.Sprintf("Apply %s for cluster(%s) failed.", policyText(failed.Namespace, failed.Policy), failed.Cluster))
	}
}

// Succeeded records the policies that were applied to a Work that was written.
func (o *Overrides) Succeeded(template *unstructured.Unstructured, cluster string, applied override.Applied) {
	publish := func(namespace string, rules []override.AppliedRule) {
		last := ""
		for _, rule := range rules {
			if rule.PolicyName == last {
				continue
			}
			last = rule.PolicyName
			o.Events.Normal(template, ReasonApplyOverridePolicySucceed,
				fmt.Sprintf("Apply %s for cluster(%s) successfully.", policyText(namespace, rule.PolicyName), cluster))
		}
	}
	publish("", applied.Cluster)
	publish(template.GetNamespace(), applied.Namespaced)
}

func policyText(namespace, name string) string {
	if namespace == "" {
		return fmt.Sprintf("cluster override policy(%s)", name)
	}
	return fmt.Sprintf("override policy(%s/%s)", namespace, name)
}
