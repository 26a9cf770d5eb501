package validation

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ValidatePolicyIdentity checks the immutable fields of a PropagationPolicy or
// ClusterPropagationPolicy: the id that admission set, and the scheduler. Old is
// nil for a new policy.
func ValidatePolicyIdentity(p, old policyv1alpha1.Policy) error {
	label := PermanentIDLabel(p)
	id, has := p.GetLabels()[label]
	if old != nil {
		if p.PropagationSpec().SchedulerName != old.PropagationSpec().SchedulerName {
			return errors.New("the schedulerName should not be updated")
		}
		if oldID, had := old.GetLabels()[label]; id != oldID || has != had {
			return fmt.Errorf("label %s is immutable, it can only be set by the system during creation", label)
		}
	}
	if !has {
		return fmt.Errorf("label %s is required, it should be set by the mutating admission webhook during creation", label)
	}
	return nil
}

// PermanentIDLabel is the label that holds the id of a policy.
func PermanentIDLabel(p policyv1alpha1.Policy) string {
	if _, ok := p.(*policyv1alpha1.PropagationPolicy); ok {
		return policyv1alpha1.PropagationPolicyPermanentIDLabel
	}
	return policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
}

// ValidatePropagationPolicy checks the spec of a PropagationPolicy or a
// ClusterPropagationPolicy that is created.
func ValidatePropagationPolicy(p policyv1alpha1.Policy) field.ErrorList {
	return append(validatePropagationSpec(p), validatePropagationLimits(p.PropagationSpec(), field.NewPath("spec"))...)
}

// ValidatePropagationPolicyUpdate checks a PropagationPolicy or a ClusterPropagationPolicy against the stored one that it
// replaces. A stored policy beyond the limits of what parsers read may keep its spec: the limits hold where it is used as
// well, and other updates of it must stay possible.
func ValidatePropagationPolicyUpdate(p, old policyv1alpha1.Policy) field.ErrorList {
	if equality.Semantic.DeepEqual(p.PropagationSpec(), old.PropagationSpec()) {
		return validatePropagationSpec(p)
	}
	return ValidatePropagationPolicy(p)
}

func validatePropagationSpec(p policyv1alpha1.Policy) field.ErrorList {
	spec, path := p.PropagationSpec(), field.NewPath("spec")
	errs := ValidatePlacement(&spec.Placement, path.Child("placement"))
	if spec.Failover != nil && spec.Failover.Application != nil && !spec.PropagateDeps {
		errs = append(errs, field.Invalid(path.Child("propagateDeps"), spec.PropagateDeps, "application failover is set, propagateDeps must be true"))
	}
	errs = append(errs, validateFailover(spec.Failover, path.Child("failover"))...)
	selectors := path.Child("resourceSelectors")
	if namespaced, ok := p.(*policyv1alpha1.PropagationPolicy); ok {
		errs = append(errs, validateSelectorNamespaces(spec.ResourceSelectors, namespaced.Namespace, selectors)...)
	}
	if spec.Preemption == policyv1alpha1.PreemptAlways {
		for i := range spec.ResourceSelectors {
			if spec.ResourceSelectors[i].Name == "" {
				errs = append(errs, field.Invalid(selectors.Index(i).Child("name"), "",
					"name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption"))
			}
		}
	}
	return append(errs, validateSuspension(spec.Suspension, path.Child("suspension"))...)
}

func validateSelectorNamespaces(selectors []policyv1alpha1.ResourceSelector, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range selectors {
		if selectors[i].Namespace != namespace {
			errs = append(errs, field.Invalid(path.Index(i).Child("namespace"), selectors[i].Namespace,
				"namespace of resource selector must be the same as the namespace of the policy"))
		}
	}
	return errs
}

// validateSuspension returns errors with the path that the contract defines.
func validateSuspension(s *policyv1alpha1.Suspension, path *field.Path) field.ErrorList {
	if s == nil || s.Dispatching == nil || !*s.Dispatching || s.DispatchingOnClusters == nil || len(s.DispatchingOnClusters.ClusterNames) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("suspension"), *s,
		"suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames")}
}

func validateFailover(failover *policyv1alpha1.FailoverBehavior, path *field.Path) field.ErrorList {
	if failover == nil {
		return nil
	}
	var errs field.ErrorList
	if app := failover.Application; app != nil {
		at := path.Child("application")
		if s := app.DecisionConditions.TolerationSeconds; s != nil && *s < 0 {
			errs = append(errs, field.Invalid(at.Child("decisionConditions", "tolerationSeconds"), *s, "must be greater than or equal to 0"))
		}
		errs = append(errs, validateGracePeriod(app, at.Child("gracePeriodSeconds"))...)
		errs = append(errs, validateStatePreservation(app.StatePreservation, at.Child("statePreservation"))...)
	}
	if failover.Cluster != nil {
		errs = append(errs, validateStatePreservation(failover.Cluster.StatePreservation, path.Child("cluster", "statePreservation"))...)
	}
	return errs
}

func validateGracePeriod(app *policyv1alpha1.ApplicationFailoverBehavior, path *field.Path) field.ErrorList {
	grace := app.GracePeriodSeconds
	switch {
	case app.PurgeMode != policyv1alpha1.PurgeModeGracefully && grace != nil:
		return field.ErrorList{field.Invalid(path, *grace, "only takes effect when purgeMode is gracefully")}
	case app.PurgeMode == policyv1alpha1.PurgeModeGracefully && grace == nil:
		return field.ErrorList{field.Invalid(path, nil, "should not be empty when purgeMode is gracefully")}
	case grace != nil && *grace <= 0:
		return field.ErrorList{field.Invalid(path, *grace, "must be greater than 0")}
	}
	return nil
}

func validateStatePreservation(s *policyv1alpha1.StatePreservation, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for i, rule := range s.Rules {
		errs = append(errs, invalidEach(path.Child("rules").Index(i).Child("aliasLabelName"), rule.AliasLabelName,
			utilvalidation.IsQualifiedName(rule.AliasLabelName))...)
	}
	return errs
}

// validatePropagationLimits checks what parsers read: paths of preserved state and label selectors.
func validatePropagationLimits(spec *policyv1alpha1.PropagationSpec, path *field.Path) field.ErrorList {
	errs := validateResourceSelectorSizes(spec.ResourceSelectors, path.Child("resourceSelectors"))
	errs = append(errs, validatePlacementSelectors(&spec.Placement, path.Child("placement"))...)
	if spec.Failover == nil {
		return errs
	}
	if app := spec.Failover.Application; app != nil {
		errs = append(errs, validateStatePaths(app.StatePreservation, path.Child("failover", "application", "statePreservation"))...)
	}
	if cluster := spec.Failover.Cluster; cluster != nil {
		errs = append(errs, validateStatePaths(cluster.StatePreservation, path.Child("failover", "cluster", "statePreservation"))...)
	}
	return errs
}

func validateStatePaths(s *policyv1alpha1.StatePreservation, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	rules := path.Child("rules")
	if len(s.Rules) > MaxStateRules {
		return field.ErrorList{field.TooMany(rules, len(s.Rules), MaxStateRules)}
	}
	var errs field.ErrorList
	for i := range s.Rules {
		if err := CheckStatePath(s.Rules[i].JSONPath); err != nil {
			errs = append(errs, field.Invalid(rules.Index(i).Child("jsonPath"), Shown(s.Rules[i].JSONPath), err.Error()))
		}
	}
	return errs
}
