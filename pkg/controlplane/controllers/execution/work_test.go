package execution

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func TestIdentify(t *testing.T) {
	o, err := identify([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"a"}}`))
	if err != nil || o.gvk.String() != "apps/v1, Kind=Deployment" || o.key.String() != "n/a" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range []string{`{`, `{"apiVersion":"a/b/c"}`} {
		if _, err := identify([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return obj
}

// The manifests of a Work are applied, whoever wrote it: also without what the controllers write into theirs.
func TestReconcile_WorkWrittenByHand(t *testing.T) {
	manifests := func(texts ...string) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests = nil
			for _, text := range texts {
				w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
			}
			w.Generation++
		}
	}
	named := func(name, value string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"},"data":{"k":"` + value + `"}}`
	}
	const pathA, pathB = "/api/v1/namespaces/default/configmaps/a", "/api/v1/namespaces/default/configmaps/b"
	b := newBench(t, configMap, func(w *workv1alpha1.Work) { w.Finalizers = nil }, manifests(named("a", "1"), named("b", "1")))
	has := func(path, value string) {
		t.Helper()
		obj := b.member.Get(path)
		if (obj != nil) != (value != "") {
			t.Fatalf("%s: %v", path, obj)
		}
		if obj != nil {
			if got, _, _ := unstructured.NestedString(obj.Object, "data", "k"); got != value || obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] != "true" {
				t.Errorf("%s: %v", path, obj)
			}
			b.observed(path)
		}
	}
	b.mustSync()
	if got := b.work().Finalizers; len(got) != 1 || len(b.member.Writes()) != 0 {
		t.Fatalf("finalizers %v", got)
	}
	b.mustSync()
	has(pathA, "1")
	has(pathB, "1")
	b.edit(manifests(named("a", "2"), named("b", "1")))
	b.mustSync()
	has(pathA, "2")
	b.Clock.Step(time.Minute)
	b.mustSync()
	if got := len(b.work().Status.ManifestStatuses); got != 2 {
		t.Fatalf("%d statuses", got)
	}

	// A manifest that is removed while the process is away is known by the status. The object of another Work stays.
	b.runner.forget("w")
	other := b.member.Get(pathB)
	other.SetAnnotations(map[string]string{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-m1", workv1alpha2.WorkNameAnnotation: "another"})
	b.member.Put(pathB, other)
	b.edit(manifests())
	b.mustSync()
	has(pathA, "")
	if b.member.Get(pathB) == nil {
		t.Error("the object of another Work was deleted")
	}

	b.edit(manifests(named("a", "3")))
	for until := b.Clock.Now().Add(time.Minute); b.member.Get(pathA) == nil && b.Clock.Now().Before(until); { // it may exist: the informer is new
		b.Clock.Step(max(time.Second, b.mustSync()))
	}
	has(pathA, "3")
	b.delete()
	b.mustSync()
	has(pathA, "")
	if !b.gone() {
		t.Error("the Work is left")
	}
}

// Agents see no bindings: the control plane answers whether a Work that is being deleted is wanted.
func TestReconcile_AgentsLearnWhetherAWorkIsWanted(t *testing.T) {
	owned := func(w *workv1alpha1.Work) {
		w.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"}
		w.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "default", workv1alpha2.ResourceBindingNameAnnotation: "b"}
	}
	for answer, kept := range map[string]bool{"true": true, "false": false, "": false} {
		t.Run("an agent with the answer "+answer, func(t *testing.T) {
			b := newBench(t, configMap, owned)
			b.mustSync()
			b.observed(configMapPath)
			b.delete()
			if wait := b.mustSync(); wait != answerTimeout || b.gone() || b.member.Get(configMapPath) == nil {
				t.Fatalf("waits %s", wait)
			}
			if answer == "" {
				b.Clock.Step(answerTimeout)
			} else {
				b.edit(func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.WantedAnnotation] = answer })
			}
			b.mustSync()
			if got := b.member.Get(configMapPath) != nil; got != kept || !b.gone() {
				t.Errorf("the object is left: %v, want %v", got, kept)
			}
		})
	}
	for want, target := range map[string]string{"true": "m1", "false": "m2"} {
		t.Run("the control plane answers "+want, func(t *testing.T) {
			b := newBench(t, configMap, owned)
			b.cluster(func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull })
			b.runner.deps.ReadBindings = true
			binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"}}}
			binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"}
			binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: target}}
			work := b.work().DeepCopy()
			work.Name, work.ResourceVersion, work.UID = names.Work("ConfigMap", "a", "default"), "", "canonical"
			for _, obj := range []client.Object{binding, work} {
				b.Must(b.Stored.Create(t.Context(), obj))
			}
			sync := func() string {
				if _, err := b.runner.reconcile(t.Context(), work.Name); err != nil {
					t.Fatal(err)
				}
				b.Must(b.Stored.Get(t.Context(), client.ObjectKeyFromObject(work), work))
				return work.Annotations[workv1alpha2.WantedAnnotation]
			}
			if got := sync(); got != "" {
				t.Errorf("the answer for a Work that is not deleted is %q", got)
			}
			b.Must(b.Stored.Delete(t.Context(), work))
			if got := sync(); got != want || len(b.member.Writes()) != 0 {
				t.Errorf("the answer is %q, want %q", got, want)
			}
		})
	}
}
