package webhook

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

const (
	// claimTimeout bounds the reads for the warnings about one policy.
	claimTimeout = 500 * time.Millisecond
	// claimLookups is the number of selectors that are looked up, claimParallel that of those at a time, claimPage that
	// of bindings read for a selector without a name, claimShown that of warnings.
	claimLookups, claimParallel, claimPage, claimShown = 20, 5, 200, 3
)

// advice returns the warnings about a policy that need reads, or are about what it selects.
func (d Deps) advice(ctx context.Context, p policyv1alpha1.Policy) []string {
	var out []string
	for i, rs := range p.PropagationSpec().ResourceSelectors {
		if manifest.ActsHere(schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind).GroupKind()) && p.GetDeletionTimestamp() == nil {
			out = append(out, fmt.Sprintf("%s: objects of kind %s act in the control plane too, on its users and on what they store there",
				field.NewPath("spec", "resourceSelectors").Index(i), rs.Kind))
		}
		if len(out) == claimShown {
			break
		}
	}
	return append(out, d.claimWarnings(ctx, p)...)
}

// claimWarnings returns a warning for objects that a policy selects and that another
// policy holds: the one that holds an object keeps it. A policy that may preempt
// others gets none, for the decision is the controller's.
func (d Deps) claimWarnings(ctx context.Context, p policyv1alpha1.Policy) []string {
	spec := p.PropagationSpec()
	if p.GetDeletionTimestamp() != nil || spec.Preemption == policyv1alpha1.PreemptAlways {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	found := make([][]workv1alpha2.Binding, min(len(spec.ResourceSelectors), claimLookups))
	workqueue.ParallelizeUntil(ctx, claimParallel, len(found), func(i int) { found[i] = d.bindingsOf(ctx, p, &spec.ResourceSelectors[i]) })
	var out []string
	hidden := 0
	for i := range found {
		path := field.NewPath("spec", "resourceSelectors").Index(i)
		for _, b := range found[i] {
			holder, held := policy.Of(b)
			if !held || holder.SamePolicy(policy.For(p)) || takesOver(p, &spec.ResourceSelectors[i], holder) {
				continue
			}
			if len(out) == claimShown {
				hidden++
				continue
			}
			ref := b.GetSpec().Resource
			out = append(out, fmt.Sprintf("%s: %s %q is claimed by %s: this policy does not apply to it", path, ref.Kind, ref.Name, holder.Describe()))
		}
	}
	if hidden > 0 {
		out = append(out, fmt.Sprintf("spec.resourceSelectors: %d more objects are claimed by other policies", hidden))
	}
	return out
}

// takesOver reports whether a cluster-wide policy takes objects that a selector names over from the policy of a namespace.
func takesOver(p policyv1alpha1.Policy, rs *policyv1alpha1.ResourceSelector, holder policy.Claim) bool {
	return p.GetNamespace() == "" && !holder.Cluster && policy.ClusterFirst(schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind).GroupKind())
}

// bindingsOf returns the bindings of the objects that a selector names, or else of
// those of its kind. A selector of labels is left out: bindings do not have the
// labels of their objects. Errors give no bindings, for these serve warnings only.
func (d Deps) bindingsOf(ctx context.Context, p policyv1alpha1.Policy, rs *policyv1alpha1.ResourceSelector) []workv1alpha2.Binding {
	namespace := rs.Namespace
	if p.GetNamespace() != "" {
		namespace = p.GetNamespace()
	}
	var found []workv1alpha2.Binding
	switch {
	case rs.Name != "":
		found = d.namedBinding(ctx, namespace, rs)
	case rs.LabelSelector == nil:
		var list workv1alpha2.ResourceBindingList
		if d.LiveReader.List(ctx, &list, client.InNamespace(namespace), client.Limit(claimPage)) != nil {
			return nil
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	var out []workv1alpha2.Binding
	for _, b := range found {
		if ref := b.GetSpec().Resource; ref.APIVersion == rs.APIVersion && ref.Kind == rs.Kind && (rs.Name == "" || ref.Name == rs.Name) {
			out = append(out, b)
		}
	}
	return out
}

func (d Deps) namedBinding(ctx context.Context, namespace string, rs *policyv1alpha1.ResourceSelector) []workv1alpha2.Binding {
	var b workv1alpha2.Binding = &workv1alpha2.ResourceBinding{}
	if namespace == "" {
		b = &workv1alpha2.ClusterResourceBinding{}
	}
	if d.LiveReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names.Binding(rs.Kind, rs.Name)}, b) != nil {
		return nil
	}
	return []workv1alpha2.Binding{b}
}
