//go:build integration

// Covers pkg/controlplane/controllermanager.

package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// TestServices shows Services that span three clusters, with all controllers.
func TestServices(t *testing.T) {
	t.Parallel()
	f := newServicesFederation(t, "m1", "m2", "m3")
	for _, name := range []string{"m1", "m2", "m3"} {
		f.installMultiCluster(t, name)
	}
	t.Run("MultiClusterService", f.multiClusterService)
	t.Run("ServiceExport and ServiceImport", f.exportAndImport)
	t.Run("forged slice", f.forgedSlice)
	t.Run("no Service", f.noService)
	t.Run("hostile agent", f.hostileAgent)
	t.Run("a provider stops", f.providerStops)
	t.Run("members leave", f.membersLeave)
}

func (f *servicesFederation) create(t testing.TB, where client.Client, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		if err := where.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *servicesFederation) wantCondition(name, conditionType string, status metav1.ConditionStatus) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		mcs := &networkingv1alpha1.MultiClusterService{}
		if err := f.plane.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, mcs); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(mcs.Status.Conditions, conditionType); c == nil || c.Status != status {
			return fmt.Errorf("conditions of %s: %v", name, mcs.Status.Conditions)
		}
		return nil
	})
}

func (f *servicesFederation) wantService(member, name string) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		return f.members[member].Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &corev1.Service{})
	})
}

// wantRestored deletes by hand what the control plane made of a ServiceImport, and waits until it is there again.
func (f *servicesFederation) wantRestored(slices ...string) {
	f.Helper()
	derived := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "derived-api"}}
	made := []client.Object{derived}
	list := &discoveryv1.EndpointSliceList{}
	if err := f.plane.List(f.Context(), list, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "derived-api"}); err != nil {
		f.Fatal(err)
	}
	if len(list.Items) != len(slices) {
		f.Errorf("%d slices", len(list.Items))
	}
	for i := range list.Items {
		made = append(made, &list.Items[i])
	}
	for _, obj := range made {
		before := obj.DeepCopyObject().(client.Object)
		if err := f.plane.Get(f.Context(), client.ObjectKeyFromObject(obj), before); err != nil {
			f.Fatal(err)
		}
		if err := f.plane.Delete(f.Context(), obj); err != nil {
			f.Fatal(err)
		}
		f.eventually(func(ctx context.Context) error {
			now := obj.DeepCopyObject().(client.Object)
			err := f.plane.Get(ctx, client.ObjectKeyFromObject(obj), now)
			if err == nil && now.GetUID() == before.GetUID() {
				err = fmt.Errorf("%T %s is the old one", obj, obj.GetName())
			}
			return err
		})
	}
	f.wantService("m3", "derived-api")
	f.wantSlices("m3", "derived-api", slices...)
}

