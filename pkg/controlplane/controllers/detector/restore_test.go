package detector

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// remove deletes a binding by hand, and returns what that enqueued.
func (h *harness) remove(b *workv1alpha2.ResourceBinding) []templateKey {
	h.Helper()
	b.Finalizers = nil
	h.Must(h.Stored.Update(h.Context(), b))
	h.Must(h.Stored.Delete(h.Context(), b))
	h.det.restorer.handler().Delete(h.Context(), event.DeleteEvent{Object: b}, h.det.source.queue.inner)
	return h.queued()
}

func TestRestore_ADeletedBindingIsCreatedAgain(t *testing.T) {
	for name, change := range map[string]func(*policyv1alpha1.PropagationSpec){
		"policy":      nil,
		"lazy policy": func(s *policyv1alpha1.PropagationSpec) { s.ActivationPreference = policyv1alpha1.LazyActivation },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", change))
			h.mustReconcile(keyFor("nginx"))
			before := h.binding("nginx-deployment")
			want := before.Spec
			keys := h.remove(before)
			if diff := cmp.Diff([]templateKey{keyFor("nginx")}, keys, cmp.AllowUnexported(templateKey{}, objectKey{})); diff != "" {
				t.Fatal(diff)
			}
			h.mustReconcile(keys[0])
			if diff := cmp.Diff(want, h.binding("nginx-deployment").Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A binding goes with its template, in the foreground before it.
func TestRestore_NotForATemplateThatIsDeleted(t *testing.T) {
	for name, foreground := range map[string]bool{"deleted": false, "being deleted": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
			h.mustReconcile(keyFor("nginx"))
			if foreground {
				h.edit("nginx", func(obj *unstructured.Unstructured) {
					now := metav1.NewTime(h.Clock.Now())
					obj.SetDeletionTimestamp(&now)
					obj.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
				})
			} else if err := h.cluster.Dynamic.Resource(deployments()).Namespace("default").Delete(t.Context(), "nginx", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, key := range h.remove(h.binding("nginx-deployment")) {
				h.mustReconcile(key)
			}
			h.noBinding("nginx-deployment")
		})
	}
}

func TestRestore_AChangedBindingIsMadeRight(t *testing.T) {
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"replicas":  func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 40 },
		"placement": func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil },
		"template":  func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "x" },
		"claim": func(b *workv1alpha2.ResourceBinding) {
			delete(b.Labels, policyv1alpha1.PropagationPolicyPermanentIDLabel)
		},
		"id":        func(b *workv1alpha2.ResourceBinding) { delete(b.Labels, workv1alpha2.ResourceBindingPermanentIDLabel) },
		"finalizer": func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil },
		"owner":     func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
			h.mustReconcile(keyFor("nginx"))
			good := h.binding("nginx-deployment")
			bad := good.DeepCopy()
			change(bad)
			h.Must(h.Stored.Update(t.Context(), bad))
			h.det.restorer.handler().Update(t.Context(), event.UpdateEvent{ObjectOld: good, ObjectNew: bad}, h.det.source.queue.inner)
			keys := h.queued()
			if len(keys) != 1 || !keys[0].byPolicy {
				t.Fatalf("queued %v", keys)
			}
			h.mustReconcile(keys[0])
			got := h.binding("nginx-deployment")
			if diff := cmp.Diff(good.Spec, got.Spec); diff != "" {
				t.Error(diff)
			}
			if name != "id" && !cmp.Equal(good.Labels, got.Labels) || got.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" ||
				!slices.Equal(good.Finalizers, got.Finalizers) || !cmp.Equal(good.OwnerReferences, got.OwnerReferences) {
				t.Errorf("metadata %+v", got.ObjectMeta)
			}
		})
	}
}

func TestRestore_NotForChangesOfOtherWritersAndOwnOnes(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	first := h.binding("nginx-deployment")
	scheduled := first.DeepCopy()
	scheduled.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}
	scheduled.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "other"}}
	scheduled.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	scheduled.Annotations["policy.karmada.io/applied-placement"] = "{}"
	h.Must(h.Stored.Update(t.Context(), scheduled))
	h.edit("nginx", func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(obj.Object, int64(5), "spec", "replicas")
	})
	h.mustReconcile(keyFor("nginx"))
	own := h.binding("nginx-deployment")
	byHand := own.DeepCopy()
	byHand.Name = "by-hand"
	handler := h.det.restorer.handler()
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: first, ObjectNew: scheduled}, h.det.source.queue.inner)
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: scheduled, ObjectNew: own}, h.det.source.queue.inner)
	handler.Delete(t.Context(), event.DeleteEvent{Object: byHand}, h.det.source.queue.inner)
	if keys := h.queued(); keys != nil {
		t.Errorf("queued %v", keys)
	}
}

// The Works that a binding leaves belong to the next one, with its clusters if they are known.
func TestRestore_TheNextBindingInherits(t *testing.T) {
	for name, restarted := range map[string]bool{"same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
			h.mustReconcile(keyFor("nginx"))
			before := h.binding("nginx-deployment")
			before.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}
			h.Must(h.Stored.Update(t.Context(), before))
			id := before.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
			if err := h.Stored.Create(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-es-m1", Name: names.Work("Deployment", "nginx", "default"),
				Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id},
				Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "default", workv1alpha2.ResourceBindingNameAnnotation: before.Name},
			}}); err != nil {
				t.Fatal(err)
			}
			keys := h.remove(before)
			if restarted {
				h.det.templates.bindings.forget(keys[0].objectKey)
			}
			h.mustReconcile(keys[0])
			after := h.binding("nginx-deployment")
			if got := after.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]; got != id {
				t.Errorf("the id is %s, not %s", got, id)
			}
			if restarted != (len(after.Spec.Clusters) == 0) {
				t.Errorf("the clusters are %v", after.Spec.Clusters)
			}
		})
	}
}
