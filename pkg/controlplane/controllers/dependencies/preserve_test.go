package dependencies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// What is preserved keeps what it depends on: referrers that preserve, and others, come to clusters, leave them, change their mind, and
// end, in any order. What a cluster has is deleted when nothing requires it there any more, unless a referrer that left it preserved its
// own objects there, and these refer to it still.
func TestAttached_IsPreservedWithItsReferrers(t *testing.T) {
	clusters := []string{"m1", "m2", "m3"}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 60))
		attached := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "conf-configmap"}}
		if rng.IntN(4) == 0 { // a policy of its own, which preserves nothing
			attached.Spec.Placement = &policyv1alpha1.Placement{}
		}
		referrers := map[string]*workv1alpha2.ResourceBinding{}
		running := map[string]sets.Set[string]{} // what was preserved, and runs on, by cluster
		for _, c := range clusters {
			running[c] = sets.New[string]()
		}
		var steps []string
		for range 12 {
			name := string("abc"[rng.IntN(3)])
			b := referrers[name]
			if b == nil {
				b = bindingOf(name)
				referrers[name] = b
			}
			before := scope.Names(b.Spec.Clusters)
			ends := rng.IntN(3) == 0
			b.Spec.PreserveResourcesOnDeletion = new(rng.IntN(2) == 0)
			b.Spec.Clusters = nil
			for _, c := range clusters {
				if !ends && rng.IntN(2) == 0 {
					b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
				}
			}
			steps = append(steps, fmt.Sprintf("%s ends %t preserves %t in %v", name, ends, *b.Spec.PreserveResourcesOnDeletion, scope.Names(b.Spec.Clusters).UnsortedList()))
			if ends {
				dependency.Unfollow(attached, b)
				delete(referrers, name)
			} else {
				dependency.Follow(attached, b, b.Spec.Clusters)
			}
			var agreeing []*workv1alpha2.ResourceBinding
			for _, b := range referrers {
				agreeing = append(agreeing, b)
			}
			dependency.Agree(attached, agreeing)
			for c := range before.Difference(scope.Names(b.Spec.Clusters)) {
				if *b.Spec.PreserveResourcesOnDeletion {
					running[c].Insert(name)
				}
			}
			for _, c := range clusters {
				if stays := dependency.Preserves(attached, c); !stays && running[c].Len() > 0 {
					t.Fatalf("seed %d: cluster %s does not keep what %v there refer to, after\n%s", seed, c, running[c].UnsortedList(), strings.Join(steps, "\n"))
				} else if stays && attached.Spec.Placement != nil && running[c].Len() == 0 && !slices.ContainsFunc(agreeing, func(b *workv1alpha2.ResourceBinding) bool {
					return *b.Spec.PreserveResourcesOnDeletion && scope.Names(b.Spec.Clusters).Has(c)
				}) {
					t.Fatalf("seed %d: cluster %s keeps what nothing preserved refers to, after\n%s", seed, c, strings.Join(steps, "\n"))
				}
			}
		}
	}
}

// The binding of what a preserving one depends on says, without it, that the clusters keep what they have.
func TestReconcile_WhatIsPreservedKeepsItsDependencies(t *testing.T) {
	b := bindingOf("nginx", "m1", "gone")
	b.Spec.PreserveResourcesOnDeletion = new(true)
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, b, build.Cluster("m1"))
	h.reconcile("nginx-deployment")
	h.Must(h.Stored.Delete(h.Context(), h.binding("nginx-deployment")))
	h.reconcile("nginx-deployment")
	attached := h.binding("conf-configmap")
	if attached.Spec.PreserveResourcesOnDeletion != nil || !dependency.Preserves(attached, "m1") || dependency.Preserves(attached, "gone") {
		t.Errorf("annotations %v, spec %+v", attached.Annotations, attached.Spec)
	}
}
