package works

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

func want(data string, annotations map[string]string) *Want {
	return &Want{
		Namespace: "karmada-es-m1", Name: "w", Labels: map[string]string{"l": "1"}, Annotations: annotations,
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "c"},
			"data": map[string]any{"k": data},
		}},
	}
}

func get(m *memory.Env) *workv1alpha1.Work {
	return memory.Get[*workv1alpha1.Work](m, memory.Key("karmada-es-m1", "w"))
}

func TestWrite_CreatedUnchangedUpdated(t *testing.T) {
	m := memory.New(t)
	writer := NewWriter(m.Client, m.Client)
	overrides := map[string]string{policyv1alpha1.AppliedOverridesAnnotation: "[]"}
	for _, step := range []struct {
		want   *Want
		result Result
	}{
		{want("<a & b>", overrides), Created}, {want("<a & b>", overrides), Unchanged},
		{want("<a & b>", nil), Updated}, {want("<a & b>", nil), Unchanged}, {want("b", nil), Updated},
	} {
		got, err := writer.Write(t.Context(), step.want)
		if err != nil || got != step.result {
			t.Fatalf("got %s, %v, want %s", got, err, step.result)
		}
	}
	w := get(m)
	if len(w.Annotations) != 0 {
		t.Errorf("annotations %v", w.Annotations)
	}
	id := w.Labels[workv1alpha2.WorkPermanentIDLabel]
	if diff := cmp.Diff(map[string]string{"l": "1", workv1alpha2.WorkPermanentIDLabel: id}, w.Labels); diff != "" || id == "" {
		t.Error(diff)
	}
}

func TestWrite_OthersMetadataStays(t *testing.T) {
	existing := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "w", Labels: map[string]string{"theirs": "x", workv1alpha2.WorkPermanentIDLabel: "id"},
		Annotations: map[string]string{"theirs": "y"}, Finalizers: []string{"z/theirs"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x", UID: "x"}},
	}}
	m := memory.New(t, existing)
	if got, err := NewWriter(m.Client, m.Client).Write(t.Context(), want("a", nil)); err != nil || got != Updated {
		t.Fatalf("got %s, %v", got, err)
	}
	w := get(m)
	wantMeta := existing.ObjectMeta.DeepCopy()
	wantMeta.Labels["l"] = "1"
	wantMeta.Finalizers = []string{workv1alpha2.ExecutionControllerFinalizer, "z/theirs"}
	wantMeta.ResourceVersion = w.ResourceVersion
	if diff := cmp.Diff(*wantMeta, w.ObjectMeta); diff != "" {
		t.Error(diff)
	}
}

// TestWrite_ABindingTakesTheWorkOfANamespace has the garbage collector not delete the Work with the namespace: the binding would still want it.
func TestWrite_ABindingTakesTheWorkOfANamespace(t *testing.T) {
	m := memory.New(t)
	writer := NewWriter(m.Client, m.Client)
	first := want("a", nil)
	first.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "team", UID: "team", Controller: new(true)}
	second := want("a", nil)
	second.Binding = &manifest.BindingRef{}
	for _, w := range []*Want{first, second} {
		if _, err := writer.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if owners := get(m).OwnerReferences; len(owners) != 0 {
		t.Errorf("owners %+v", owners)
	}
}

func TestWrite_MemoryIsBehind(t *testing.T) {
	m := memory.New(t)
	if _, err := NewWriter(m.Client, m.Client).Write(t.Context(), want("a", nil)); err != nil {
		t.Fatal(err)
	}
	id := get(m).Labels[workv1alpha2.WorkPermanentIDLabel]
	stale := interceptor.NewClient(m.Client, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "works"}, key.Name)
		},
	})
	got, err := NewWriter(stale, m.Client).Write(t.Context(), want("b", nil))
	if err != nil || got != Updated {
		t.Fatalf("got %s, %v", got, err)
	}
	if now := get(m).Labels[workv1alpha2.WorkPermanentIDLabel]; now != id {
		t.Errorf("the id changed from %s to %s", id, now)
	}
}

func TestWrite_MemoryBehindItsOwnWriteWritesNothing(t *testing.T) {
	m := memory.New(t)
	writer := NewWriter(interceptor.NewClient(m.Client, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "works"}, key.Name)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), &workv1alpha1.Work{}); err == nil {
				t.Error("it writes what is there")
			}
			return c.Create(ctx, obj, opts...)
		},
	}), m.Client)
	for _, result := range []Result{Created, Unchanged} {
		if got, err := writer.Write(t.Context(), want("a", nil)); err != nil || got != result {
			t.Errorf("got %s, %v, want %s", got, err, result)
		}
	}
	if !writer.Wrote(get(m)) {
		t.Error("it does not know its own write")
	}
}

func TestWrite_Refuses(t *testing.T) {
	deleted := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "w", DeletionTimestamp: &metav1.Time{}, Finalizers: []string{"x/y"},
	}}
	now := metav1.Now()
	deleted.DeletionTimestamp = &now
	foreign := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "w", Annotations: map[string]string{workv1alpha2.ClusterResourceBindingAnnotation: "other"},
	}}
	for name, tc := range map[string]struct {
		existing *workv1alpha1.Work
		check    func(error) bool
	}{
		"a work that is being deleted": {deleted, func(err error) bool { return err.Error() == "work karmada-es-m1/w is being deleted" }},
		"a work of another binding":    {foreign, func(err error) bool { return errors.Is(err, ErrForeign) }},
	} {
		t.Run(name, func(t *testing.T) {
			m := memory.New(t, tc.existing)
			if _, err := NewWriter(m.Client, m.Client).Write(t.Context(), want("a", nil)); err == nil || !tc.check(err) {
				t.Errorf("got error %v", err)
			}
		})
	}
}
