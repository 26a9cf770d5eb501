package search

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

func clustersOf(names ...string) []*clusterv1alpha1.Cluster {
	out := make([]*clusterv1alpha1.Cluster, 0, len(names))
	for _, name := range names {
		out = append(out, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return out
}

func registryOf(clusters []string, selectors ...searchv1alpha1.ResourceSelector) *searchv1alpha1.ResourceRegistry {
	r := &searchv1alpha1.ResourceRegistry{}
	r.Spec.TargetCluster.ClusterNames, r.Spec.ResourceSelectors = clusters, selectors
	return r
}

func TestWant(t *testing.T) {
	selector := func(version, kind, namespace string) searchv1alpha1.ResourceSelector {
		return searchv1alpha1.ResourceSelector{APIVersion: version, Kind: kind, Namespace: namespace}
	}
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	now := metav1.Now()
	deleted := registryOf(nil, selector("v1", "Pod", ""))
	deleted.DeletionTimestamp = &now
	leaving := clustersOf("m1", "m2")
	leaving[1].DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		registries []*searchv1alpha1.ResourceRegistry
		clusters   []*clusterv1alpha1.Cluster
		want       Wanted
	}{
		"every cluster": {[]*searchv1alpha1.ResourceRegistry{registryOf(nil, selector("v1", "Pod", ""))}, clustersOf("m1", "m2"),
			Wanted{{"m1", pod}: {All: true}, {"m2", pod}: {All: true}}},
		"namespaces are joined": {[]*searchv1alpha1.ResourceRegistry{
			registryOf(nil, selector("apps/v1", "Deployment", "b"), selector("apps/v1", "Deployment", "a")),
			registryOf([]string{"m1"}, selector("apps/v1", "Deployment", "a"), selector("apps/v1", "Deployment", "c")),
		}, clustersOf("m1", "m2"), Wanted{{"m1", deployment}: {Names: []string{"a", "b", "c"}}, {"m2", deployment}: {Names: []string{"a", "b"}}}},
		"one selector of all namespaces counts": {[]*searchv1alpha1.ResourceRegistry{
			registryOf(nil, selector("v1", "Pod", "a"), selector("v1", "Pod", ""), selector("v1", "Pod", "b")),
		}, clustersOf("m1"), Wanted{{"m1", pod}: {All: true}}},
		"what selects nothing": {[]*searchv1alpha1.ResourceRegistry{
			registryOf(nil, selector("", "Pod", ""), selector("v1", "", ""), selector("a/b/c", "Pod", "")), deleted,
		}, clustersOf("m1"), Wanted{}},
		"a cluster that leaves": {[]*searchv1alpha1.ResourceRegistry{registryOf(nil, selector("v1", "Pod", ""))}, leaving,
			Wanted{{"m1", pod}: {All: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Want(tc.registries, tc.clusters)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A change of one registry touches only what it named before or names now, and the registries together want what each wants.
func TestWant_OneRegistryTouchesOnlyWhatItNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names, kinds, spaces := []string{"m1", "m2", "m3"}, []string{"Pod", "Secret", "Service"}, []string{"", "a", "b", "c"}
	random := func() *searchv1alpha1.ResourceRegistry {
		out := registryOf([]string{names[r.IntN(3)], names[r.IntN(3)]})
		for range r.IntN(4) {
			out.Spec.ResourceSelectors = append(out.Spec.ResourceSelectors,
				searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: kinds[r.IntN(3)], Namespace: spaces[r.IntN(4)]})
		}
		return out
	}
	clusters := clustersOf(names...)
	for range 2000 {
		all := []*searchv1alpha1.ResourceRegistry{random(), random(), random()}
		before := Want(all, clusters)
		together := Wanted{}
		for _, one := range all {
			for source, namespaces := range Want([]*searchv1alpha1.ResourceRegistry{one}, clusters) {
				together[source] = union(together[source], namespaces)
			}
		}
		if diff := cmp.Diff(together, before); diff != "" {
			t.Fatal(diff)
		}
		old := all[1]
		all[1] = random()
		after := Want(all, clusters)
		named := Want([]*searchv1alpha1.ResourceRegistry{old, all[1]}, clusters)
		either := maps.Clone(before)
		maps.Copy(either, after)
		for source := range either {
			if _, ok := named[source]; !ok && !cmp.Equal(before[source], after[source]) {
				t.Fatalf("%v changed, which the registry does not name", source)
			}
		}
	}
}
