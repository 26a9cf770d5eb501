package snapshot

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// PolicyFacts are what an account of a propagation policy is computed from.
type PolicyFacts struct {
	Policy policyv1alpha1.Policy
	// Selected are the metadata of the objects that the policy selects, sorted.
	Selected []*unstructured.Unstructured
	Gaps
}

// Policy reads the facts about a propagation policy, which the user has read.
func (r *Reader) Policy(ctx context.Context, p policyv1alpha1.Policy) (*PolicyFacts, error) {
	f, in := &PolicyFacts{Policy: p}, &reads{from: r.ControlPlane}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		kinds[schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind)] = true
	}
	var group sync.WaitGroup
	for kind := range kinds {
		group.Go(func() {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			in.list(ctx, kind.Kind, list, func(page client.ObjectList) { f.take(kind, page.(*metav1.PartialObjectMetadataList).Items) }, client.InNamespace(p.GetNamespace()))
		})
	}
	group.Wait()
	slices.SortFunc(f.Selected, func(a, b *unstructured.Unstructured) int { return strings.Compare(name(a), name(b)) })
	f.Gaps = in.sorted()
	return f, context.Cause(ctx)
}

// take adds the objects of a kind that the policy selects.
func (f *PolicyFacts) take(kind schema.GroupVersionKind, items []metav1.PartialObjectMetadata) {
	for i := range items {
		items[i].SetGroupVersionKind(kind)
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&items[i])
		if u := (&unstructured.Unstructured{Object: obj}); err == nil && policy.Matches(u, f.Policy) {
			f.Selected = append(f.Selected, u)
		}
	}
}

func name(u *unstructured.Unstructured) string {
	return u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
}

// ClusterFacts are what an account of a cluster is computed from.
type ClusterFacts struct {
	Now     time.Time
	Cluster *clusterv1alpha1.Cluster
	// Bindings are those whose objects are, or are to be, in the cluster.
	Bindings []workv1alpha2.Binding
	// Leaving are the Works of the cluster that are being deleted.
	Leaving []*workv1alpha1.Work
	Gaps
}

// Cluster reads the facts about a cluster, which the user has read.
func (r *Reader) Cluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*ClusterFacts, error) {
	f, in := &ClusterFacts{Now: r.Now(), Cluster: cluster}, &reads{from: r.ControlPlane}
	for _, b := range in.bindings(ctx, r.Namespace) {
		kept := scope.Kept(scope.Targets(b.GetSpec()), b.GetSpec().GracefulEvictionTasks)
		if slices.ContainsFunc(kept, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster.Name }) {
			f.Bindings = append(f.Bindings, b)
		}
	}
	in.list(ctx, "Works of the cluster", &workv1alpha1.WorkList{}, func(l client.ObjectList) {
		works := l.(*workv1alpha1.WorkList).Items
		for i := range works {
			if works[i].DeletionTimestamp != nil {
				f.Leaving = append(f.Leaving, &works[i])
			}
		}
	}, client.InNamespace(names.ExecutionNamespace(cluster.Name)))
	f.Gaps = in.sorted()
	return f, context.Cause(ctx)
}
