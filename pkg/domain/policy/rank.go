// Package policy decides which propagation policy an object belongs to and how
// that is written on the object. It is pure.
package policy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Matches reports whether the policy propagates the object: it selects it, and the object is not one of the control plane
// itself.
func Matches(obj *unstructured.Unstructured, p policyv1alpha1.Policy) bool {
	return Specificity(obj, p) != match.None
}

// MatchesOwn reports whether the policy selects an object of the control plane itself.
func MatchesOwn(obj *unstructured.Unstructured, p policyv1alpha1.Policy) bool {
	return Own(obj) != "" && selects(obj, p) != match.None
}

// Specificity returns how specifically the policy selects the object, or match.None if it does not propagate it.
func Specificity(obj *unstructured.Unstructured, p policyv1alpha1.Policy) match.Priority {
	if priority := selects(obj, p); priority == match.None || Own(obj) == "" {
		return priority
	}
	return match.None
}

// selects returns how specific the policy selects an object. A PropagationPolicy selects in its own namespace only.
func selects(obj *unstructured.Unstructured, p policyv1alpha1.Policy) match.Priority {
	if p.GetNamespace() != "" && p.GetNamespace() != obj.GetNamespace() {
		return match.None
	}
	return match.Resources(obj, p.PropagationSpec().ResourceSelectors)
}

// Best returns the policy that gets the object: the one with the highest
// explicit priority, then the most specific selector, then the smallest name.
// Policies that are being deleted or do not match are left out; nil means none.
func Best(obj *unstructured.Unstructured, candidates []policyv1alpha1.Policy) policyv1alpha1.Policy {
	var best policyv1alpha1.Policy
	var bestMatch match.Priority
	for _, p := range candidates {
		if p.GetDeletionTimestamp() != nil {
			continue
		}
		m := Specificity(obj, p)
		if m == match.None {
			continue
		}
		if best == nil || outranks(p, m, best, bestMatch) {
			best, bestMatch = p, m
		}
	}
	return best
}

func outranks(a policyv1alpha1.Policy, am match.Priority, b policyv1alpha1.Policy, bm match.Priority) bool {
	ap, bp := a.PropagationSpec().ExplicitPriority(), b.PropagationSpec().ExplicitPriority()
	if ap != bp {
		return ap > bp
	}
	if am != bm {
		return am > bm
	}
	return a.GetName() < b.GetName()
}

// Preempts reports whether the policy takes an object over from another one of its
// kind.
func Preempts(p, holder policyv1alpha1.Policy) bool {
	return p.PropagationSpec().ExplicitPriority() > holder.PropagationSpec().ExplicitPriority()
}

// TakesOver reports whether a policy that preempts takes an object of a kind over from its holder. current returns the policy of the
// holder; it is called, and its error returned, if the priorities decide.
func TakesOver(kind schema.GroupKind, p policyv1alpha1.Policy, holder Claim, current func() (policyv1alpha1.Policy, error)) (bool, error) {
	claim := For(p)
	switch {
	case holder == claim:
		return false, nil
	case claim.Cluster != holder.Cluster:
		return !claim.Cluster && !ClusterFirst(kind), nil
	}
	held, err := current()
	return err == nil && Preempts(p, held), err
}

// ClusterFirst reports whether a ClusterPropagationPolicy wins over PropagationPolicies
// for objects of a kind, whichever was there first: those by which an administrator grants
// rights and sets limits in a namespace, whose users must not decide in which members they
// hold.
func ClusterFirst(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return kind.Kind == "ResourceQuota" || kind.Kind == "LimitRange"
	case "networking.k8s.io":
		return kind.Kind == "NetworkPolicy"
	case "rbac.authorization.k8s.io":
		return kind.Kind == "Role" || kind.Kind == "RoleBinding"
	}
	return false
}

// Scopes returns the scopes of policies that are asked for an object that none holds, in order. The first that has one for it
// decides.
func Scopes(obj *unstructured.Unstructured) []*scope.Policy {
	switch {
	case obj.GetNamespace() == "":
		return []*scope.Policy{scope.ClusterPolicy()}
	case ClusterFirst(obj.GroupVersionKind().GroupKind()):
		return []*scope.Policy{scope.ClusterPolicy(), scope.NamespacedPolicy()}
	}
	return scope.Policies()
}

// IsLazy reports whether a change of the policy waits for the next change of each
// object.
func IsLazy(p policyv1alpha1.Policy) bool {
	return p.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
}
