//go:build integration

package phases

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// Everything without a namespace that an empty API server and an installation have belongs to the control plane, and what users
// create beside it does not, whatever it is called.
func TestInstallation_IsOwn(t *testing.T) {
	cluster, cp := emptied(t)
	crds, err := components.CRDs("https://127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	bootstrap, err := registration.Bootstrap("https://127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	applier := &apply.Applier{Client: cp, Manager: "test"}
	for _, objects := range [][]client.Object{
		components.SystemNamespaces("karmada-es-member1"), crds, components.FederationRBAC(), components.ComponentRBAC("karmada-system"), bootstrap, registration.Limits(components.Users()),
		registration.AgentRBAC(registration.AgentAccess{Cluster: "member1", Namespace: "karmada-cluster"}), registration.TombstoneRBAC("member1"),
		components.AggregatedAPI("karmada-system", "localhost", 443, nil), components.AddonServing(components.Search, "karmada-system", "localhost", 443, nil),
		components.AddonServing(components.MetricsAdapter, "karmada-system", "localhost", 443, nil),
		components.WebhookConfigurations("https://127.0.0.1", nil, nil), // the last: they refuse what follows
	} {
		if _, err := applier.Apply(t.Context(), objects...); err != nil {
			t.Fatal(err)
		}
	}
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(cluster.Config).ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	// Members get these: the default namespace, the types of the Multi-Cluster Services API. A ComponentStatus is not stored.
	propagated := []string{"Namespace default", "CustomResourceDefinition serviceexports.multicluster.x-k8s.io", "CustomResourceDefinition serviceimports.multicluster.x-k8s.io"}
	seen := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if r.Namespaced || !slices.Contains(r.Verbs, "list") || r.Kind == "ComponentStatus" {
				continue
			}
			var objects unstructured.UnstructuredList
			objects.SetGroupVersionKind(gv.WithKind(r.Kind))
			if err := cp.List(t.Context(), &objects); err != nil {
				t.Fatal(err)
			}
			for i := range objects.Items {
				obj := &objects.Items[i]
				seen++
				if want := !slices.Contains(propagated, r.Kind+" "+obj.GetName()); (policy.Own(obj) != "") != want {
					t.Errorf("%s %q: belongs to the control plane by the rule %q, want %v", r.Kind, obj.GetName(), policy.Own(obj), want)
				}
			}
		}
	}
	if seen < 150 {
		t.Errorf("compared %d objects only", seen)
	}
}
