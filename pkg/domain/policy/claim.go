package policy

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Claim names the policy that holds an object.
type Claim struct {
	// Cluster is true for a ClusterPropagationPolicy.
	Cluster bool
	// Namespace of the policy; empty for a ClusterPropagationPolicy.
	Namespace string
	// Name of the policy.
	Name string
	// ID is the permanent id of the policy.
	ID string
}

// Of returns the claim that the object carries. A claim by a PropagationPolicy
// counts before one by a ClusterPropagationPolicy; an incomplete claim does not
// count.
func Of(obj metav1.Object) (Claim, bool) {
	for _, sc := range scope.Policies() {
		if c, ok := in(sc, obj); ok {
			return c, true
		}
	}
	return Claim{}, false
}

// in returns the claim by a policy of a scope that the object carries.
func in(s *scope.Policy, obj metav1.Object) (Claim, bool) {
	annotations := obj.GetAnnotations()
	id, hasID := obj.GetLabels()[s.IDLabel]
	name, hasName := annotations[s.NameAnnotation]
	c := Claim{Cluster: !s.Namespaced, Name: name, ID: id}
	complete := hasID && hasName
	if s.Namespaced {
		var hasNamespace bool
		c.Namespace, hasNamespace = annotations[s.NamespaceAnnotation]
		complete = complete && hasNamespace
	}
	if !complete {
		return Claim{}, false
	}
	return c, true
}

// For returns the claim of a policy.
func For(p policyv1alpha1.Policy) Claim {
	s := scope.PolicyOf(p)
	return Claim{Cluster: !s.Namespaced, Namespace: p.GetNamespace(), Name: p.GetName(), ID: p.GetLabels()[s.IDLabel]}
}

// IDs returns the permanent ids of every policy that the object is labelled
// with.
func IDs(obj metav1.Object) []string {
	var out []string
	for _, s := range scope.Policies() {
		if id := obj.GetLabels()[s.IDLabel]; id != "" {
			out = append(out, id)
		}
	}
	return out
}

// Scope returns the scope of the policy.
func (c Claim) Scope() *scope.Policy {
	if c.Cluster {
		return scope.ClusterPolicy()
	}
	return scope.NamespacedPolicy()
}

// Key returns <namespace>/<name>, or <name> of a ClusterPropagationPolicy.
func (c Claim) Key() string {
	if c.Cluster {
		return c.Name
	}
	return c.Namespace + "/" + c.Name
}

// SamePolicy reports whether two claims name the same policy, whatever its id.
func (c Claim) SamePolicy(other Claim) bool {
	c.ID, other.ID = "", ""
	return c == other
}

// Describe names the policy for a user, such as PropagationPolicy "default/nginx".
func (c Claim) Describe() string { return fmt.Sprintf("%s %q", c.Scope().Kind, c.Key()) }

// Labels returns the labels of the claim.
func (c Claim) Labels() map[string]string { return map[string]string{c.Scope().IDLabel: c.ID} }

// Annotations returns the annotations of the claim.
func (c Claim) Annotations() map[string]string {
	s := c.Scope()
	out := map[string]string{s.NameAnnotation: c.Name}
	if s.Namespaced {
		out[s.NamespaceAnnotation] = c.Namespace
	}
	return out
}

// HeldBy reports whether the object is labelled with the id of the claim.
func (c Claim) HeldBy(obj metav1.Object) bool { return obj.GetLabels()[c.Scope().IDLabel] == c.ID }

// Change is a change of labels and annotations; nil values remove keys.
type Change struct {
	Labels, Annotations map[string]*string
}

// Empty reports whether there is nothing to change.
func (c Change) Empty() bool { return len(c.Labels) == 0 && len(c.Annotations) == 0 }

// Take returns what must change on the object for the claim to hold. A
// PropagationPolicy also drops the claim of a ClusterPropagationPolicy.
func (c Claim) Take(obj metav1.Object) Change {
	ch := Change{
		Labels:      missing(obj.GetLabels(), c.Labels()),
		Annotations: missing(obj.GetAnnotations(), c.Annotations()),
	}
	if !c.Cluster {
		other := Claim{Cluster: true}
		ch.Labels = present(ch.Labels, obj.GetLabels(), other.Labels())
		ch.Annotations = present(ch.Annotations, obj.GetAnnotations(), other.Annotations())
	}
	return ch
}

// Drop returns what must change on the object for the claim to be gone; it is
// empty when the object is labelled with another id.
func (c Claim) Drop(obj metav1.Object) Change {
	if !c.HeldBy(obj) {
		return Change{}
	}
	return Change{
		Labels:      present(nil, obj.GetLabels(), c.Labels()),
		Annotations: present(nil, obj.GetAnnotations(), c.Annotations()),
	}
}

// Metadata returns the change as the metadata of a merge patch.
func (c Change) Metadata() map[string]any {
	out := map[string]any{}
	if len(c.Labels) > 0 {
		out["labels"] = c.Labels
	}
	if len(c.Annotations) > 0 {
		out["annotations"] = c.Annotations
	}
	return out
}

// Apply makes the change on the object.
func (c Change) Apply(obj metav1.Object) {
	if len(c.Labels) > 0 {
		obj.SetLabels(merged(obj.GetLabels(), c.Labels))
	}
	if len(c.Annotations) > 0 {
		obj.SetAnnotations(merged(obj.GetAnnotations(), c.Annotations))
	}
}

func merged(have map[string]string, change map[string]*string) map[string]string {
	out := make(map[string]string, len(have)+len(change))
	maps.Copy(out, have)
	for k, v := range change {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = *v
	}
	return out
}

func missing(have, want map[string]string) map[string]*string {
	var out map[string]*string
	for k, v := range want {
		if got, ok := have[k]; ok && got == v {
			continue
		}
		if out == nil {
			out = map[string]*string{}
		}
		out[k] = &v
	}
	return out
}

func present(out map[string]*string, have, keys map[string]string) map[string]*string {
	for k := range keys {
		if _, ok := have[k]; !ok {
			continue
		}
		if out == nil {
			out = map[string]*string{}
		}
		out[k] = nil
	}
	return out
}
