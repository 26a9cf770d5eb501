package plan

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// inNamespaces is a world with the namespaces of web, and those of a control plane.
func inNamespaces(t testing.TB, w *World) *World {
	t.Helper()
	w.Templates = append(w.Templates, object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: ns, uid: ns}}"),
		object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: private, labels: {namespace.karmada.io/skip-auto-propagation: \"true\"}}}"))
	for _, name := range []string{"default", "kube-system", "kube-public", "karmada-system", "karmada-es-m1"} {
		w.Templates = append(w.Templates, object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"))
	}
	w.Skipped = propagation.DefaultNamespaces()
	return w
}

// namespacePolicy propagates namespace ns to clusters.
func namespacePolicy(clusters string) string {
	return "{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: namespaces, labels: {clusterpropagationpolicy.karmada.io/permanent-id: nn}}, " +
		"spec: {resourceSelectors: [{apiVersion: v1, kind: Namespace, name: ns}], placement: {clusterAffinity: {clusterNames: [" + clusters + "]}}}}"
}

// TestPlan_Namespaces plans changes of namespaces, which every cluster gets, and deletions that delete more.
func TestPlan_Namespaces(t *testing.T) {
	ns := func(name string) Change { return Delete(schema.GroupKind{Kind: "Namespace"}, "", name) }
	everywhere := func(action string) string {
		return fmt.Sprintf("Namespace ns m1 %[1]s\nNamespace ns m2 %[1]s\nNamespace ns m3 %[1]s", action)
	}
	const deleted = "delete 0->0  the template is deleted; it stays with what is preserved, or was not made by the control plane, in it"
	const webDeleted = "ConfigMap ns/settings m1 delete 0->0  the template is deleted\nConfigMap ns/settings m2 delete 0->0  the template is deleted\n" +
		"Deployment ns/web policy \"PropagationPolicy ns/web\"->\"\"\nDeployment ns/web m1 delete 2->0  the template is deleted\nDeployment ns/web m2 delete 2->0  the template is deleted"
	for name, tc := range map[string]struct {
		world   func(testing.TB) *World
		changes func(*testing.T) []Change
		want    string
		notes   string
	}{
		"nothing": {propagated, func(*testing.T) []Change { return nil }, "", ""},
		"a namespace is deleted with all that is in it": {propagated, func(*testing.T) []Change { return []Change{ns("ns")} },
			everywhere(deleted) + "\n" + webDeleted, ""},
		"a namespace with preserved objects is deleted": {preserving, func(*testing.T) []Change { return []Change{ns("ns")} },
			"Namespace ns m1 keep 0->0  it has ConfigMap ns/settings, which stays\nNamespace ns m2 keep 0->0  it has ConfigMap ns/settings, which stays\nNamespace ns m3 " + deleted + "\n" + strings.NewReplacer("delete 0->0  the template is deleted", "keep 0->0  what requires it is preserved", "delete 2->0  the template is deleted", "keep 2->0  its policy preserves it").Replace(webDeleted), ""},
		"a namespace with an object that is being evicted and preserved is deleted": {func(t testing.TB) *World {
			w := world(t).copied()
			if err := Store(object(t, preserves(webPolicy("m1", ""))))(w); err != nil {
				t.Fatal(err)
			}
			w = propagatedIn(t, w)
			for _, b := range w.Bindings {
				if spec := b.GetSpec(); spec.Clusters != nil {
					spec.Clusters, spec.GracefulEvictionTasks = nil, []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", Replicas: new(int32(4)), Producer: eviction.ProducerTaintManager}}
				}
			}
			w.Clusters[0].Spec.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}}
			return w
		}, func(*testing.T) []Change { return []Change{ns("ns")} },
			"Namespace ns m1 keep 0->0  it has Deployment ns/web, which stays\nNamespace ns m2 " + deleted + "\nNamespace ns m3 " + deleted + "\nDeployment ns/web policy \"PropagationPolicy ns/web\"->\"\"", ""},
		"a namespace is deleted, and a policy of the cluster that preserves selects what is in it": {func(t testing.TB) *World {
			w := world(t).copied()
			for _, p := range []string{
				webPolicy("m1, m2", ""),
				"{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: all}, spec: {preserveResourcesOnDeletion: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}}",
			} {
				if err := Store(object(t, p))(w); err != nil {
					t.Fatal(err)
				}
			}
			return propagatedIn(t, w)
		}, func(*testing.T) []Change { return []Change{ns("ns")} },
			everywhere(deleted) + "\n" + webDeleted + "\nDeployment ns/web unknown: whether it stays in its clusters: ClusterPropagationPolicy all may take it over before it is deleted", ""},
		"a namespace with a protected object is deleted": {func(t testing.TB) *World {
			w := propagated(t)
			for _, u := range w.Templates {
				if u.GetKind() == "ConfigMap" {
					u.SetLabels(map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways})
				}
			}
			return w
		}, func(*testing.T) []Change { return []Change{ns("ns")} },
			"ConfigMap ns/settings m1 delete 0->0\nConfigMap ns/settings m2 delete 0->0\n" + webDeleted[strings.Index(webDeleted, "Deployment"):],
			"Namespace ns stays until these are deleted, which have the label resourcetemplate.karmada.io/deletion-protected: ConfigMap ns/settings"},
		"a new namespace": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: new}}"))}
		}, strings.ReplaceAll(everywhere("create 0->0"), "Namespace ns", "Namespace new"), ""},
		"a new namespace that opts out": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {namespace.karmada.io/skip-auto-propagation: \"TRUE\"}}}"))}
		}, "", "no policy selects, and no cluster gets: Namespace new"},
		"a namespace that clusters have of their own": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-node-lease}}"))}
		}, "", "no policy selects, and no cluster gets: Namespace kube-node-lease"},
		"a label of a namespace": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: {a: b}}}"))}
		}, everywhere("update 0->0 metadata.labels.a"), ""},
		"a namespace opts out, and stays": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: ns, labels: {namespace.karmada.io/skip-auto-propagation: \"true\"}}}"))}
		}, "", "clusters keep Namespace ns as it is: it is not created in clusters any more"},
		"an override of namespaces": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterOverridePolicy, metadata: {name: o}, spec: {resourceSelectors: [{apiVersion: v1, kind: Namespace, name: ns}], "+
				"overrideRules: [{targetCluster: {clusterNames: [m2]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}}"))}
		}, "Namespace ns m2 update 0->0 metadata.labels.a", ""},
		"a policy for a namespace": {propagated, func(t *testing.T) []Change { return []Change{Store(object(t, namespacePolicy("m1")))} },
			"Namespace ns policy \"\"->\"ClusterPropagationPolicy namespaces\"", ""},
		"a namespace that a policy does not select any more": {func(t testing.TB) *World {
			w := inNamespaces(t, world(t)).copied()
			if err := Store(object(t, namespacePolicy("m1")))(w); err != nil {
				t.Fatal(err)
			}
			return propagatedIn(t, w)
		}, func(*testing.T) []Change {
			return []Change{Delete(policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy").GroupKind(), "", "namespaces")}
		}, "Namespace ns policy \"ClusterPropagationPolicy namespaces\"->\"\"", ""},
		"a cluster is removed": {world, func(*testing.T) []Change { return []Change{Unjoin("m3")} },
			"Namespace ns m3 delete 0->0  the cluster is removed; it stays with what is preserved, or was not made by the control plane, in it", ""},
		"a policy in a namespace that is skipped": {world, func(t *testing.T) []Change {
			var out []Change
			for _, text := range []string{web, config, webPolicy("m1", "")} {
				out = append(out, Store(object(t, strings.ReplaceAll(text, "namespace: ns", "namespace: kube-system"))))
			}
			return out
		}, "", "no policy selects, and no cluster gets: ConfigMap kube-system/settings, Deployment kube-system/web"},
		"a namespace with a StatefulSet that has claims is deleted": {func(t testing.TB) *World {
			w := world(t)
			w.Interpreter = whole{}
			w.Clusters[0].Status.APIEnablements = append(w.Clusters[0].Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "statefulsets", Kind: "StatefulSet"}}})
			w.Templates = []*unstructured.Unstructured{object(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: ns, name: db, uid: db}, spec: {replicas: 1, volumeClaimTemplates: [{metadata: {name: data}}]}}")}
			w = w.copied()
			if err := Store(object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: ns, name: p}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: StatefulSet}], placement: {clusterAffinity: {clusterNames: [m1]}}}}"))(w); err != nil {
				t.Fatal(err)
			}
			return propagatedIn(t, w)
		}, func(*testing.T) []Change { return []Change{ns("ns")} },
			"Namespace ns m1 keep 0->0  it has the storage of StatefulSet ns/db, which stays\nNamespace ns m2 " + deleted + "\nNamespace ns m3 " + deleted +
				"\nStatefulSet ns/db policy \"PropagationPolicy ns/p\"->\"\"\nStatefulSet ns/db m1 delete 1->0  the template is deleted", ""},
		"a CustomResourceDefinition is deleted with its objects": {func(t testing.TB) *World {
			w := world(t)
			w.Clusters[0].Status.APIEnablements = append(w.Clusters[0].Status.APIEnablements, clusterv1alpha1.APIEnablement{
				GroupVersion: "example.io/v1", Resources: []clusterv1alpha1.APIResource{{Name: "webs", Kind: "Web"}},
			})
			w.Templates = append(w.Templates, object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: webs.example.io}, spec: {group: example.io, names: {kind: Web}}}"),
				object(t, "{apiVersion: example.io/v1, kind: Web, metadata: {namespace: ns, name: w, uid: w}}"),
				object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: owned, ownerReferences: [{uid: w, kind: Web, name: w, apiVersion: example.io/v1}]}}"))
			w = w.copied()
			if err := Store(object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: ns, name: p}, spec: {resourceSelectors: [{apiVersion: example.io/v1, kind: Web}, {apiVersion: v1, kind: ConfigMap, name: owned}], placement: {clusterAffinity: {clusterNames: [m1]}}}}"))(w); err != nil {
				t.Fatal(err)
			}
			return propagatedIn(t, w)
		}, func(*testing.T) []Change { return []Change{Delete(definitions, "", "webs.example.io")} },
			"ConfigMap ns/owned policy \"PropagationPolicy ns/p\"->\"\"\nConfigMap ns/owned m1 delete 0->0  the template is deleted\n" +
				"Web ns/w policy \"PropagationPolicy ns/p\"->\"\"\nWeb ns/w m1 delete 0->0  the template is deleted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world(t)
			for _, c := range w.Clusters {
				c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "namespaces", Kind: "Namespace"}}})
			}
			if _, present := w.copied().templates[key{namespaces, "", "ns"}]; !present {
				w = inNamespaces(t, w)
			}
			e, err := Plan(w, tc.changes(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(e); got != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			}
			if got := strings.Join(e.Notes, "\n"); got != tc.notes {
				t.Errorf("got notes:\n%s\nwant:\n%s", got, tc.notes)
			}
		})
	}
}

func TestDelete_Refused(t *testing.T) {
	w := inNamespaces(t, world(t))
	w.Overrides = append(w.Overrides, &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "o", Labels: map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways}}})
	for k, want := range map[key]string{
		{corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind(), "", "kube-system"}:              "the deletion of Namespace kube-system would be refused: API servers need it",
		{corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind(), "", "none"}:                     "Namespace none does not exist in the control plane",
		{policyv1alpha1.GroupVersion.WithKind("OverridePolicy").GroupKind(), "ns", "o"}:               "the deletion of OverridePolicy ns/o would be refused: it has the label resourcetemplate.karmada.io/deletion-protected",
		{policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy").GroupKind(), "", "o"}:          "ClusterOverridePolicy o does not exist in the control plane",
		{policyv1alpha1.GroupVersion.WithKind("FederatedResourceQuota").GroupKind(), "ns", "nothing"}: "FederatedResourceQuota ns/nothing does not exist in the control plane",
	} {
		if _, err := Plan(w, []Change{Delete(k.GroupKind, k.namespace, k.name)}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
