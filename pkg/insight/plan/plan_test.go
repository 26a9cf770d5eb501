package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

// kinds interprets Deployments. One refers to the ConfigMap that its annotation uses names.
type kinds struct{}

func (kinds) HookEnabled(gvk schema.GroupVersionKind, _ configv1alpha1.InterpreterOperation) bool {
	return gvk.Kind == "Deployment"
}

func (kinds) GetReplicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	n, _, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return int32(n), &workv1alpha2.ReplicaRequirements{}, err
}

func (kinds) GetComponents(*unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	return nil, nil
}

func (kinds) ReviseReplica(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
	out := obj.DeepCopy()
	return out, unstructured.SetNestedField(out.Object, replicas, "spec", "replicas")
}

func (kinds) GetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	if obj.GetKind() != "Deployment" {
		return nil, errors.New("default interpreter for operation InterpretDependency not found")
	}
	name := obj.GetAnnotations()["uses"]
	if name == "" {
		return nil, nil
	}
	return []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: obj.GetNamespace(), Name: name}}, nil
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	web    = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: ns, name: web, uid: web, annotations: {uses: settings}}\nspec: {replicas: 4, image: a}"
	config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: ns, name: settings, uid: settings}\ndata: {a: b}"
)

// overridden is propagated, with 9 replicas in m2.
func overridden(t testing.TB) *World {
	t.Helper()
	w := propagated(t).copied()
	if err := Store(object(t, strings.NewReplacer("/spec/image", "/spec/replicas", "value: c", "value: 9").Replace(replaceImage)))(w); err != nil {
		t.Fatal(err)
	}
	return w
}

// replaceImage changes web in m2.
const replaceImage = "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {namespace: ns, name: o}\nspec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], " +
	"overrideRules: [{targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{path: /spec/image, operator: replace, value: c}]}}]}"

// preempting is a policy of a higher priority than webPolicy, whose selector has kind Deployment and more.
func preempting(more string) string {
	p := strings.NewReplacer("name: web, labels: {propagationpolicy.karmada.io/permanent-id: web}", "name: first, labels: {propagationpolicy.karmada.io/permanent-id: first}",
		"kind: Deployment, name: web", "kind: Deployment, "+more, "spec: {", "spec: {preemption: Always, priority: 9, ")
	return p.Replace(webPolicy("m3", ""))
}

// webPolicy divides web over clusters.
func webPolicy(clusters, more string) string {
	return "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {namespace: ns, name: web, labels: {propagationpolicy.karmada.io/permanent-id: web}}\n" +
		"spec: {propagateDeps: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], placement: {clusterAffinity: {clusterNames: [" + clusters + "]}, " +
		"replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}" + more + "}}"
}

// world has three clusters, a Deployment without a policy, and a ConfigMap that it refers to.
func world(t testing.TB) *World {
	t.Helper()
	w := &World{Interpreter: kinds{}, Evict: true}
	w.Now, w.Templates = time.Unix(1000, 0), []*unstructured.Unstructured{object(t, web), object(t, config)}
	for _, name := range []string{"m1", "m2", "m3"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
			{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
			{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
		}
		w.Clusters = append(w.Clusters, c)
	}
	return w
}

// propagated is a world in which web and its ConfigMap are in m1 and m2, as the roles leave it.
func propagated(t testing.TB) *World {
	t.Helper()
	return propagatedTo(t, world(t), "m1, m2")
}

// propagatedTo is a world in which a policy has web in clusters, as the roles leave it.
func propagatedTo(t testing.TB, w *World, clusters string) *World {
	t.Helper()
	w = w.copied()
	if err := Store(object(t, webPolicy(clusters, "")))(w); err != nil {
		t.Fatal(err)
	}
	return propagatedIn(t, w)
}

// preserving is propagated, by a policy that preserves.
func preserving(t testing.TB) *World {
	t.Helper()
	w := world(t).copied()
	if err := Store(object(t, preserves(webPolicy("m1, m2", ""))))(w); err != nil {
		t.Fatal(err)
	}
	return propagatedIn(t, w)
}

func preserves(policy string) string {
	return strings.Replace(policy, "spec: {", "spec: {preserveResourcesOnDeletion: true, ", 1)
}

// whole does not divide Deployments.
type whole struct{ kinds }

func (whole) HookEnabled(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) bool {
	return false
}

// keeping is a world in which web is whole in m1 and m2, by a policy that does not select it any more.
func keeping(t testing.TB) *World {
	t.Helper()
	w := world(t)
	w.Interpreter = whole{}
	w = propagatedTo(t, w, "m1, m2")
	for _, p := range w.Policies {
		p.PropagationSpec().ResourceSelectors[0].Name = "other"
	}
	return w
}

// leaving is a world in which web is being evicted from m1, its only cluster.
func leaving(t testing.TB) *World {
	t.Helper()
	w := propagatedTo(t, world(t), "m1")
	w.Clusters[0].Spec.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}}
	for _, b := range w.Bindings {
		spec := b.GetSpec() // dependencies stay until it is gone
		if spec.Clusters != nil {
			spec.Clusters = nil
			spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
				FromCluster: "m1", Replicas: new(int32(4)), Producer: eviction.ProducerTaintManager, PurgeMode: policyv1alpha1.PurgeModeGracefully,
				CreationTimestamp: &metav1.Time{Time: w.Now},
			}}
		}
	}
	return w
}

