// Package override applies OverridePolicies and ClusterOverridePolicies to an
// object on its way to one cluster. It is pure.
package override

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
)

// Policies are override policies of both scopes, in any order. They are only
// read.
type Policies []policyv1alpha1.OverridePolicyObject

// Error names the policy that could not be applied. For namespaced policies
// Namespace is set.
type Error struct {
	Namespace, Policy string
	// Rule is the index in overrideRules, or 0 for the deprecated form.
	Rule int
	// Overrider names the list in the rule and the entry in it. It is empty for all of the rule together.
	Overrider string
	Cluster   string
	Err       error
}

// Error names policy, cluster, rule and cause.
func (e *Error) Error() string {
	name := fmt.Sprintf("cluster override policy(%s)", e.Policy)
	if e.Namespace != "" {
		name = fmt.Sprintf("override policy(%s/%s)", e.Namespace, e.Policy)
	}
	at := "overriders"
	if e.Overrider != "" {
		at += "." + e.Overrider
	}
	return fmt.Sprintf("applying %s for cluster(%s): overrideRules[%d].%s: %v", name, e.Cluster, e.Rule, at, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Apply returns the object as the policies want it in the cluster, and which
// rules were applied. Cluster-wide policies come first, then those of the
// object's namespace; less specific ones before more specific ones.
//
// No policy changes the apiVersion, kind, namespace or name of the object: one that
// would is an Error that wraps ErrForbidden. Namespaced policies are not applied to
// objects that grant rights, set limits, direct traffic or extend the API server, such
// as RoleBindings, ResourceQuotas and EndpointSlices: who may write policies in a
// namespace need not be allowed to write those, or to keep them from members by a
// policy that fails.
//
// The overriders of an object have a budget: the result has at most MaxResultBytes, and their work is limited. One that
// exceeds it is an Error that wraps ErrBudget, for ever: it does not depend on anything but the arguments.
//
// obj is never changed. When no rule applies it is returned itself; otherwise
// the result is a copy that the caller owns. A caller that changes the result in
// place must own obj or compare the two pointers first.
func Apply(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, policies Policies) (*unstructured.Unstructured, Applied, error) {
	return ApplyInTime(obj, cluster, policies, nil)
}

// ApplyInTime is Apply with a limit of MaxTime as well, by a clock.
func ApplyInTime(obj *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, policies Policies, c clock.PassiveClock) (*unstructured.Unstructured, Applied, error) {
	if cluster == nil {
		return nil, Applied{}, errors.New("applying override policies: no cluster")
	}
	r := run{cluster: cluster, clock: c, source: obj, obj: obj, identity: IdentityOf(obj)}
	clusterWide, err := r.scope(policies, "")
	if err != nil {
		return nil, Applied{}, err
	}
	var namespaced []AppliedRule
	if namespace := obj.GetNamespace(); namespace != "" && !validation.SetsRights(obj.GroupVersionKind().GroupKind()) {
		if namespaced, err = r.scope(policies, namespace); err != nil {
			return nil, Applied{}, err
		}
	}
	return r.obj, Applied{Cluster: clusterWide, Namespaced: namespaced}, nil
}

// errSecret stands for errors that may quote what is in a Secret: errors become
// events, which more users may read.
var errSecret = errors.New("the overrider does not fit the Secret, whose content is not shown")

func isSecret(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Secret" && obj.GetAPIVersion() == "v1"
}

// run is one application of policies.
type run struct {
	cluster     *clusterv1alpha1.Cluster
	clock       clock.PassiveClock
	source, obj *unstructured.Unstructured
	identity    Identity
	// budget is nil until a rule is applied.
	budget *budget
	// applied is the size of what the annotations of the Work record.
	applied int
	// containers are those of a well-known workload while known is true: until something but them may have changed.
	containers []map[string]any
	known      bool
}

// ranked is a policy that selects the object.
type ranked struct {
	policyv1alpha1.OverridePolicyObject
	priority match.Priority
}

// scope applies the policies of one scope; the empty namespace is that of the
// cluster-wide ones.
func (r *run) scope(policies Policies, namespace string) ([]AppliedRule, error) {
	var selected []ranked
	for _, p := range policies {
		if !inScope(p, namespace) {
			continue
		}
		priority := match.All
		if selectors := p.OverrideSpec().ResourceSelectors; len(selectors) > 0 {
			priority = match.Resources(r.obj, selectors)
		}
		if priority != match.None {
			selected = append(selected, ranked{p, priority})
		}
	}
	slices.SortFunc(selected, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.GetName(), b.GetName()))
	})
	var applied []AppliedRule
	for _, p := range selected {
		for i, rule := range rules(p.OverrideSpec()) {
			if !match.Cluster(r.cluster, rule.TargetCluster) {
				continue
			}
			if err := r.rule(&rule.Overriders); err != nil {
				overrider := ""
				if at := (*located)(nil); errors.As(err, &at) {
					overrider, err = at.at, at.err
				}
				if !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrBudget) && isSecret(r.obj) {
					err = errSecret
				}
				return nil, &Error{Namespace: namespace, Policy: p.GetName(), Rule: i, Overrider: overrider, Cluster: r.cluster.Name, Err: err}
			}
			applied = append(applied, AppliedRule{PolicyName: p.GetName(), Overriders: rule.Overriders})
		}
	}
	return applied, nil
}