func (f *servicesFederation) multiClusterService(t *testing.T) {
	ctx := t.Context()
	f.create(t, f.plane, service("web"), crossCluster("web", []string{"m1", "m2"}, []string{"m3", "m2"}))
	f.wantService("m3", "web")
	f.wantCondition("web", "ServiceApplied", metav1.ConditionTrue)
	// The same name in two providers.
	f.create(t, f.members["m1"], slice("web", "web-a", "10.1.0.1", "10.1.0.2"))
	f.create(t, f.members["m2"], slice("web", "web-a", "10.2.0.1"), slice("other", "other-a", "10.2.9.9"))
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.1,10.1.0.2", "m2-web-a=10.2.0.1")
	f.wantSlices("m2", "web", "m1-web-a=10.1.0.1,10.1.0.2")
	f.wantSlices("m1", "web")
	f.wantCondition("web", "EndpointSliceDispatched", metav1.ConditionTrue)

	changed := slice("web", "web-a", "10.1.0.7")
	if err := f.members["m1"].Patch(ctx, changed, client.Merge); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7", "m2-web-a=10.2.0.1")

	// Another client deletes a slice in a consumer, and one of another Service.
	got := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m1-web-a"}}
	if err := f.members["m3"].Delete(ctx, got); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7", "m2-web-a=10.2.0.1")

	// The ports of the Service change in all clusters.
	if err := f.plane.Patch(ctx, service("web"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ports":[{"name":"http","port":81}]}}`))); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"m2", "m3"} {
		f.eventually(func(ctx context.Context) error {
			got := &corev1.Service{}
			err := f.members[member].Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, got)
			if err == nil && got.Spec.Ports[0].Port != 81 {
				err = fmt.Errorf("ports in %s: %v", member, got.Spec.Ports)
			}
			return err
		})
	}

	// A provider and a consumer leave.
	f.update(t, "web", func(m *networkingv1alpha1.MultiClusterService) { m.Spec.ProviderClusters = selectors("m2") })
	f.wantSlices("m3", "web", "m2-web-a=10.2.0.1")
	f.wantSlices("m2", "web")
	f.update(t, "web", func(m *networkingv1alpha1.MultiClusterService) { m.Spec.ConsumerClusters = selectors("m1") })
	f.wantSlices("m3", "web")
	f.wantSlices("m1", "web", "m2-web-a=10.2.0.1")

	// Providers and consumers are swapped.
	f.update(t, "web", func(m *networkingv1alpha1.MultiClusterService) {
		m.Spec.ProviderClusters, m.Spec.ConsumerClusters = selectors("m1"), selectors("m2", "m3")
	})
	f.wantSlices("m1", "web")
	f.wantSlices("m2", "web", "m1-web-a=10.1.0.7")
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7")

	// It is deleted: the Service stays, the slices go.
	mcs := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if err := f.plane.Delete(ctx, mcs); err != nil {
		t.Fatal(err)
	}
	f.eventually(func(ctx context.Context) error {
		if err := f.plane.Get(ctx, client.ObjectKeyFromObject(mcs), mcs); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	f.wantSlices("m2", "web")
	f.wantSlices("m3", "web")
	f.wantNoWorks("web-a-")
	f.wantService("m3", "web")

	// And created again.
	f.create(t, f.plane, crossCluster("web", nil, nil))
	f.wantSlices("m1", "web", "m2-web-a=10.2.0.1")
	f.wantSlices("m2", "web", "m1-web-a=10.1.0.7")
	f.wantSlices("m3", "web", "m1-web-a=10.1.0.7", "m2-web-a=10.2.0.1")
}

func (f *servicesFederation) update(t *testing.T, name string, change func(*networkingv1alpha1.MultiClusterService)) {
	t.Helper()
	f.eventually(func(ctx context.Context) error {
		mcs := &networkingv1alpha1.MultiClusterService{}
		if err := f.plane.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, mcs); err != nil {
			return err
		}
		change(mcs)
		return f.plane.Update(ctx, mcs)
	})
}

// servicesPolicy propagates objects by name to clusters.
func servicesPolicy(name string, clusters []string, selected ...policyv1alpha1.ResourceSelector) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name}},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: selected, PropagateDeps: true, SchedulerName: policyv1alpha1.DefaultSchedulerName,
			Placement: policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}},
		},
	}
}

const multicluster = "multicluster.x-k8s.io/v1alpha1"

