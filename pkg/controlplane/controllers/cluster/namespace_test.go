package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func (b *bench) protected() string {
	b.Helper()
	ns := &corev1.Namespace{}
	b.Must(b.Stored.Get(b.Context(), client.ObjectKey{Name: "karmada-es-m1"}, ns))
	return ns.Labels[clusterv1alpha1.ExecutionNamespaceLabel]
}

func TestNamespace_IsProtectedWhileItsClusterExists(t *testing.T) {
	earlier := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1", Labels: map[string]string{"a": "b"}}}
	for name, objects := range map[string][]client.Object{"new": {member()}, "of an earlier version": {member(), earlier}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, objects...)
			b.mustReconcile()
			if got := b.protected(); got != "m1" {
				t.Errorf("protected for %q", got)
			}
			c := b.get()
			c.Finalizers = nil
			b.Must(b.Stored.Update(t.Context(), c))
			b.Must(b.Stored.Delete(t.Context(), c))
			b.mustReconcile()
			if got := b.protected(); got != "" {
				t.Errorf("without its cluster it is protected for %q", got)
			}
		})
	}
}

func TestNamespace_EventsThatCount(t *testing.T) {
	good := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1", Labels: map[string]string{clusterv1alpha1.ExecutionNamespaceLabel: "m1"}}}
	bare, terminating := good.DeepCopy(), good.DeepCopy()
	bare.Labels, terminating.DeletionTimestamp = nil, &metav1.Time{Time: metav1.Unix(1, 0).Time}
	p := unprotected()
	if p.Create(event.CreateEvent{Object: good}) || p.Update(event.UpdateEvent{ObjectOld: good, ObjectNew: good}) {
		t.Error("passes what is unchanged")
	}
	if !p.Update(event.UpdateEvent{ObjectOld: good, ObjectNew: bare}) || !p.Update(event.UpdateEvent{ObjectOld: good, ObjectNew: terminating}) ||
		!p.Delete(event.DeleteEvent{Object: good}) {
		t.Error("does not pass what is lost")
	}
}

// A namespace that was deleted in spite of its protection goes, and comes back: the roles of the agent in it are deleted
// before the Works, so nobody else removes their finalizers.
func TestNamespace_IsCreatedAgain(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1", Finalizers: []string{"kubernetes"}}}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	b := newBench(t, member(pulls, ready("True")), ns, work)
	b.Must(b.Stored.Delete(t.Context(), ns))
	b.Must(b.Stored.Delete(t.Context(), work))
	b.mustReconcile()
	if err := b.Stored.Get(t.Context(), client.ObjectKeyFromObject(work), work); !apierrors.IsNotFound(err) {
		t.Errorf("the Work is held: %v", err)
	}
	if got := b.Events(); !slices.Contains(got, "Warning ExecutionSpaceDeleted Execution space(karmada-es-m1) was deleted; it is created again with all works.") {
		t.Errorf("events %q", got)
	}
	b.Refresh(ns)
	ns.Finalizers = nil
	b.Must(b.Stored.Update(t.Context(), ns))
	b.mustReconcile()
	if got := b.protected(); got != "m1" {
		t.Errorf("protected for %q", got)
	}
}
