package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// scope is one of the two kinds of bindings; every difference between them is
// here.
type scope struct {
	// Kind is that of the binding; in messages it begins in lower case.
	Kind string
	// New returns an empty binding.
	New func() workv1alpha2.Binding
	// ResultSeparator stands before the result in the event of a success.
	ResultSeparator string
	// Priority says whether bindings have a priority.
	Priority bool
	// Footprint says whether what was assigned is assumed until it shows, and
	// whether bindings have workload affinity.
	Footprint bool
}

func namespacedScope() *scope {
	return &scope{
		Kind:            "ResourceBinding",
		New:             func() workv1alpha2.Binding { return &workv1alpha2.ResourceBinding{} },
		ResultSeparator: ": ", Priority: true, Footprint: true,
	}
}

func clusterScope() *scope {
	return &scope{
		Kind:            "ClusterResourceBinding",
		New:             func() workv1alpha2.Binding { return &workv1alpha2.ClusterResourceBinding{} },
		ResultSeparator: " ",
	}
}

// lowerKind is the kind as messages begin it.
func (s *scope) lowerKind() string { return strings.ToLower(s.Kind[:1]) + s.Kind[1:] }

// priority returns the place of the binding in the queue.
func (s *scope) priority(b workv1alpha2.Binding) int32 {
	if p := b.GetSpec().SchedulePriority; s.Priority && p != nil {
		return p.Priority
	}
	return 0
}

func keyOf(b workv1alpha2.Binding) key { return key{b.GetNamespace(), b.GetName()} }

// String is <namespace>/<name>, or <name>.
func (k key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// owned says whether a scheduler of this name handles the binding.
func owned(b workv1alpha2.Binding, schedulerName string) bool {
	return assigned(b, schedulerName) && !b.GetSpec().SchedulingSuspended() && claimed(b)
}

// assigned reports whether the binding names the scheduler of this name.
func assigned(b workv1alpha2.Binding, schedulerName string) bool {
	name := b.GetSpec().SchedulerName
	if name == "" {
		name = policyv1alpha1.DefaultSchedulerName
	}
	return name == schedulerName
}

// claimed reports whether a policy or a controller claims the binding.
func claimed(b workv1alpha2.Binding) bool {
	labels := b.GetLabels()
	return labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		labels[workv1alpha2.BindingManagedByLabel] != ""
}

// referenceTo returns what an event about the binding refers to.
func (s *scope) referenceTo(b workv1alpha2.Binding) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: workv1alpha2.GroupVersion.String(), Kind: s.Kind, Namespace: b.GetNamespace(), Name: b.GetName(),
		UID: b.GetUID(), ResourceVersion: b.GetResourceVersion(),
	}
}

// templateOf returns what an event about the template refers to.
func templateOf(b workv1alpha2.Binding) *corev1.ObjectReference {
	r := &b.GetSpec().Resource
	return &corev1.ObjectReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion,
	}
}

// resultOf writes targets as events do: {m1:2, m2:1}.
func resultOf(targets []workv1alpha2.TargetCluster) string {
	var b strings.Builder
	for i := range targets {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s:%d", targets[i].Name, targets[i].Replicas)
	}
	return "{" + b.String() + "}"
}