func (f *servicesFederation) exportAndImport(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "api"}
	f.create(t, f.plane, service("api"),
		&multiclusterv1alpha1.ServiceExport{ObjectMeta: meta},
		&multiclusterv1alpha1.ServiceImport{ObjectMeta: meta, Spec: multiclusterv1alpha1.ServiceImportSpec{
			Type: multiclusterv1alpha1.ClusterSetIP, Ports: []multiclusterv1alpha1.ServicePort{{Port: 80}},
		}},
		servicesPolicy("export", []string{"m1", "m2"},
			policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service", Name: "api"},
			policyv1alpha1.ResourceSelector{APIVersion: multicluster, Kind: "ServiceExport", Name: "api"}),
		servicesPolicy("import", []string{"m3"}, policyv1alpha1.ResourceSelector{APIVersion: multicluster, Kind: "ServiceImport", Name: "api"}),
	)
	f.wantService("m3", "derived-api")
	f.wantService("m1", "api")
	f.create(t, f.members["m1"], slice("api", "api-a", "10.1.0.1"))
	f.create(t, f.members["m2"], slice("api", "api-a", "10.2.0.1"))
	f.wantSlices("m3", "derived-api", "imported-m1-api-a=10.1.0.1", "imported-m2-api-a=10.2.0.1")
	for _, where := range []client.Client{f.plane, f.members["m1"], f.members["m2"]} {
		f.wantExported(where)
	}
	f.wantImported(f.plane, "m1", "m2")
	f.wantImported(f.members["m3"], "m1", "m2")
	if err := f.members["m1"].Patch(t.Context(), slice("api", "api-a", "10.1.0.2"), client.Merge); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "derived-api", "imported-m1-api-a=10.1.0.2", "imported-m2-api-a=10.2.0.1")
	if err := f.members["m2"].Delete(t.Context(), slice("api", "api-a")); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "derived-api", "imported-m1-api-a=10.1.0.2")
	f.wantImported(f.members["m3"], "m1")
	f.wantRestored("imported-m1-api-a=10.1.0.2")
	if err := f.plane.Delete(t.Context(), &multiclusterv1alpha1.ServiceExport{ObjectMeta: meta}); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "derived-api")
	f.wantNoWorks("api-a-")
	if err := f.plane.Delete(t.Context(), &multiclusterv1alpha1.ServiceImport{ObjectMeta: meta}); err != nil {
		t.Fatal(err)
	}
	f.eventually(func(ctx context.Context) error {
		err := f.plane.Get(ctx, client.ObjectKey{Namespace: "default", Name: "derived-api"}, &corev1.Service{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the derived Service: %w", err)
		}
		return nil
	})
}

// forgedSlice changes the labels and the address of an imported slice by policies, in a cluster that exports the Service as
// well: the slice must not be collected and imported again as one of that cluster. The policy of the namespace has no effect.
func (f *servicesFederation) forgedSlice(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "pay"}
	forge := func(address string) policyv1alpha1.OverrideSpec {
		o := policyv1alpha1.Overriders{
			LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: policyv1alpha1.OverriderOpReplace, Value: map[string]string{
				discoveryv1.LabelManagedBy: "mine.karmada.io", discoveryv1.LabelServiceName: "pay",
			}}},
			Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/endpoints/0/addresses/0", Operator: policyv1alpha1.OverriderOpReplace}},
		}
		o.Plaintext[0].Value.Raw = []byte(`"` + address + `"`)
		return policyv1alpha1.OverrideSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: "default", Name: "imported-m1-pay-a"}},
			OverrideRules:     []policyv1alpha1.RuleWithCluster{{TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m3"}}, Overriders: o}},
		}
	}
	f.create(t, f.plane, service("pay"),
		&multiclusterv1alpha1.ServiceExport{ObjectMeta: meta},
		&multiclusterv1alpha1.ServiceImport{ObjectMeta: meta, Spec: multiclusterv1alpha1.ServiceImportSpec{
			Type: multiclusterv1alpha1.ClusterSetIP, Ports: []multiclusterv1alpha1.ServicePort{{Port: 80}},
		}},
		servicesPolicy("pay-export", []string{"m1", "m3"},
			policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service", Name: "pay"},
			policyv1alpha1.ResourceSelector{APIVersion: multicluster, Kind: "ServiceExport", Name: "pay"}),
		servicesPolicy("pay-import", []string{"m3"}, policyv1alpha1.ResourceSelector{APIVersion: multicluster, Kind: "ServiceImport", Name: "pay"}),
		&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "forge"}, Spec: forge("10.66.6.6")},
		&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "forge"}, Spec: forge("10.77.7.7")},
	)
	f.wantService("m1", "pay")
	f.create(t, f.members["m1"], slice("pay", "pay-a", "10.1.0.1"))
	f.wantSlices("m3", "pay", "imported-m1-pay-a=10.66.6.6")
	// A slice of the cluster itself that is imported later shows that the forged one was seen.
	f.create(t, f.members["m3"], slice("pay", "pay-b", "10.3.0.1"))
	f.eventually(func(ctx context.Context) error {
		return f.plane.Get(ctx, client.ObjectKey{Namespace: "default", Name: "imported-m3-pay-b"}, &discoveryv1.EndpointSlice{})
	})
	list := &workv1alpha1.WorkList{}
	if err := f.plane.List(t.Context(), list, client.InNamespace(es("m3")), client.HasLabels{"endpointslice.karmada.io/managed-by"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Errorf("%d slices of m3 were collected, want its own alone", len(list.Items))
	}
}

