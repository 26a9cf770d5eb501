package services_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func web() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "web"} }

func slice(name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"endpoints": []any{map[string]any{"addresses": []any{"10.0.0.1"}}},
	}}
	u.SetNamespace("default")
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func ofWeb() map[string]string { return map[string]string{"kubernetes.io/service-name": "web"} }

func collected(t *testing.T, cluster string, s *unstructured.Unstructured) *workv1alpha1.Work {
	t.Helper()
	key := types.NamespacedName{Namespace: "karmada-es-" + cluster, Name: services.WorkNames(cluster, types.NamespacedName{Namespace: s.GetNamespace(), Name: s.GetName()})[0]}
	work, err := services.Collect(key, s, services.MCS, web(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return work
}

func ready(names ...string) services.Clusters {
	out := services.Clusters{}
	for _, name := range names {
		out[name] = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
		}}
	}
	return out
}

func mcs() *networkingv1alpha1.MultiClusterService {
	return &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id"}},
		Spec:       networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}},
	}
}

func TestAuthorize(t *testing.T) {
	all := func(types.NamespacedName) bool { return true }
	rename := func(name string) func(*workv1alpha1.Work) { return func(w *workv1alpha1.Work) { w.Name = name } }
	for name, tc := range map[string]struct {
		slice     *unstructured.Unstructured
		change    func(*workv1alpha1.Work)
		permitted func(types.NamespacedName) bool
		want      string
	}{
		"the slice of an exported Service":           {slice: slice("web-a", ofWeb()), permitted: all},
		"a Service that the cluster does not export": {slice: slice("web-a", ofWeb()), permitted: func(types.NamespacedName) bool { return false }, want: "does not export"},
		"the slice of another Service":               {slice: slice("web-a", map[string]string{"kubernetes.io/service-name": "db"}), permitted: all, want: `belongs to Service "db"`},
		"a dispatched slice":                         {slice: slice("web-a", map[string]string{"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": services.DispatchedSlice}), permitted: all, want: "created by the control plane"},
		"the name of the Work of another slice":      {slice: slice("web-a", ofWeb()), change: rename("db-1234"), permitted: all, want: "belongs into work"},
		"a slice of another namespace": {slice: slice("web-a", ofWeb()), permitted: all, want: "another namespace", change: func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(string(w.Spec.Workload.Manifests[0].Raw), `"namespace":"default"`, `"namespace":"kube-system"`, 1))
		}},
		"another kind": {slice: slice("web-a", ofWeb()), permitted: all, want: "has a Secret", change: func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"x"}}`)}}}
		}},
		"no manifest": {slice: slice("web-a", ofWeb()), permitted: all, want: "0 manifests", change: func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			work := collected(t, "m1", tc.slice)
			if tc.change != nil {
				tc.change(work)
			}
			err := services.Authorize(work, "m1", services.MCS, tc.permitted)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A slice that the control plane wrote into a cluster is not one of that cluster, whatever a member or an override made of
// its labels.
func TestDelivered(t *testing.T) {
	forged := map[string]string{"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "mine"}
	dispatched := collected(t, "m2", slice("m1-web-a", forged))
	dispatched.Labels, dispatched.Spec.SuspendDispatching = map[string]string{"multiclusterservice.karmada.io/name": "web"}, nil
	dispatched.Annotations = map[string]string{services.ProvisionClusterAnnotation: "m1"}
	imported := collected(t, "m2", slice("imported-m1-web-a", forged))
	imported.Labels, imported.Spec.SuspendDispatching = map[string]string{"resourcebinding.karmada.io/permanent-id": "id"}, nil
	suspended := imported.DeepCopy()
	suspended.Spec.SuspendDispatching = new(true)
	byHand := imported.DeepCopy()
	byHand.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(string(byHand.Spec.Workload.Manifests[0].Raw), "imported-m1-web-a", "web-a"))
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want string
	}{
		"a slice for a consumer":                      {dispatched, "m1-web-a"},
		"an imported slice":                           {imported, "imported-m1-web-a"},
		"an imported slice that is suspended":         {suspended, "imported-m1-web-a"},
		"a slice of the cluster":                      {collected(t, "m2", slice("web-a", forged)), ""},
		"a slice of the cluster with the same prefix": {collected(t, "m2", slice("imported-web", forged)), ""},
		"a slice of a user that a policy propagates":  {byHand, ""},
		"another kind":                                {&workv1alpha1.Work{}, ""},
	} {
		got := services.Delivered(tc.work)
		if got.Name != tc.want {
			t.Errorf("%s: %s, want %q", name, got, tc.want)
		}
		s := slice("m1-web-a", forged)
		next, err := services.Resolve(services.SliceFacts{
			Key: types.NamespacedName{Namespace: "karmada-es-m2", Name: "x"}, Slice: s, Known: true, Managers: []services.Manager{services.MCS},
			Permitted: func(services.Manager, types.NamespacedName) bool { return true }, Delivered: got.Name != "",
		})
		if err != nil || (next == nil) != (tc.want != "") {
			t.Errorf("%s: collects %v, %v", name, next, err)
		}
	}
}

// A user who may write MultiClusterServices and ServiceExports in the namespace default must not lead the clients of one API
// server to another one.
func TestDecide_TheAPIServerOfACluster(t *testing.T) {
	own := mcs()
	own.Name = "kubernetes"
	before := mcs()
	written, err := services.Decide(services.Facts{MCS: before, Clusters: ready("m1")})
	if err != nil {
		t.Fatal(err)
	}
	marker := written.Write[0]
	marker.Labels["multiclusterservice.karmada.io/name"] = "kubernetes"
	if got := services.Marks(marker); got.Name != "" {
		t.Errorf("a Work marks a provider of %s", got)
	}
	v, err := services.Decide(services.Facts{MCS: own, Clusters: ready("m1"), Works: []*workv1alpha1.Work{marker}})
	if err != nil || v.Err == nil || len(v.Write) != 0 || v.Binding != nil || len(v.Delete) != 1 || v.Condition.Status != metav1.ConditionFalse {
		t.Errorf("got %+v, %v", v, err)
	}
	export := &workv1alpha1.Work{}
	export.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
	for name, exported := range map[string]bool{"kubernetes": false, "web": true} {
		export.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceExport","metadata":{"namespace":"default","name":"` + name + `"}}`)
		if got := services.Exports(export); (got.Name != "") != exported {
			t.Errorf("exports %s", got)
		}
	}
}

