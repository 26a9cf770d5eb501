package policy

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// Claim says which policy holds an object.
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
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	id, hasID := labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]
	namespace, hasNamespace := annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation]
	name, hasName := annotations[policyv1alpha1.PropagationPolicyNameAnnotation]
	if hasID && hasNamespace && hasName {
		return Claim{Namespace: namespace, Name: name, ID: id}, true
	}
	return OfCluster(obj)
}

// OfCluster returns the claim by a ClusterPropagationPolicy that the object
// carries, even beside one by a PropagationPolicy.
func OfCluster(obj metav1.Object) (Claim, bool) {
	id, hasID := obj.GetLabels()[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel]
	name, hasName := obj.GetAnnotations()[policyv1alpha1.ClusterPropagationPolicyAnnotation]
	if hasID && hasName {
		return Claim{Cluster: true, Name: name, ID: id}, true
	}
	return Claim{}, false
}

// For returns the claim of a policy.
func For(p policyv1alpha1.Policy) Claim {
	if _, ok := p.(*policyv1alpha1.ClusterPropagationPolicy); ok {
		return Claim{Cluster: true, Name: p.GetName(), ID: p.GetLabels()[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel]}
	}
	return Claim{
		Namespace: p.GetNamespace(), Name: p.GetName(),
		ID: p.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel],
	}
}

// IDs returns the permanent ids of every policy that the object is labelled
// with.
func IDs(obj metav1.Object) []string {
	var out []string
	for _, key := range []string{
		policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
	} {
		if id := obj.GetLabels()[key]; id != "" {
			out = append(out, id)
		}
	}
	return out
}

// IDLabel returns the label key that holds the id.
func (c Claim) IDLabel() string {
	if c.Cluster {
		return policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	}
	return policyv1alpha1.PropagationPolicyPermanentIDLabel
}

// SamePolicy reports whether two claims name the same policy, whatever its id.
func (c Claim) SamePolicy(other Claim) bool {
	c.ID, other.ID = "", ""
	return c == other
}

// Describe names the policy for a user, such as PropagationPolicy "default/nginx".
func (c Claim) Describe() string {
	if c.Cluster {
		return fmt.Sprintf("ClusterPropagationPolicy %q", c.Name)
	}
	return fmt.Sprintf("PropagationPolicy %q", c.Namespace+"/"+c.Name)
}

// Labels returns the labels of the claim.
func (c Claim) Labels() map[string]string { return map[string]string{c.IDLabel(): c.ID} }

// Annotations returns the annotations of the claim.
func (c Claim) Annotations() map[string]string {
	if c.Cluster {
		return map[string]string{policyv1alpha1.ClusterPropagationPolicyAnnotation: c.Name}
	}
	return map[string]string{
		policyv1alpha1.PropagationPolicyNamespaceAnnotation: c.Namespace,
		policyv1alpha1.PropagationPolicyNameAnnotation:      c.Name,
	}
}

// HeldBy says whether the object is labelled with the id of the claim.
func (c Claim) HeldBy(obj metav1.Object) bool { return obj.GetLabels()[c.IDLabel()] == c.ID }

// Change is a change of labels and annotations; nil values remove keys.
type Change struct {
	Labels, Annotations map[string]*string
}

// Empty says whether there is nothing to change.
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