// wantExported waits for the conditions of the ServiceExport, which members may read in another version of the API.
func (f *servicesFederation) wantExported(where client.Client) {
	f.Helper()
	version := "v1beta1"
	if where == f.plane {
		version = "v1alpha1"
	}
	f.eventually(func(ctx context.Context) error {
		export := &unstructured.Unstructured{}
		export.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: version, Kind: "ServiceExport"})
		if err := where.Get(ctx, client.ObjectKey{Namespace: "default", Name: "api"}, export); err != nil {
			return err
		}
		decoded := &multiclusterv1alpha1.ServiceExport{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(export.Object, decoded); err != nil {
			return err
		}
		c := decoded.Status.Conditions
		if !apimeta.IsStatusConditionTrue(c, "Valid") || !apimeta.IsStatusConditionTrue(c, "Ready") || !apimeta.IsStatusConditionFalse(c, "Conflict") {
			return fmt.Errorf("conditions: %v", c)
		}
		return nil
	})
}

// wantImported waits for the clusters in the status of the ServiceImport.
func (f *servicesFederation) wantImported(where client.Client, want ...string) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		in := &multiclusterv1alpha1.ServiceImport{}
		if err := where.Get(ctx, client.ObjectKey{Namespace: "default", Name: "api"}, in); err != nil {
			return err
		}
		var got []string
		for _, c := range in.Status.Clusters {
			got = append(got, c.Cluster)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("clusters: %v, want %v", got, want)
		}
		return nil
	})
}

// noService shows what a user reads whose Service does not exist, and that its creation is
// noticed.
func (f *servicesFederation) noService(t *testing.T) {
	f.create(t, f.plane, crossCluster("late", []string{"m1"}, []string{"m3"}))
	f.wantCondition("late", "ServiceApplied", metav1.ConditionFalse)
	f.create(t, f.plane, service("late"))
	f.wantCondition("late", "ServiceApplied", metav1.ConditionTrue)
	f.wantService("m3", "late")
}

// installMultiCluster creates the types of exports and imports in a member.
func (f *servicesFederation) installMultiCluster(t *testing.T, member string) {
	t.Helper()
	all, err := crds.All()
	f.must(err)
	for _, crd := range all {
		if crd.Spec.Group != "multicluster.x-k8s.io" {
			continue
		}
		crd.Spec.Conversion = nil
		beta := crd.Spec.Versions[0]
		beta.Name, beta.Storage = "v1beta1", false
		crd.Spec.Versions = append(crd.Spec.Versions, beta)
		f.create(t, f.members[member], crd)
	}
}