// unattached is a world in which no cluster fits web, and m3 has the ConfigMap, which a policy released.
func unattached(t testing.TB) *World {
	t.Helper()
	w := propagatedTo(t, world(t), "m9")
	w.Bindings = append(w.Bindings, &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "settings-configmap"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "settings"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "m3"}},
		},
	})
	return w
}

// propagatedIn is a world as the roles leave it.
func propagatedIn(t testing.TB, w *World) *World {
	t.Helper()
	p, err := newPlanner(w, true)
	if err != nil {
		t.Fatal(err)
	}
	for k, s := range p.states() {
		if s.binding != nil {
			s.binding.GetSpec().Resource = workv1alpha2.ObjectReference{APIVersion: s.template.GetAPIVersion(), Kind: k.Kind, Namespace: k.namespace, Name: k.name}
			w.Bindings = append(w.Bindings, s.binding)
		}
		if s.policy != nil {
			policy.For(s.policy).Take(s.template).Apply(s.template)
		}
	}
	w.changed, w.Templates, w.Policies = nil, slices.Collect(maps.Values(w.templates)), slices.Collect(maps.Values(w.policies))
	return w
}

// lines returns effects as lines, such as: Deployment ns/web m1 update 2->4.
func lines(e *Effects) string {
	var out []string
	for _, o := range e.Objects {
		if o.PolicyBefore != o.PolicyAfter {
			out = append(out, fmt.Sprintf("%s policy %q->%q", o.Object.String(), o.PolicyBefore, o.PolicyAfter))
		}
		for _, c := range o.Clusters {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %d->%d %s %s", o.Object.String(), c.Name, c.Action, c.Before, c.After, strings.Join(c.Fields, ","), c.Reason)))
		}
		if o.Unfit != "" {
			out = append(out, o.Object.String()+" unfit: "+o.Unfit)
		}
		for _, text := range o.Unknown {
			out = append(out, o.Object.String()+" unknown: "+text)
		}
		if o.After > 0 {
			out = append(out, fmt.Sprintf("%s after %g s", o.Object.String(), o.After))
		}
	}
	return strings.Join(out, "\n")
}

// evicting is a world whose lost clusters get a NoExecute taint.
func evicting(t testing.TB) *World {
	w := propagated(t)
	w.TaintPolicies = []*policyv1alpha1.ClusterTaintPolicy{{Spec: policyv1alpha1.ClusterTaintPolicySpec{
		AddOnConditions: []policyv1alpha1.MatchCondition{{ConditionType: "Ready", Operator: policyv1alpha1.MatchConditionOpNotIn, StatusValues: []metav1.ConditionStatus{"True"}}},
		Taints:          []policyv1alpha1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}},
	}}}
	return w
}

