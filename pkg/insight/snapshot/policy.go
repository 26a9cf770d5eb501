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
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// maxListed is the number of objects of a kind, or of bindings, that are read.
const maxListed = 5000

// PolicyFacts are what an account of a propagation policy is computed from.
type PolicyFacts struct {
	Policy policyv1alpha1.Policy
	// Selected are the metadata of the objects that the policy selects, sorted.
	Selected []*unstructured.Unstructured
	Gaps     []Gap
}

// Policy reads the facts about a propagation policy, which the user has read.
func (r *Reader) Policy(ctx context.Context, p policyv1alpha1.Policy) (*PolicyFacts, error) {
	f := &PolicyFacts{Policy: p}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		kinds[schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind)] = true
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for kind := range kinds {
		group.Go(func() {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			err := r.ControlPlane.List(ctx, list, client.InNamespace(p.GetNamespace()), client.Limit(maxListed))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f.Gaps = append(f.Gaps, Gap{kind.Kind, err})
			}
			for i := range list.Items {
				list.Items[i].SetGroupVersionKind(kind)
				obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
				if u := (&unstructured.Unstructured{Object: obj}); err == nil && policy.Matches(u, p) {
					f.Selected = append(f.Selected, u)
				}
			}
		})
	}
	group.Wait()
	slices.SortFunc(f.Selected, func(a, b *unstructured.Unstructured) int { return strings.Compare(name(a), name(b)) })
	return f, context.Cause(ctx)
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
	Gaps     []Gap
}

// Cluster reads the facts about a cluster, which the user has read.
func (r *Reader) Cluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*ClusterFacts, error) {
	f := &ClusterFacts{Now: r.Now(), Cluster: cluster}
	for _, s := range scope.Bindings() {
		list := s.NewList()
		if err := r.ControlPlane.List(ctx, list, client.Limit(maxListed)); err != nil {
			f.Gaps = append(f.Gaps, Gap{s.Kind + "s", err})
		}
		for _, b := range list.Bindings() {
			kept := scope.Kept(scope.Targets(b.GetSpec()), b.GetSpec().GracefulEvictionTasks)
			if slices.ContainsFunc(kept, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster.Name }) {
				f.Bindings = append(f.Bindings, b)
			}
		}
	}
	return f, context.Cause(ctx)
}
