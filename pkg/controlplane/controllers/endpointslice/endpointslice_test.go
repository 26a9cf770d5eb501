package endpointslice

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func web() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "web"} }

// exportWork returns the Work that exports the Service from a cluster.
func exportWork(cluster string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: services.ExportWorkName(web())}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceExport","metadata":{"namespace":"default","name":"web"}}`)}}}
	return work
}

// collected returns the Work of a slice that was collected from a cluster.
func collected(t *testing.T, cluster string) *workv1alpha1.Work {
	t.Helper()
	slice := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"endpoints": []any{map[string]any{"addresses": []any{"10.0.0.1"}, "conditions": map[string]any{"ready": true}}},
	}}
	slice.SetNamespace("default")
	slice.SetName("web-a")
	slice.SetUID("slice-" + types.UID(cluster))
	slice.SetLabels(map[string]string{discoveryv1.LabelServiceName: "web"})
	key := types.NamespacedName{Namespace: "karmada-es-" + cluster, Name: services.WorkNames(cluster, types.NamespacedName{Namespace: "default", Name: "web-a"})[0]}
	work, err := services.Collect(key, slice, services.Export, web(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return work
}

type fixture struct {
	*memory.Env
	*reconciler
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	m := memory.New(t, objects...)
	m.Index(&discoveryv1.EndpointSlice{}, workIndex, controllers.IndexKey(workOf))
	m.Index(&workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf))
	return &fixture{m, &reconciler{client: m.Client, works: works.NewWriter(m.Client, m.Client)}}
}

// reconcile makes passes for a Work until one writes nothing.
func (f *fixture) reconcile(work client.Object) {
	f.Helper()
	for range 3 {
		f.Writes()
		f.MustReconcile(f, client.ObjectKeyFromObject(work))
		if len(f.Writes()) == 0 {
			return
		}
	}
	f.Fatal("every pass writes")
}

func (f *fixture) imported() []discoveryv1.EndpointSlice {
	f.Helper()
	return memory.List[*discoveryv1.EndpointSliceList](f.Env).Items
}

func TestReconcile_ImportsTheSlice(t *testing.T) {
	work := collected(t, "m1")
	f := newFixture(t, build.Cluster("m1", build.Ready(metav1.ConditionTrue)), work, exportWork("m1"))
	f.reconcile(work)
	all := f.imported()
	if len(all) != 1 || all[0].Name != "imported-m1-web-a" || all[0].Labels[discoveryv1.LabelServiceName] != "derived-web" ||
		all[0].Annotations[workv1alpha2.WorkNameAnnotation] != work.Name || len(all[0].Endpoints) != 1 {
		t.Fatalf("imported %+v", all)
	}

	t.Run("a slice that was changed by hand is restored", func(t *testing.T) {
		forged := all[0].DeepCopy()
		forged.Endpoints[0].Addresses = []string{"10.9.9.9"}
		f.Must(f.Stored.Update(t.Context(), forged))
		f.reconcile(work)
		if got := f.imported()[0].Endpoints[0].Addresses[0]; got != "10.0.0.1" {
			t.Errorf("address %s", got)
		}
	})
	t.Run("nothing is imported that the cluster does not export", func(t *testing.T) {
		f.Must(f.Stored.Delete(t.Context(), exportWork("m1")))
		f.reconcile(work)
		if all := f.imported(); len(all) != 0 {
			t.Errorf("imported %+v", all)
		}
	})
}

func TestReconcile_RemovesWhatItImported(t *testing.T) {
	work := collected(t, "m1")
	f := newFixture(t, build.Cluster("m1", build.Ready(metav1.ConditionTrue)), work, exportWork("m1"))
	f.reconcile(work)
	f.Must(f.Stored.Delete(t.Context(), work))
	f.reconcile(work)
	if all := f.imported(); len(all) != 0 {
		t.Errorf("imported %+v", all)
	}
	left := &workv1alpha1.Work{}
	if err := f.Stored.Get(t.Context(), client.ObjectKeyFromObject(work), left); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	for _, finalizer := range left.Finalizers {
		if finalizer == services.ImportFinalizer {
			t.Errorf("finalizers %v", left.Finalizers)
		}
	}
}

// TestReconcile_ClusterNotReady keeps the endpoints of a cluster that is not Ready while no other provides the Service.
func TestReconcile_ClusterNotReady(t *testing.T) {
	down, other := collected(t, "m1"), collected(t, "m2")
	objects := []client.Object{build.Cluster("m1", build.Ready(metav1.ConditionFalse)), build.Cluster("m2", build.Ready(metav1.ConditionTrue)), down, exportWork("m1"), exportWork("m2")}
	f := newFixture(t, objects...)
	f.reconcile(down)
	if all := f.imported(); len(all) != 1 {
		t.Fatalf("imported %+v", all)
	}
	f.Must(f.Stored.Create(t.Context(), other))
	f.reconcile(other)
	f.reconcile(down)
	if all := f.imported(); len(all) != 1 || all[0].Name != "imported-m2-web-a" {
		t.Errorf("imported %+v", all)
	}
}

func TestReconcile_SliceOfAnother(t *testing.T) {
	work := collected(t, "m1")
	taken := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "imported-m1-web-a"}}
	f := newFixture(t, build.Cluster("m1", build.Ready(metav1.ConditionTrue)), work, exportWork("m1"), taken)
	_, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)})
	if err == nil || !strings.Contains(err.Error(), "delete or rename it") {
		t.Errorf("got %v", err)
	}
	if writes := f.Writes(); len(writes) != 0 {
		t.Errorf("writes %q", writes)
	}
}
