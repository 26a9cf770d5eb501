package binding

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Whether a cluster that a binding leaves keeps the object is what the binding says then, not what it said when its Work was written.
func TestBinding_PreservesAsTheBindingSays(t *testing.T) {
	for _, before := range []bool{true, false} {
		b := resourceBinding(map[string]int32{"m1": 3})
		b.Spec.PreserveResourcesOnDeletion = &before
		h := newHarness(t, deployment(), b)
		h.mustReconcile()
		h.change(func(s *workv1alpha2.ResourceBindingSpec) {
			s.Clusters, s.PreserveResourcesOnDeletion = targets(map[string]int32{"m2": 3}), new(!before)
		})
		h.mustReconcile()
		if w := h.work("m1"); w.DeletionTimestamp == nil || *w.Spec.PreserveResourcesOnDeletion == before {
			t.Errorf("was %t: %+v", before, w.Spec)
		}
		h.change(func(s *workv1alpha2.ResourceBindingSpec) { s.PreserveResourcesOnDeletion = &before })
		h.mustReconcile()
		if w := h.work("m1"); *w.Spec.PreserveResourcesOnDeletion == before {
			t.Errorf("was %t, and was written again while it is deleted: %+v", before, w.Spec)
		}
	}
}

// A cluster keeps what a preserved object in it refers to, although the binding itself preserves nothing.
func TestBinding_PreservesWhereReferrersDo(t *testing.T) {
	for _, key := range []string{workv1alpha2.PreservedWhereRequiredAnnotation, workv1alpha2.PreservedWhereLeftAnnotation} {
		b := resourceBinding(map[string]int32{"m1": 3, "m2": 3, "m3": 3})
		h := newHarness(t, deployment(), b)
		h.mustReconcile()
		memory.Change(h.Env, h.key, func(b *workv1alpha2.ResourceBinding) { metav1.SetMetaDataAnnotation(&b.ObjectMeta, key, "m1,m2") })
		h.change(func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = targets(map[string]int32{"m2": 3}) })
		h.mustReconcile()
		for cluster, want := range map[string]bool{"m1": true, "m2": true, "m3": false} {
			if w := h.work(cluster); *w.Spec.PreserveResourcesOnDeletion != want || (w.DeletionTimestamp != nil) != (cluster != "m2") {
				t.Errorf("%s, in %s: deleted %v, %+v", key, cluster, w.DeletionTimestamp, w.Spec)
			}
		}
	}
}