func TestPlan(t *testing.T) {
	deployment, of := schema.GroupKind{Group: "apps", Kind: "Deployment"}, func(kind string) schema.GroupKind {
		return policyv1alpha1.GroupVersion.WithKind(kind).GroupKind()
	}
	noExecute := corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		world   func(testing.TB) *World
		changes func(*testing.T) []Change
		want    string
	}{
		"nothing": {propagated, func(*testing.T) []Change { return nil }, ""},
		"a first policy": {world, func(t *testing.T) []Change { return []Change{Store(object(t, webPolicy("m1, m2", "")))} },
			"ConfigMap ns/settings m1 create 0->0\nConfigMap ns/settings m2 create 0->0\n" +
				"Deployment ns/web policy \"\"->\"PropagationPolicy ns/web\"\nDeployment ns/web m1 create 0->2\nDeployment ns/web m2 create 0->2"},
		"replicas that are left over": {world, func(t *testing.T) []Change {
			return []Change{Delete(deployment, "ns", "web"), Store(object(t, strings.NewReplacer("replicas: 4", "replicas: 3", ", uid: web", "").Replace(web))), Store(object(t, webPolicy("m1, m2", "")))}
		}, "ConfigMap ns/settings m1 create 0->0\nConfigMap ns/settings m2 create 0->0\nDeployment ns/web policy \"\"->\"PropagationPolicy ns/web\"\nDeployment ns/web m1 create 0->2\n" +
			"Deployment ns/web m2 create 0->1\nDeployment ns/web unknown: which of the clusters m1, m2 get one replica more: its UID decides"},
		"one replica for two clusters": {world, func(t *testing.T) []Change {
			return []Change{Delete(deployment, "ns", "web"), Store(object(t, strings.NewReplacer("replicas: 4", "replicas: 1", ", uid: web", "").Replace(web))), Store(object(t, webPolicy("m1, m2", "")))}
		}, "ConfigMap ns/settings m1 create 0->0\nConfigMap ns/settings unknown: to which of the clusters m1, m2 it follows Deployment ns/web: its UID decides\n" +
			"Deployment ns/web policy \"\"->\"PropagationPolicy ns/web\"\nDeployment ns/web m1 create 0->1\n" +
			"Deployment ns/web unknown: which of the clusters m1, m2 get one replica more: its UID decides"},
		"the first policy of a plan keeps the template": {world, func(t *testing.T) []Change {
			other := strings.NewReplacer("name: web, labels: {propagationpolicy.karmada.io/permanent-id: web}", "name: other", "spec: {", "spec: {priority: 9, ").Replace(webPolicy("m3", ""))
			return []Change{Store(object(t, webPolicy("m1, m2", ""))), Store(object(t, other))}
		}, "ConfigMap ns/settings m1 create 0->0\nConfigMap ns/settings m2 create 0->0\nDeployment ns/web policy \"\"->\"PropagationPolicy ns/web\"\nDeployment ns/web m1 create 0->2\nDeployment ns/web m2 create 0->2"},
		"scaling": {propagated, func(*testing.T) []Change { return []Change{Scale(deployment, "ns", "web", 6)} },
			"Deployment ns/web m1 update 2->3 spec.replicas\nDeployment ns/web m2 update 2->3 spec.replicas"},
		"another placement": {propagated, func(t *testing.T) []Change { return []Change{Store(object(t, webPolicy("m2", "")))} },
			"ConfigMap ns/settings m1 delete 0->0\nDeployment ns/web m1 delete 2->0\nDeployment ns/web m2 update 2->4 spec.replicas"},
		"another image": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, strings.Replace(web, "image: a", "image: b", 1)))}
		},
			"Deployment ns/web m1 update 2->2 spec.image\nDeployment ns/web m2 update 2->2 spec.image"},
		"an override of replicas": {world, func(t *testing.T) []Change {
			return []Change{Store(object(t, webPolicy("m1, m2", ""))), Store(object(t, strings.NewReplacer("/spec/image", "/spec/replicas", "value: c", "value: 9").Replace(replaceImage)))}
		}, "ConfigMap ns/settings m1 create 0->0\nConfigMap ns/settings m2 create 0->0\nDeployment ns/web policy \"\"->\"PropagationPolicy ns/web\"\nDeployment ns/web m1 create 0->2\nDeployment ns/web m2 create 0->9"},
		"a template with overridden replicas": {overridden, func(t *testing.T) []Change {
			return []Change{Store(object(t, strings.NewReplacer("replicas: 4", "replicas: 6", "image: a", "image: b").Replace(web)))}
		}, "Deployment ns/web m1 update 2->3 spec.image,spec.replicas\nDeployment ns/web m2 update 9->9 spec.image"},
		"another placement of overridden replicas": {overridden, func(t *testing.T) []Change { return []Change{Store(object(t, webPolicy("m1", "")))} }, "ConfigMap ns/settings m2 delete 0->0\nDeployment ns/web m1 update 2->4 spec.replicas\nDeployment ns/web m2 delete 9->0"},
		"a NoExecute taint": {propagated, func(*testing.T) []Change { return []Change{Taint("m1", noExecute)} },
			"ConfigMap ns/settings m1 delete 0->0\nDeployment ns/web m1 delete 2->0  the cluster has the taints gone:NoExecute\nDeployment ns/web m2 update 2->4 spec.replicas"},
		"a NoExecute taint that is tolerated for a time": {propagated, func(t *testing.T) []Change {
			return []Change{Store(object(t, webPolicy("m1, m2", ", clusterTolerations: [{key: gone, operator: Exists, tolerationSeconds: 300}]"))), Taint("m1", noExecute)}
		}, "ConfigMap ns/settings m1 delete 0->0\nDeployment ns/web m1 delete 2->0  the cluster has the taints gone:NoExecute\nDeployment ns/web m2 update 2->4 spec.replicas\nDeployment ns/web after 300 s"},
		"an eviction under way from a cluster whose taints are tolerated now": {leaving, func(t *testing.T) []Change {
			return []Change{Store(object(t, webPolicy("m9", ", clusterTolerations: [{key: gone, operator: Exists}]")))}
		}, "ConfigMap ns/settings m1 create 0->0\nDeployment ns/web m1 create 0->4"}, // it runs nowhere else
		"a label of the cluster from which an eviction is under way": {leaving, func(*testing.T) []Change { return []Change{Label("m1", map[string]string{"a": "b"})} }, ""},
		"a cordon": {propagated, func(*testing.T) []Change { return []Change{Cordon("m1")} }, ""},
		"a cordon before scaling": {propagated, func(*testing.T) []Change { return []Change{Cordon("m1"), Scale(deployment, "ns", "web", 6)} },
			"Deployment ns/web m1 update 2->3 spec.replicas\nDeployment ns/web m2 update 2->3 spec.replicas"}, // it was there before
		"a lost cluster": {propagated, func(*testing.T) []Change { return []Change{Lose("m1")} }, ""},
		"a lost cluster before scaling": {propagated, func(*testing.T) []Change { return []Change{Lose("m1"), Scale(deployment, "ns", "web", 6)} },
			"Deployment ns/web m2 update 2->4 spec.replicas"},
		"the only cluster is lost before scaling": {func(t testing.TB) *World { return propagatedTo(t, world(t), "m1") }, func(*testing.T) []Change {
			return []Change{Lose("m1"), Scale(deployment, "ns", "web", 6)}
		}, "Deployment ns/web unfit: failed to assign replicas: Clusters available replicas 0 are not enough to schedule. Room for more: m1 0 (not Ready)."},
		"a lost cluster that a policy taints": {evicting, func(*testing.T) []Change { return []Change{Lose("m1")} },
			"ConfigMap ns/settings m1 keep 0->0  the cluster is lost: it is deleted there when the cluster is back\n" +
				"Deployment ns/web m1 keep 2->0  the cluster is lost: it is deleted there when the cluster is back\nDeployment ns/web m2 update 2->4 spec.replicas"},
		"two of three clusters are lost at once": {evicting, func(*testing.T) []Change { return []Change{Lose("m1"), Lose("m2")} }, ""},
		"unjoining": {propagated, func(*testing.T) []Change { return []Change{Unjoin("m1")} },
			"ConfigMap ns/settings m1 delete 0->0  the cluster is removed\nDeployment ns/web m1 delete 2->0  the cluster is removed\nDeployment ns/web m2 update 2->4 spec.replicas"},
		"deleting the template": {propagated, func(*testing.T) []Change { return []Change{Delete(deployment, "ns", "web")} },
			"ConfigMap ns/settings m1 delete 0->0\nConfigMap ns/settings m2 delete 0->0\n" +
				"Deployment ns/web policy \"PropagationPolicy ns/web\"->\"\"\nDeployment ns/web m1 delete 2->0  the template is deleted\nDeployment ns/web m2 delete 2->0  the template is deleted"},
		"deleting a template that is preserved": {preserving, func(*testing.T) []Change { return []Change{Delete(deployment, "ns", "web")} },
			"ConfigMap ns/settings m1 keep 0->0  what requires it is preserved\nConfigMap ns/settings m2 keep 0->0  what requires it is preserved\n" +
				"Deployment ns/web policy \"PropagationPolicy ns/web\"->\"\"\nDeployment ns/web m1 keep 2->0  its policy preserves it\nDeployment ns/web m2 keep 2->0  its policy preserves it"},
		"deleting a template that is preserved, and its policy": {preserving, func(*testing.T) []Change {
			return []Change{Delete(of("PropagationPolicy"), "ns", "web"), Delete(deployment, "ns", "web")}
		}, "ConfigMap ns/settings m1 keep 0->0  what requires it is preserved\nConfigMap ns/settings m2 keep 0->0  what requires it is preserved\n" +
			"Deployment ns/web policy \"PropagationPolicy ns/web\"->\"\"\nDeployment ns/web m1 keep 2->0  its policy preserves it\nDeployment ns/web m2 keep 2->0  its policy preserves it"},
		"deleting a template that is preserved, whose policy was deleted before": {func(t testing.TB) *World {
			w := preserving(t)
			w.Policies = nil
			return w
		}, func(*testing.T) []Change { return []Change{Delete(deployment, "ns", "web")} },
			"ConfigMap ns/settings m1 keep 0->0  what requires it is preserved\nConfigMap ns/settings m2 keep 0->0  what requires it is preserved\n" +
				"Deployment ns/web m1 keep 2->0  its policy preserves it\nDeployment ns/web m2 keep 2->0  its policy preserves it"},
		"another placement of what is preserved": {preserving, func(t *testing.T) []Change { return []Change{Store(object(t, preserves(webPolicy("m2", ""))))} },
			"ConfigMap ns/settings m1 keep 0->0  what requires it is preserved\nDeployment ns/web m1 keep 2->0  its policy preserves it\nDeployment ns/web m2 update 2->4 spec.replicas"},
		"another placement of what is preserved no more": {preserving, func(t *testing.T) []Change { return []Change{Store(object(t, webPolicy("m2", "")))} },
			"ConfigMap ns/settings m1 delete 0->0\nDeployment ns/web m1 delete 2->0\nDeployment ns/web m2 update 2->4 spec.replicas"},
		"unjoining what is preserved": {preserving, func(*testing.T) []Change { return []Change{Unjoin("m1")} },
			"ConfigMap ns/settings m1 keep 0->0  what requires it is preserved\nDeployment ns/web m1 keep 2->0  its policy preserves it\nDeployment ns/web m2 update 2->4 spec.replicas"},
		"a template that is preserved and refers to nothing any more": {preserving, func(t *testing.T) []Change {
			return []Change{Store(object(t, strings.Replace(web, ", annotations: {uses: settings}", "", 1)))}
		}, "ConfigMap ns/settings m1 keep 0->0  what requires it is preserved\nConfigMap ns/settings m2 keep 0->0  what requires it is preserved\n" +
			"Deployment ns/web m1 update 2->2 metadata.annotations.uses\nDeployment ns/web m2 update 2->2 metadata.annotations.uses"},
		"suspended dispatching": {propagated, func(t *testing.T) []Change {
			suspended := strings.Replace(webPolicy("m1, m2", ""), "spec: {", "spec: {suspension: {dispatchingOnClusters: {clusterNames: [m1]}}, ", 1)
			return []Change{Store(object(t, suspended)), Scale(deployment, "ns", "web", 6)}
		}, "Deployment ns/web m1 keep 2->3 spec.replicas dispatching is suspended\nDeployment ns/web m2 update 2->3 spec.replicas"},
		"a new dependency of a template that was released": {func(t testing.TB) *World {
			w := propagated(t)
			w.Policies, w.Templates = nil, append(w.Templates, object(t, strings.ReplaceAll(config, "settings", "more")))
			for _, b := range w.Bindings {
				if b.GetSpec().Resource.Name == "web" {
					b.SetAnnotations(map[string]string{workv1alpha2.BindingDependenciesAnnotation: `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"ns","name":"settings"}]`})
				}
			}
			return w
		}, func(t *testing.T) []Change {
			return []Change{Store(object(t, strings.Replace(web, "uses: settings", "uses: more", 1)))}
		}, ""},
		"an object that was released": {func(t testing.TB) *World {
			w := propagated(t)
			w.Policies = nil
			for _, cluster := range []string{"m1", "m2"} {
				delivered := strings.NewReplacer("image: a", "image: old", "replicas: 4", "replicas: 2").Replace(web)
				text, err := object(t, delivered).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster}}
				work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: text}}}
				w.Works = append(w.Works, work)
			}
			return w
		}, func(t *testing.T) []Change { return []Change{Store(object(t, webPolicy("m1, m2", "")))} },
			"Deployment ns/web policy \"\"->\"PropagationPolicy ns/web\"\nDeployment ns/web m1 update 2->2 spec.image\nDeployment ns/web m2 update 2->2 spec.image"},
		"an object that was released, and whose referrer never had clusters": {unattached, func(t *testing.T) []Change {
			return []Change{Store(object(t, strings.Replace(config, "a: b", "a: c", 1)))}
		}, ""},
		"deleting the policy": {propagated, func(*testing.T) []Change { return []Change{Delete(of("PropagationPolicy"), "ns", "web")} },
			"Deployment ns/web policy \"PropagationPolicy ns/web\"->\"\""},
		"deleting the policy, with an override": {propagated, func(t *testing.T) []Change {
			return []Change{Delete(of("PropagationPolicy"), "ns", "web"), Store(object(t, replaceImage))}
		}, "Deployment ns/web policy \"PropagationPolicy ns/web\"->\"\""},
		"a policy that preempts, without the feature gate": {propagated, func(t *testing.T) []Change { return []Change{Store(object(t, preempting("name: web")))} }, ""},
		"a policy that preempts": {func(t testing.TB) *World {
			w := propagated(t)
			w.Preempt = true
			return w
		}, func(t *testing.T) []Change { return []Change{Store(object(t, preempting("name: web")))} },
			"ConfigMap ns/settings m1 delete 0->0\nConfigMap ns/settings m2 delete 0->0\nConfigMap ns/settings m3 create 0->0\n" +
				"Deployment ns/web policy \"PropagationPolicy ns/web\"->\"PropagationPolicy ns/first\"\nDeployment ns/web m1 delete 2->0\nDeployment ns/web m2 delete 2->0\nDeployment ns/web m3 create 0->4"},
		"a policy that selects by kind does not preempt": {propagated, func(t *testing.T) []Change { return []Change{Store(object(t, preempting("namespace: ns")))} }, ""},
		"no cluster fits": {propagated, func(t *testing.T) []Change { return []Change{Store(object(t, webPolicy("m9", "")))} },
			"ConfigMap ns/settings m1 delete 0->0\nConfigMap ns/settings m2 delete 0->0\nDeployment ns/web m1 delete 2->0\nDeployment ns/web m2 delete 2->0\n" +
				"Deployment ns/web unfit: 0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint (m1, m2, m3)."},
		"a policy that does not select it any more, and keeps it": {keeping, func(*testing.T) []Change { return []Change{Scale(deployment, "ns", "web", 6)} }, ""},
		"the same, when its cluster changes": {keeping, func(*testing.T) []Change {
			return []Change{Scale(deployment, "ns", "web", 6), Label("m1", map[string]string{"a": "b"})}
		}, "Deployment ns/web m1 update 4->6 spec.replicas\nDeployment ns/web m2 update 4->6 spec.replicas"},
		"a kind without dependencies, by a policy that propagates them": {world, func(t *testing.T) []Change {
			return []Change{Store(object(t, strings.NewReplacer("apps/v1, kind: Deployment, name: web", "v1, kind: ConfigMap, name: settings").Replace(webPolicy("m1", ""))))}
		}, "ConfigMap ns/settings policy \"\"->\"PropagationPolicy ns/web\"\nConfigMap ns/settings m1 create 0->0"},
		"an override": {propagated, func(t *testing.T) []Change { return []Change{Store(object(t, replaceImage))} }, "Deployment ns/web m2 update 2->2 spec.image"},
		"another scheduler": {world, func(t *testing.T) []Change {
			return []Change{Store(object(t, strings.Replace(webPolicy("m1", ""), "spec: {", "spec: {schedulerName: mine, ", 1)))}
		}, "Deployment ns/web policy \"\"->\"PropagationPolicy ns/web\"\nDeployment ns/web unknown: where scheduler \"mine\" puts it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.world(t)
			before, err := json.Marshal(w.Bindings)
			if err != nil {
				t.Fatal(err)
			}
			effects, err := Plan(w, tc.changes(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(effects); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if now, err := json.Marshal(w.Bindings); err != nil || string(now) != string(before) {
				t.Errorf("the world was changed: %v", err)
			}
		})
	}
}

func TestPlan_UnknownObjects(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for want, change := range map[string]Change{
		"cluster m9 does not exist":                                     Cordon("m9"),
		"Deployment ns/db does not exist in the control plane":          Delete(kind, "ns", "db"),
		"Deployment ns/api does not exist in the control plane":         Scale(kind, "ns", "api", 1),
		"ConfigMap ns/settings has no field spec.replicas":              Scale(schema.GroupKind{Kind: "ConfigMap"}, "ns", "settings", 1),
		"PropagationPolicy ns/none does not exist in the control plane": Delete(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy").GroupKind(), "ns", "none"),
	} {
		if _, err := Plan(world(t), []Change{change}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
