package execution

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// lose takes the Work out of the control plane as a restored backup does, without a
// deletion that was recorded.
func (b *bench) lose() {
	b.t.Helper()
	work := b.work()
	base := work.DeepCopy()
	work.Finalizers = nil
	if err := b.plane.Patch(b.t.Context(), work, client.MergeFrom(base)); err != nil {
		b.t.Fatal(err)
	}
	if err := b.plane.Delete(b.t.Context(), work); err != nil {
		b.t.Fatal(err)
	}
}

func TestRestore_ObjectsOfLostWorksRemain(t *testing.T) {
	for _, clusterToo := range []bool{false, true} {
		b := newBench(t, configMap)
		b.mustSync()
		uid := b.member.Get(configMapPath).GetUID()
		b.lose()
		if clusterToo {
			if err := b.plane.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}); err != nil {
				t.Fatal(err)
			}
		}
		b.mustSync()
		if obj := b.member.Get(configMapPath); obj == nil || obj.GetUID() != uid {
			t.Errorf("the object was deleted with its Work (the cluster too: %t)", clusterToo)
		}
	}
}

func TestRestore_StatusThatWasLostIsWrittenAgain(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	if applied(b.work()) == "absent" {
		t.Fatal("the status was not written")
	}
	// The store goes back to before, and its versions with it.
	work := b.work()
	before := work.Status.DeepCopy()
	work.Status = workv1alpha1.WorkStatus{}
	if err := b.plane.Status().Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	written := b.work()
	written.ResourceVersion = "999999"
	b.state().written.Record(written, before, b.clock.Now())
	b.mustSync()
	if applied(b.work()) != "absent" {
		t.Fatal("the test did not lose the status")
	}
	b.clock.Step(status.WrittenTTL)
	b.mustSync()
	if applied(b.work()) == "absent" {
		t.Error("the status is not written again")
	}
}

func TestRestore_SameGenerationOfSomethingElseIsApplied(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.edit(func(w *workv1alpha1.Work) {
		other := b.work()
		b.fill(other, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"other"}}`, "abort")
		w.Spec = other.Spec
		w.Generation-- // what edit adds
	})
	b.mustSync()
	if got, _, _ := unstructured.NestedString(b.member.Get(configMapPath).Object, "data", "k"); got != "other" {
		t.Errorf("the member has %q", got)
	}
}

func TestRemove_WithTheRightsOfAnAgentOfOtherTools(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	refused := 0
	b.patch = func() error {
		refused++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "w", errors.New("update only"))
	}
	b.delete()
	b.mustSync()
	if !b.gone() || refused != 1 || b.member.Get(configMapPath) != nil {
		t.Errorf("gone %t after %d refusals", b.gone(), refused)
	}
}
