package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// namespaces is the kind of Namespaces.
var namespaces = corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()

// sync gives every cluster a namespace that is created there without a policy. The clusters of its binding, if there is one, get what that
// determines.
func (p *planner) sync(s *state) {
	if keyOf(s.template).GroupKind != namespaces || !p.Skipped.Syncs(s.template) {
		return
	}
	s.synced = map[string]bool{}
	for _, c := range p.Clusters {
		if target(s, c.Name) == nil && c.DeletionTimestamp == nil {
			s.synced[c.Name] = true
			s.targets = append(s.targets, workv1alpha2.TargetCluster{Name: c.Name})
		}
	}
	if s.binding == nil {
		s.binding = scope.BindingIn("").New()
	}
}

// Delete deletes an object of the control plane: a template, or a policy. What its deletion deletes there is deleted too. The error is that
// it does not exist, or may not be deleted.
func Delete(kind schema.GroupKind, namespace, name string) Change {
	return func(w *World) error {
		k := key{kind, namespace, name}
		all := w.objects()
		o := all[k]
		switch {
		case o == nil:
			return w.missing(k)
		case protected(o):
			return fmt.Errorf("the deletion of %s would be refused: it has the label %s", k, workv1alpha2.DeletionProtectionLabel)
		case kind == namespaces && slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}, name):
			return fmt.Errorf("the deletion of %s would be refused: API servers need it", k)
		case kind == clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind():
			return Unjoin(name)(w)
		case kind == configv1alpha1.GroupVersion.WithKind("ResourceInterpreterCustomization").GroupKind():
			return w.interpret(slices.DeleteFunc(slices.Clone(w.Customizations), func(c *configv1alpha1.ResourceInterpreterCustomization) bool { return c.Name == name }))
		}
		d := &deletion{World: w, all: all, owned: map[types.UID][]key{}}
		for of, other := range all {
			if owners := other.GetOwnerReferences(); len(owners) == 1 {
				d.owned[owners[0].UID] = append(d.owned[owners[0].UID], of)
			}
		}
		d.remove(k, o)
		if len(d.stay) > 0 {
			if kind == namespaces {
				w.templates[k] = o.(*unstructured.Unstructured)
			}
			slices.Sort(d.stay)
			w.remarks = append(w.remarks, fmt.Sprintf("%s stays until these are deleted, which have the label %s: %s", k, workv1alpha2.DeletionProtectionLabel, several(d.stay)))
		}
		return nil
	}
}

// objects returns the objects of the control plane.
func (w *World) objects() map[key]metav1.Object {
	out, policies := map[key]metav1.Object{}, policyv1alpha1.GroupVersion
	in := func(group schema.GroupVersion, kind string, o metav1.Object) {
		out[key{group.WithKind(kind).GroupKind(), o.GetNamespace(), o.GetName()}] = o
	}
	for k, t := range w.templates {
		out[k] = t
	}
	for k, p := range w.policies {
		out[k] = p
	}
	for _, o := range w.Overrides {
		in(policies, scope.Pick(o.GetNamespace() != "", "OverridePolicy", "ClusterOverridePolicy"), o)
	}
	for _, q := range w.Quotas {
		in(policies, "FederatedResourceQuota", q)
	}
	for _, p := range w.TaintPolicies {
		in(policies, "ClusterTaintPolicy", p)
	}
	for _, c := range w.Customizations {
		in(configv1alpha1.GroupVersion, "ResourceInterpreterCustomization", c)
	}
	for _, c := range w.Clusters {
		in(clusterv1alpha1.GroupVersion, "Cluster", c)
	}
	return out
}

// protected reports whether admission refuses the deletion of an object.
func protected(o metav1.Object) bool {
	return o.GetLabels()[workv1alpha2.DeletionProtectionLabel] == workv1alpha2.DeletionProtectionAlways
}

// deletion deletes an object and what is deleted with it.
type deletion struct {
	*World
	// all are the objects that exist, and owned those with one owner, by its UID.
	all   map[key]metav1.Object
	owned map[types.UID][]key
	// stay are the objects that admission protects.
	stay []string
}

// remove deletes an object, and what is in a namespace, the objects of a CustomResourceDefinition, and what the object owns.
func (d *deletion) remove(k key, o metav1.Object) {
	delete(d.all, k)
	d.changed[k] = true
	is := func(o metav1.Object) bool { return o.GetNamespace() == k.namespace && o.GetName() == k.name }
	switch strings.TrimSuffix(k.GroupKind.String(), "."+policyv1alpha1.GroupName) {
	case "PropagationPolicy", "ClusterPropagationPolicy":
		delete(d.policies, k)
		d.candidates[k.namespace] = slices.DeleteFunc(d.candidates[k.namespace], func(p policyv1alpha1.Policy) bool { return is(p) })
	case "OverridePolicy", "ClusterOverridePolicy":
		d.Overrides = slices.DeleteFunc(d.Overrides, func(p policyv1alpha1.OverridePolicyObject) bool { return is(p) })
	case "FederatedResourceQuota":
		d.Quotas = slices.DeleteFunc(slices.Clone(d.Quotas), func(q *policyv1alpha1.FederatedResourceQuota) bool { return is(q) })
	case "ClusterTaintPolicy":
		d.TaintPolicies = slices.DeleteFunc(slices.Clone(d.TaintPolicies), func(p *policyv1alpha1.ClusterTaintPolicy) bool { return is(p) })
		d.taint()
	default:
		delete(d.templates, k)
	}
	for _, of := range slices.Concat(d.owned[o.GetUID()], d.within(k, o)) {
		switch in := d.all[of]; {
		case in == nil:
		case protected(in):
			delete(d.all, of)
			d.stay = append(d.stay, of.String())
		default:
			d.remove(of, in)
		}
	}
}

// within returns the objects of a namespace, or of a CustomResourceDefinition.
func (d *deletion) within(k key, o metav1.Object) []key {
	var in func(key) bool
	switch t, _ := o.(*unstructured.Unstructured); k.GroupKind {
	case namespaces:
		in = func(of key) bool { return of.namespace == k.name }
	case definitions:
		group, _, _ := unstructured.NestedString(t.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(t.Object, "spec", "names", "kind")
		in = func(of key) bool { return of.GroupKind == schema.GroupKind{Group: group, Kind: kind} }
	default:
		return nil
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(d.all)), func(of key) bool { return !in(of) })
}

// several returns names, and how many there are more than are named.
func several(names []string) string {
	if n := len(names); n > maxNamed {
		names = append(names[:maxNamed:maxNamed], fmt.Sprintf("%d more", n-maxNamed))
	}
	return strings.Join(names, ", ")
}