func TestMarks_AgentCannotForge(t *testing.T) {
	work := collected(t, "m1", slice("web-a", ofWeb()))
	work.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel] = "id"
	if got := services.Marks(work); got.Name != "" {
		t.Errorf("a Work with an EndpointSlice marks %s", got)
	}
	if got := services.Exports(work); got.Name != "" {
		t.Errorf("a Work with an EndpointSlice exports %s", got)
	}
}

func TestDispatch_SameSliceNameInTwoProviders(t *testing.T) {
	m1, m2 := collected(t, "m1", slice("web-a", ofWeb())), collected(t, "m2", slice("web-a", ofWeb()))
	stored := map[string]*workv1alpha1.Work{}
	for range 2 { // the second pass must not choose other names
		for source, work := range map[string]*workv1alpha1.Work{"m1": m1, "m2": m2} {
			v, err := services.Dispatch(services.DispatchFacts{
				Work: work, Source: source, MCS: mcs(), Clusters: ready("m1", "m2", "m3"),
				Get: func(cluster, name string) *workv1alpha1.Work {
					if name == m1.Name && cluster == "m1" {
						return m1
					}
					if name == m2.Name && cluster == "m2" {
						return m2
					}
					return stored[cluster+"/"+name]
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range v.Write {
				stored[strings.TrimPrefix(w.Namespace, "karmada-es-")+"/"+w.Name] = w
				if from := services.SourceWork(w); from != (types.NamespacedName{Namespace: work.Namespace, Name: work.Name}) {
					t.Errorf("%s/%s comes from %s", w.Namespace, w.Name, from)
				}
			}
		}
	}
	if len(stored) != 4 { // one in m1, one in m2, two in m3
		t.Errorf("%d works, want 4: %v", len(stored), stored)
	}
}

func TestDecide_MarkersOfAnEarlierID(t *testing.T) {
	earlier := services.Facts{MCS: mcs(), Clusters: ready("m1", "m2")}
	before, err := services.Decide(earlier)
	if err != nil || len(before.Write) != 2 {
		t.Fatalf("%d works, %v", len(before.Write), err)
	}
	held := collected(t, "m2", slice("web-1", ofWeb()))
	now := services.Facts{MCS: mcs(), Clusters: earlier.Clusters, Works: append(before.Write, held)}
	now.MCS.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel] = "other"
	now.MCS.Spec.ProviderClusters = []networkingv1alpha1.ClusterSelector{{Name: "m1"}}
	for name, deleting := range map[string]bool{"no longer a provider": false, "deleted": true} {
		want := []string{"karmada-es-m2/" + before.Write[1].Name, "karmada-es-m2/" + held.Name}
		now.MCS.DeletionTimestamp = nil
		if deleting {
			now.MCS.DeletionTimestamp = &metav1.Time{}
			want = append([]string{"karmada-es-m1/" + before.Write[0].Name}, want...)
		}
		v, err := services.Decide(now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range v.Delete {
			got = append(got, w.Namespace+"/"+w.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: deletes %v, want %v", name, got, want)
		}
	}
}

// A cluster that is being deleted provides and consumes nothing, by name or as one of all: a
// Work that is written for it keeps it for ever.
func TestDecide_ClustersThatAreDeletedTakeNoPart(t *testing.T) {
	for name, selected := range map[string][]networkingv1alpha1.ClusterSelector{"all": nil, "by name": {{Name: "m1"}, {Name: "m2"}}} {
		t.Run(name, func(t *testing.T) {
			f := services.Facts{MCS: mcs(), Clusters: ready("m1", "m2")}
			f.MCS.Spec.ProviderClusters, f.MCS.Spec.ConsumerClusters = selected, selected
			before, err := services.Decide(f)
			if err != nil || len(before.Write) != 2 {
				t.Fatalf("%d works, %v", len(before.Write), err)
			}
			stays := f.Clusters["m2"].DeepCopy()
			f.Clusters["m2"].DeletionTimestamp = &metav1.Time{}
			if !services.UsabilityChanged(stays, f.Clusters["m2"]) {
				t.Error("the deletion of a cluster reconciles nothing")
			}
			f.Works = before.Write
			v, err := services.Decide(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range v.Write {
				if w.Namespace == "karmada-es-m2" {
					t.Errorf("writes %s", w.Name)
				}
			}
			if len(v.Delete) != 1 || v.Delete[0].Namespace != "karmada-es-m2" {
				t.Errorf("deletes %v", v.Delete)
			}
			d, err := services.Dispatch(services.DispatchFacts{
				MCS: f.MCS, Clusters: f.Clusters, Source: "m1", Work: collected(t, "m1", slice("web-a", ofWeb())),
				Get: func(string, string) *workv1alpha1.Work { return nil },
			})
			if err != nil || len(d.Write) != 0 {
				t.Errorf("dispatches %d works, %v", len(d.Write), err)
			}
		})
	}
}

func TestSourceWork_OfEveryName(t *testing.T) {
	for _, collected := range services.WorkNames("m2", types.NamespacedName{Namespace: "default", Name: "web-a"}) {
		for _, name := range services.DispatchedNames("m2", collected) {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-es-m3", Name: name, Annotations: map[string]string{services.ProvisionClusterAnnotation: "m2"},
			}}
			if got := services.SourceWork(work); got != (types.NamespacedName{Namespace: "karmada-es-m2", Name: collected}) {
				t.Errorf("%s comes from %s, want %s", name, got, collected)
			}
		}
	}
}

func TestClusters_Prefixed(t *testing.T) {
	clusters := ready("m", "m-web", "n")
	for _, tc := range []struct{ cluster, slice, want string }{
		{"m", "web-a", "m.web-a"}, // m-web could have the slice "a"
		{"m", "db-a", "m-db-a"},
		{"m-web", "a", "m-web-a"},
		{"n", "web-a", "n-web-a"},
	} {
		if got := clusters.Prefixed("", tc.cluster, tc.slice); got != tc.want {
			t.Errorf("slice %s of %s is %s, want %s", tc.slice, tc.cluster, got, tc.want)
		}
	}
}

func TestStored(t *testing.T) {
	suspended := func(labels map[string]string, annotations map[string]string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: workv1alpha1.WorkSpec{SuspendDispatching: new(true)}}
	}
	released := collected(t, "m1", slice("web-a", ofWeb()))
	released.Spec.SuspendDispatching = nil
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want bool
	}{
		"a collected slice":           {collected(t, "m1", slice("web-a", ofWeb())), true},
		"the mark of a provider":      {suspended(map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id"}, nil), true},
		"a slice for a consumer":      {suspended(map[string]string{services.ManagedByLabel: "x"}, map[string]string{services.ProvisionClusterAnnotation: "m1"}), false},
		"a Work that is dispatched":   {released, false},
		"a suspended Work of another": {suspended(nil, nil), false},
	} {
		if got := services.Stored(tc.work); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
