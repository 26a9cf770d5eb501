package execution

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// lose takes the Work out of the control plane as a restored backup does, without a
// deletion that was recorded.
func (b *bench) lose() {
	b.Helper()
	work := b.work()
	base := work.DeepCopy()
	work.Finalizers = nil
	b.Must(b.Stored.Patch(b.Context(), work, client.MergeFrom(base)))
	b.Must(b.Stored.Delete(b.Context(), work))
}

func TestRestore_ObjectsOfLostWorksRemain(t *testing.T) {
	for _, clusterToo := range []bool{false, true} {
		b := newBench(t, configMap)
		b.mustSync()
		uid := b.member.Get(configMapPath).GetUID()
		b.lose()
		if clusterToo {
			b.Must(b.Stored.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}))
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
	b.Must(b.Stored.Status().Update(t.Context(), work))
	written := b.work()
	written.ResourceVersion = "999999"
	b.state().written.Record(written, before, b.Clock.Now())
	b.mustSync()
	if applied(b.work()) != "absent" {
		t.Fatal("the test did not lose the status")
	}
	b.Clock.Step(status.WrittenTTL)
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
		fill(b.T, other, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"other"}}`, "abort")
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
	b.Before = func(request string) error {
		if !strings.HasPrefix(request, "patch ") {
			return nil
		}
		refused++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "w", errors.New("update only"))
	}
	b.delete()
	b.mustSync()
	if !b.gone() || refused != 1 || b.member.Get(configMapPath) != nil {
		t.Errorf("gone %t after %d refusals", b.gone(), refused)
	}
}

// TestWentBack_MemberIsComparedAgain restores a member from an older copy of its store
// while its Work changes.
func TestWentBack_MemberIsComparedAgain(t *testing.T) {
	const changed = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"changed"}}`
	for _, tc := range []struct {
		name string
		// writes is the number of writes after the restore: with many, the resource version
		// is higher than before it.
		writes int
		// before restores a copy from before the first write, while changes the Work
		// while the member is not available.
		before, while bool
	}{
		{"an old object", 0, false, false},
		{"an old object in a store that has grown since", 1000, false, false},
		{"a missing object", 0, true, false},
		{"a missing object in a store that has grown since", 1000, true, false},
		{"an old object of a Work that changed meanwhile", 0, false, true},
		{"a missing object of a Work that changed meanwhile", 1000, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, configMap)
			other := decode(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"other","labels":{"karmada.io/managed":"true"}}}`)
			b.member.Put("/api/v1/namespaces/default/configmaps/other", other)
			copied := b.member.Backup()
			b.mustSync()
			b.observed(configMapPath)
			if !tc.before {
				copied = b.member.Backup()
			}
			change := func(text string) {
				b.edit(func(w *workv1alpha1.Work) { fill(b.T, w, text, "abort") })
			}
			change(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"newer"}}`)
			b.mustSync()
			b.observed(configMapPath)
			if tc.while {
				change(changed)
			}
			b.member.Restore(copied, tc.writes)
			if !tc.while {
				change(changed)
			}
			accesstest.Eventually(t, func() error {
				if _, err := b.sync(); err != nil {
					return err
				}
				obj := b.member.Get(configMapPath)
				if obj == nil {
					return errors.New("the object is missing")
				}
				if got, _, _ := unstructured.NestedString(obj.Object, "data", "k"); got != "changed" {
					return errors.New("the member has " + got)
				}
				if b.restores() == 0 && (!tc.before || tc.writes == 0) {
					return errors.New("the restore was not reported")
				}
				return nil
			})
		})
	}
}

// TestWentBack_UnchangedWork restores a member without any change of the Work: the event
// of the informer alone has to be enough.
func TestWentBack_UnchangedWork(t *testing.T) {
	for _, writes := range []int{0, 1000} {
		b := newBench(t, configMap)
		b.mustSync()
		b.observed(configMapPath)
		copied := b.member.Backup()
		b.edit(func(w *workv1alpha1.Work) {
			fill(b.T, w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"newer"}}`, "abort")
		})
		b.mustSync()
		b.observed(configMapPath)
		b.runner.start(2)
		b.member.Restore(copied, writes)
		accesstest.Eventually(t, func() error {
			if got, _, _ := unstructured.NestedString(b.member.Get(configMapPath).Object, "data", "k"); got != "newer" || b.restores() == 0 {
				return errors.New("the member has " + got)
			}
			return nil
		})
	}
}

// TestApply_RefusedCreate has the member refuse the creation of an object that exists, as
// it does with a NodePort that is allocated and a quota that is exhausted.
func TestApply_RefusedCreate(t *testing.T) {
	for _, conflict := range []string{"overwrite", "abort"} {
		for _, code := range []int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError} {
			b := newBench(t, configMap)
			b.edit(func(w *workv1alpha1.Work) { fill(b.T, w, configMap, conflict) })
			b.member.Put(configMapPath, decode(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"theirs"}}`))
			b.member.Fail(func(r *http.Request) int {
				if r.Method == http.MethodPost {
					return code
				}
				return 0
			})
			_, err := b.sync()
			got, _, _ := unstructured.NestedString(b.member.Get(configMapPath).Object, "data", "k")
			switch {
			case conflict == "overwrite" && (err != nil || got != "v"):
				t.Errorf("overwrite, %d: %q, %v", code, got, err)
			case conflict == "abort" && (err == nil || !strings.Contains(err.Error(), "already exists") || got != "theirs"):
				t.Errorf("abort, %d: %q, %v", code, got, err)
			}
			if conflict == "overwrite" {
				continue
			}
			b.member.Remove(configMapPath)
			if _, err := b.sync(); err == nil || !strings.Contains(err.Error(), "injected failure") {
				t.Errorf("a refused object that does not exist: %v", err)
			}
		}
	}
}

// TestApply_ConflictReadsTheWorkAgain has another leader apply a later manifest, of which
// this process does not know.
func TestApply_ConflictReadsTheWorkAgain(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.observed(configMapPath)
	cached := b.work()
	later := b.work()
	fill(b.T, later, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"later"}}`, "abort")
	b.Must(b.Stored.Update(t.Context(), later))
	obj := b.member.Get(configMapPath)
	stale, err := b.c.hasher.Snapshot(obj)
	if err != nil {
		t.Fatal(err)
	}
	b.Must(unstructured.SetNestedField(obj.Object, "later", "data", "k"))
	b.member.Put(configMapPath, obj)
	fill(b.T, cached, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"},"data":{"k":"old"}}`, "abort")
	m, err := b.runner.deps.Members.Member(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := b.state().objects[0]
	_, err = b.runner.writer(&reconciliation{work: cached, member: m}, o).apply(t.Context(), execution.Unknown(true), cached.Spec.Workload.Manifests[0].Raw, execution.ActionCompare, &stale)
	if got, _, _ := unstructured.NestedString(b.member.Get(configMapPath).Object, "data", "k"); err == nil || got != "later" {
		t.Errorf("the member has %q, %v", got, err)
	}
}