func inScope(p policyv1alpha1.OverridePolicyObject, namespace string) bool {
	if _, ok := p.(*policyv1alpha1.ClusterOverridePolicy); ok {
		return namespace == ""
	}
	return namespace != "" && p.GetNamespace() == namespace
}

// rules returns the rules of a policy; those of the deprecated form are one.
func rules(spec *policyv1alpha1.OverrideSpec) []policyv1alpha1.RuleWithCluster {
	if len(spec.OverrideRules) > 0 {
		return spec.OverrideRules
	}
	return []policyv1alpha1.RuleWithCluster{{TargetCluster: spec.TargetCluster, Overriders: spec.Overriders}}
}

// located is an error of one overrider.
type located struct {
	at  string
	err error
}

// Error names the overrider.
func (e *located) Error() string { return e.at + ": " + e.err.Error() }

// rule applies the overriders of a rule in the contract's order.
func (r *run) rule(o *policyv1alpha1.Overriders) error {
	if r.obj == r.source {
		r.obj = r.source.DeepCopy()
		r.budget = newBudget(r.obj.Object, r.clock)
	}
	if err := r.record(o); err != nil {
		return err
	}
	if err := each(r, "imageOverrider", o.ImageOverrider, r.overrideImage); err != nil {
		return err
	}
	if err := each(r, "commandOverrider", o.CommandOverrider, func(c *policyv1alpha1.CommandArgsOverrider) error {
		return r.overrideWords("command", c)
	}); err != nil {
		return err
	}
	if err := each(r, "argsOverrider", o.ArgsOverrider, func(c *policyv1alpha1.CommandArgsOverrider) error {
		return r.overrideWords("args", c)
	}); err != nil {
		return err
	}
	if err := each(r, "labelsOverrider", o.LabelsOverrider, func(l *policyv1alpha1.LabelAnnotationOverrider) error {
		return r.overrideKeys("labels", l)
	}); err != nil {
		return err
	}
	if err := each(r, "annotationsOverrider", o.AnnotationsOverrider, func(l *policyv1alpha1.LabelAnnotationOverrider) error {
		return r.overrideKeys("annotations", l)
	}); err != nil {
		return err
	}
	if err := each(r, "fieldOverrider", o.FieldOverrider, r.overrideField); err != nil {
		return err
	}
	return each(r, "plaintext", o.Plaintext, r.overridePlaintext)
}

// record accounts for a rule in the annotations of the Work, which the API server refuses when they are too large.
func (r *run) record(o *policyv1alpha1.Overriders) error {
	data, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encoding the overriders: %w", err)
	}
	if r.applied += len(data); r.applied > maxAppliedBytes {
		return fmt.Errorf("%w: the annotations of the Work would have more than %d bytes", ErrBudget, maxAppliedBytes)
	}
	return r.budget.step(1 + len(data)/64)
}

// each applies the entries of one list of overriders and checks after each what
// it changed.
func each[T any](r *run, name string, list []T, apply func(*T) error) error {
	for i := range list {
		err := r.budget.step(1)
		if err == nil {
			err = apply(&list[i])
		}
		if err == nil {
			err = r.identity.Check(r.obj.Object)
		}
		if err != nil {
			return &located{at: fmt.Sprintf("%s[%d]", name, i), err: err}
		}
	}
	return nil
}

// AppliedRule is a rule that was applied. The overriders are shared with the
// policy.
type AppliedRule struct {
	PolicyName string                    `json:"policyName"`
	Overriders policyv1alpha1.Overriders `json:"overriders"`
}

// Applied are the rules that were applied, in the order in which they were.
type Applied struct {
	Cluster, Namespaced []AppliedRule
}

// Annotations returns what a Work records: a JSON list for each scope that has
// applied rules, under AppliedClusterOverridesAnnotation and
// AppliedOverridesAnnotation. It is nil when no rule was applied.
func (a Applied) Annotations() (map[string]string, error) {
	var annotations map[string]string
	for key, rules := range map[string][]AppliedRule{
		policyv1alpha1.AppliedClusterOverridesAnnotation: a.Cluster,
		policyv1alpha1.AppliedOverridesAnnotation:        a.Namespaced,
	} {
		if len(rules) == 0 {
			continue
		}
		rules = slices.Clone(rules)
		slices.SortStableFunc(rules, func(a, b AppliedRule) int { return cmp.Compare(a.PolicyName, b.PolicyName) })
		data, err := json.Marshal(rules)
		if err != nil {
			return nil, fmt.Errorf("encoding applied overrides: %w", err)
		}
		if annotations == nil {
			annotations = make(map[string]string, 2)
		}
		annotations[key] = string(data)
	}
	return annotations, nil
}