// hostileAgent writes what an agent may write: collected Works of its own cluster.
func (f *servicesFederation) hostileAgent(t *testing.T) {
	ctx := t.Context()
	f.create(t, f.plane, service("bank"), crossCluster("bank", []string{"m1"}, []string{"m3"}), &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull},
	})
	f.create(t, f.members["m1"], slice("bank", "bank-a", "10.1.0.1"))
	f.wantSlices("m3", "bank", "m1-bank-a=10.1.0.1")
	f.eventually(func(ctx context.Context) error {
		return f.plane.Get(ctx, client.ObjectKey{Name: es("evil")}, &corev1.Namespace{})
	})
	own := &workv1alpha1.WorkList{}
	if err := f.plane.List(ctx, own, client.InNamespace(es("m1")), client.MatchingLabels{"multiclusterservice.karmada.io/name": "bank"}); err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{
		"bank-b": {"multiclusterservice.karmada.io/namespace": "default", "multiclusterservice.karmada.io/name": "bank", "endpointslice.karmada.io/managed-by": "MultiClusterService"},
		"bank-c": {"endpointslice.karmada.io/namespace": "default", "endpointslice.karmada.io/name": "bank", "endpointslice.karmada.io/managed-by": "ServiceExport", workv1alpha2.WorkPermanentIDLabel: own.Items[0].Labels[workv1alpha2.WorkPermanentIDLabel]},
		"bank-d": {"multiclusterservice.karmada.io/namespace": "default", "multiclusterservice.karmada.io/name": "bank", "endpointslice.karmada.io/managed-by": "MultiClusterService", networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id-bank"},
	} {
		s := slice("bank", name, "10.66.6.6")
		s.APIVersion, s.Kind = "discovery.k8s.io/v1", "EndpointSlice"
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		work := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: es("evil"), Name: names.Work("EndpointSlice", name, "default"), Labels: labels,
				Finalizers: []string{"karmada.io/endpointslice-controller", "karmada.io/mcs-endpointslice-dispatch-controller"},
			},
			Spec: workv1alpha1.WorkSpec{SuspendDispatching: new(true)},
		}
		work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
		work.Spec.Workload.Manifests[0].Raw = raw
		f.create(t, f.plane, work)
	}
	// A change of another cluster that is dispatched later shows that the Works were seen.
	if err := f.members["m1"].Patch(ctx, slice("bank", "bank-a", "10.1.0.2"), client.Merge); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "bank", "m1-bank-a=10.1.0.2")
	list := &discoveryv1.EndpointSliceList{}
	if err := f.plane.List(ctx, list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		if s.Labels[discoveryv1.LabelServiceName] == "derived-bank" {
			t.Errorf("the slice %s of an agent was imported", s.Name)
		}
	}
	if err := f.plane.DeleteAllOf(ctx, &workv1alpha1.Work{}, client.InNamespace(es("evil"))); err != nil {
		t.Fatal(err)
	}
	f.wantNoWorks("bank-b-")
	f.wantSlices("m3", "bank", "m1-bank-a=10.1.0.2")
}

// providerStops shows that the slices of a provider leave when its API server stops, if
// there is another one, and come back.
func (f *servicesFederation) providerStops(t *testing.T) {
	f.create(t, f.plane, service("shop"), crossCluster("shop", []string{"m1", "m2"}, []string{"m3"}))
	f.create(t, f.members["m1"], slice("shop", "shop-a", "10.1.0.1"))
	f.create(t, f.members["m2"], slice("shop", "shop-b", "10.2.0.1"))
	f.wantSlices("m3", "shop", "m1-shop-a=10.1.0.1", "m2-shop-b=10.2.0.1")
	f.servers["m2"].Stop(t)
	f.wantSlices("m3", "shop", "m1-shop-a=10.1.0.1")
	// Nothing is left that would serve: the slices of the dead cluster are better than none.
	if err := f.members["m1"].Delete(t.Context(), slice("shop", "shop-a")); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "shop", "m2-shop-b=10.2.0.1")
	f.servers["m2"].Restart(t)
	f.waitReady("m2", metav1.ConditionTrue)
	if err := f.members["m2"].Delete(t.Context(), slice("shop", "shop-b")); err != nil {
		t.Fatal(err)
	}
	f.wantSlices("m3", "shop")
}
