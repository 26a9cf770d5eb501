package plan

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// applied is a world in which nginx was applied with a policy for m1 and m2, by the built-in rules of its kind.
func applied(t testing.TB) *World {
	t.Helper()
	w := world(t).copied()
	var err error
	if w.Interpreter, err = bundled.NewOffline(nil); err != nil {
		t.Fatal(err)
	}
	w.Templates = nil
	w = w.copied()
	m := NewManifests(func(string) {})
	for _, text := range []string{nginx, webPolicy("m1, m2", "")} {
		if err := m.Apply(object(t, text))(w); err != nil {
			t.Fatal(err)
		}
	}
	return propagatedIn(t, w)
}

var nginx = strings.NewReplacer("NAME", "web", "spec: {containers", "spec: {hostNetwork: true, containers").Replace(deployment)

func TestManifests_Apply(t *testing.T) {
	policy := webPolicy("m1, m2", "")
	for name, tc := range map[string]struct{ manifest, want, err string }{
		"the same":            {manifest: nginx},
		"another image":       {manifest: strings.Replace(nginx, "1.19.0", "1.20", 1), want: "m1 update 2->2 spec.template.spec.containers"},
		"a field is left out": {manifest: strings.Replace(nginx, "hostNetwork: true, ", "", 1), want: "m1 update 2->2 spec.template.spec.hostNetwork"},
		"the same policy":     {manifest: policy},
		"another policy":      {manifest: strings.Replace(policy, "[m1, m2]", "[m2, m3]", 1), want: "m3 create 0->2"},
		"an unknown field":    {manifest: strings.Replace(nginx, "replicas:", "replica:", 1), err: `Deployment ns/web would be refused: strict decoding error: unknown field "spec.replica"`},
		"admission": {
			manifest: strings.Replace(policy, "{apiVersion: apps/v1", "{namespace: other, apiVersion: apps/v1", 1),
			err:      `PropagationPolicy ns/web would be refused: spec.resourceSelectors[0].namespace: Invalid value: "other"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Plan(applied(t), []Change{NewManifests(func(string) {}).Apply(object(t, tc.manifest))})
			if err != nil || tc.err != "" {
				if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if got := lines(e); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestManifests_AppliesAgain applies what the API server stores with defaults in lists, and with quantities in another form.
func TestManifests_AppliesAgain(t *testing.T) {
	const set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {namespace: ns, name: db}\nspec: {serviceName: db, replicas: 1, selector: {matchLabels: {app: db}}, " +
		"template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: a, resources: {limits: {cpu: 0.5}}}]}}, " +
		"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}"
	for name, tc := range map[string]struct{ manifest, want string }{
		"the same":           {set, ""},
		"another claim":      {strings.Replace(set, "1Gi", "2Gi", 1), "StatefulSet ns/db m1 refuse 1->1 spec.volumeClaimTemplates spec cannot be changed; delete the object there to have it made anew"},
		"a mode is left out": {strings.Replace(set, "accessModes: [ReadWriteOnce], ", "", 1), "StatefulSet ns/db m1 refuse 1->1 spec.volumeClaimTemplates spec cannot be changed; delete the object there to have it made anew"},
		"another limit":      {strings.Replace(set, "0.5", "0.6", 1), "StatefulSet ns/db m1 update 1->1 spec.template.spec.containers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := applied(t).copied()
			w.Clusters[0].Status.APIEnablements = append(w.Clusters[0].Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "statefulsets", Kind: "StatefulSet"}}})
			m := NewManifests(func(string) {})
			for _, text := range []string{set, strings.NewReplacer("name: web", "name: db", "kind: Deployment", "kind: StatefulSet", "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}", "").Replace(webPolicy("m1", ""))} {
				if err := m.Apply(object(t, text))(w); err != nil {
					t.Fatal(err)
				}
			}
			stored := w.templates[keyOf(object(t, set))]
			claims, _, _ := unstructured.NestedSlice(stored.Object, "spec", "volumeClaimTemplates")
			claims[0].(map[string]any)["spec"].(map[string]any)["volumeMode"] = "Filesystem"
			claims[0].(map[string]any)["status"] = map[string]any{"phase": "Pending"}
			containers, _, _ := unstructured.NestedSlice(stored.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["resources"] = map[string]any{"limits": map[string]any{"cpu": "500m"}}
			stored.Object["spec"].(map[string]any)["volumeClaimTemplates"] = claims
			stored.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"] = containers
			e, err := Plan(propagatedIn(t, w), []Change{m.Apply(object(t, tc.manifest))})
			if err != nil || strings.Join(strings.Fields(lines(e)), " ") != tc.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, lines(e), tc.want)
			}
		})
	}
}

// TestPlan_Job loses a cluster: the completions of a Job would be divided again, which the other cluster refuses.
func TestPlan_Job(t *testing.T) {
	w := applied(t).copied()
	for _, c := range w.Clusters {
		c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "batch/v1", Resources: []clusterv1alpha1.APIResource{{Name: "jobs", Kind: "Job"}}})
	}
	for _, text := range []string{
		"apiVersion: batch/v1\nkind: Job\nmetadata: {namespace: ns, name: job, uid: job}\nspec: {parallelism: 2, completions: 4, template: {spec: {restartPolicy: Never, containers: [{name: c, image: a}]}}}",
		strings.NewReplacer("name: web", "name: job", "kind: Deployment", "kind: Job", "apps/v1", "batch/v1").Replace(webPolicy("m1, m2", "")),
	} {
		if err := Store(object(t, text))(w); err != nil {
			t.Fatal(err)
		}
	}
	w = propagatedIn(t, w)
	e, err := Plan(w, []Change{Taint("m1", corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})})
	want := "Job ns/job m2 refuse 1->1 spec.completions,spec.parallelism spec.completions cannot be changed; delete the object there to have it made anew"
	if err != nil || !strings.Contains(lines(e), want) || e.Summary.Refuse != 1 {
		t.Errorf("got %v, %+v\n%s\nwant\n%s", err, e.Summary, lines(e), want)
	}
}

// TestPlan_UserOfOneNamespace applies what may exist already, and deletes what may not be read.
func TestPlan_UserOfOneNamespace(t *testing.T) {
	w := applied(t)
	w.Namespace = "ns"
	forbidden := errors.New("forbidden")
	w.Gaps = snapshot.Gaps{{What: "ConfigMap", Err: forbidden}, {What: "Deployment of other namespaces", Err: forbidden}}
	m := NewManifests(func(string) {})
	for name, tc := range map[string]struct {
		change    Change
		want, err string
	}{
		"a kind that is not read":      {change: m.Apply(object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c}}")), want: "ConfigMap ns/c unknown: whether it exists: you may not read it"},
		"another namespace":            {change: m.Apply(object(t, strings.Replace(nginx, "namespace: ns", "namespace: other", 1))), want: "Deployment other/web unknown: whether it exists: you may not read it"},
		"the namespace of the user":    {change: m.Apply(object(t, nginx))},
		"deletion in it":               {change: Delete(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "ns", "none"), err: "Deployment ns/none does not exist in the control plane"},
		"deletion of what is not read": {change: Delete(schema.GroupKind{Kind: "ConfigMap"}, "ns", "none"), err: "ConfigMap ns/none cannot be read: ask for the right to list objects of its kind"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Plan(w, []Change{tc.change})
			if err != nil || tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			if got := lines(e); got != tc.want || len(e.NotRead) != 2 || e.Objects == nil {
				t.Errorf("got %s, want %s; not read: %v", got, tc.want, e.NotRead)
			}
		})
	}
}

// TestPlan_UnreadableWorks has a policy take what another one left in clusters, for a user who may not read what was delivered there.
func TestPlan_UnreadableWorks(t *testing.T) {
	w := applied(t)
	w.Policies = nil
	for _, b := range w.Bindings {
		b.SetLabels(nil)
		b.SetName("web-deployment")
	}
	w.Gaps = snapshot.Gaps{{What: snapshot.WorkIn("m1"), Err: errors.New("forbidden")}, {What: snapshot.WorkIn("m2"), Err: errors.New("forbidden")}}
	e, err := Plan(w, []Change{Store(object(t, strings.Replace(webPolicy("m1, m2", ""), "name: web, labels", "name: other, labels", 1)))})
	want := "Deployment ns/web policy \"\"->\"PropagationPolicy ns/other\"\nDeployment ns/web unknown: what changes in cluster m1: you may not read what was delivered there last\n" +
		"Deployment ns/web unknown: what changes in cluster m2: you may not read what was delivered there last"
	if err != nil || lines(e) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, lines(e), want)
	}
}

// TestPlan_Quota scales a workload to more than its namespace may use: it stays as it is.
func TestPlan_Quota(t *testing.T) {
	w := applied(t)
	limit := corev1.ResourceList{"cpu": resource.MustParse("50m")}
	w.Quotas = []*policyv1alpha1.FederatedResourceQuota{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: limit},
		Status: policyv1alpha1.FederatedResourceQuotaStatus{Overall: limit, OverallUsed: corev1.ResourceList{}},
	}}
	scale := Scale(object(t, nginx).GroupVersionKind().GroupKind(), "ns", "web", 6)
	e, err := Plan(w, []Change{scale})
	want := "Deployment ns/web unfit: FederatedResourceQuota(ns/q) exceeded for resource cpu: requested sum 60m, limit 50m."
	if err != nil || lines(e) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, lines(e), want)
	}
}

func TestPlan_InterpreterWebhooksAreUnknown(t *testing.T) {
	w := applied(t)
	w.Webhooks = []*configv1alpha1.ResourceInterpreterWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
		Rules: []configv1alpha1.RuleWithOperations{{Rule: configv1alpha1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"*"}, Kinds: []string{"Deployment"}}}},
	}}}}
	e, err := Plan(w, []Change{Cordon("m3")})
	if want := "Deployment ns/web unknown: what interpreter webhook hook answers"; err != nil || lines(e) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, lines(e), want)
	}
}

func TestPlan_WhatAClusterRefusesIsUnknown(t *testing.T) {
	w := applied(t)
	w.Bindings[0].GetStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", AppliedMessage: "it exists already"}, {ClusterName: "m2", Applied: true}}
	e, err := Plan(w, []Change{Scale(object(t, nginx).GroupVersionKind().GroupKind(), "ns", "web", 6)})
	if want := "Deployment ns/web unknown: whether cluster m1 applies it, which it does not do now: it exists already"; err != nil || !strings.HasSuffix(lines(e), want) {
		t.Errorf("got %v\n%s\nwant\n%s", err, lines(e), want)
	}
	e, err = Plan(w, []Change{Delete(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "ns", "web")})
	if err != nil || !strings.Contains(lines(e), "whether cluster m1 has it, and which version of it") || !strings.Contains(lines(e), "Deployment ns/web m1 delete") {
		t.Errorf("deleted: %s, %v", lines(e), err)
	}
}

// TestPlan_PolicyKeepsWhatItSelectsNoMore changes the labels of a template, by which its policy selects it: the policy keeps it until the
// policy changes.
func TestPlan_PolicyKeepsWhatItSelectsNoMore(t *testing.T) {
	w := applied(t).copied()
	byLabel := strings.Replace(webPolicy("m1, m2", ""), "kind: Deployment, name: web", "kind: Deployment, labelSelector: {matchLabels: {app: web}}", 1)
	labelled := strings.Replace(nginx, "name: web}", "name: web, labels: {app: web}}", 1)
	for _, text := range []string{labelled, byLabel} {
		if err := Store(object(t, text))(w); err != nil {
			t.Fatal(err)
		}
	}
	w = propagatedIn(t, w)
	e, err := Plan(w, []Change{Store(object(t, strings.NewReplacer("app: web}}\nspec", "app: other}}\nspec", "1.19.0", "1.20").Replace(labelled)))})
	want := "PropagationPolicy ns/web has Deployment ns/web and does not select it any more: its changes do not reach the clusters"
	if err != nil || lines(e) != "" || len(e.Notes) != 1 || e.Notes[0] != want {
		t.Errorf("got %v, %v\n%s", e.Notes, err, lines(e))
	}
}

func TestPlan_NamesWhatNoPolicySelects(t *testing.T) {
	var changes []Change
	for i := range 7 {
		changes = append(changes, Store(object(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: c%d}}", i))))
	}
	e, err := Plan(applied(t), changes)
	want := "no policy selects, and no cluster gets: ConfigMap ns/c0, ConfigMap ns/c1, ConfigMap ns/c2, ConfigMap ns/c3, ConfigMap ns/c4, 2 more"
	if err != nil || len(e.Notes) != 1 || e.Notes[0] != want || e.Changes() {
		t.Errorf("got %v, %v, want %s", e.Notes, err, want)
	}
}

func TestPlan_Touches(t *testing.T) {
	w := applied(t)
	w.Related = []*unstructured.Unstructured{
		object(t, "{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {namespace: ns, name: hpa}, spec: {scaleTargetRef: {kind: Deployment, name: web}}}"),
		object(t, "{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {namespace: ns, name: other}, spec: {scaleTargetRef: {kind: Deployment, name: other}}}"),
		object(t, "{apiVersion: search.karmada.io/v1alpha1, kind: ResourceRegistry, metadata: {name: all}, spec: {targetCluster: {clusterNames: [m1]}}}"),
	}
	w.Templates = append(w.Templates, object(t, "{apiVersion: v1, kind: Service, metadata: {namespace: ns, name: web}, spec: {selector: {app: web}}}"),
		object(t, "{apiVersion: v1, kind: Service, metadata: {namespace: ns, name: none}, spec: {selector: {app: none}}}"))
	e, err := Plan(w, []Change{Unjoin("m1")})
	if err != nil || len(e.Objects) != 1 {
		t.Fatal(err, lines(e))
	}
	if got, want := strings.Join(e.Objects[0].Touches, ", "), "FederatedHPA ns/hpa, Service ns/web"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := strings.Join(e.Notes, ", "), "ResourceRegistry all caches objects of cluster m1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestManifests_Secret applies a Secret again: nothing changes, and the shown values are masked.
func TestManifests_Secret(t *testing.T) {
	secret := "{apiVersion: v1, kind: Secret, metadata: {namespace: ns, name: s}, stringData: {a: hunter2}}"
	w := applied(t).copied()
	m := NewManifests(func(string) {})
	for _, text := range []string{secret, "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {namespace: ns, name: s}\n" +
		"spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}], placement: {clusterAffinity: {clusterNames: [m1]}}}"} {
		if err := m.Apply(object(t, text))(w); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range w.Clusters {
		c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "secrets", Kind: "Secret"}}})
	}
	w = propagatedIn(t, w)
	if e, err := Plan(w, []Change{m.Apply(object(t, secret))}); err != nil || lines(e) != "" {
		t.Errorf("applied again: %v\n%s", err, lines(e))
	}
	e, err := Plan(w, []Change{m.Apply(object(t, strings.Replace(secret, "hunter2", "hunter3", 1)))})
	if err != nil || lines(e) != "Secret ns/s m1 update 0->0 data.a" {
		t.Fatalf("%v\n%s", err, lines(e))
	}
	before, after, err := e.Objects[0].Clusters[0].Objects()
	if got := fmt.Sprint(Shown(after, before)["data"]); err != nil || got != "map[a:*** (another value of 12 characters)]" {
		t.Errorf("shown: %v, %v", got, err)
	}
}

// A policy that is applied as it is stays: controllers wait for another generation.
func TestApply_NothingNew(t *testing.T) {
	w := world(t).copied()
	apply := NewManifests(func(string) {}).Apply(object(t, replaceImage))
	if err := apply(w); err != nil {
		t.Fatal(err)
	}
	before := w.Overrides[0]
	if err := apply(w); err != nil || w.Overrides[0] != before {
		t.Errorf("%v: it was replaced", err)
	}
}

// TestManifests_OfASnapshot plans with what a snapshot has of a Secret that an override changes: nothing changes, and what cannot be known is
// named.
func TestManifests_OfASnapshot(t *testing.T) {
	secret := "{apiVersion: v1, kind: Secret, metadata: {namespace: ns, name: s}, data: {a: aHVudGVyMg==, b: eA==}}"
	overrides := func(replicas string) string {
		return "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {namespace: ns, name: s}\n" +
			"spec: {overrideRules: [{targetCluster: {clusterNames: [m1]}, overriders: {plaintext: [{path: /data/a, operator: replace, value: aHVudGVyMw==}]}}, " +
			"{targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{path: /spec/replicas, operator: add, value: " + replicas + "}]}}]}"
	}
	w := applied(t).copied()
	m := NewManifests(func(string) {})
	for _, text := range []string{secret, "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {namespace: ns, name: s}\n" +
		"spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}], placement: {clusterAffinity: {clusterNames: [m1]}}}"} {
		if err := m.Apply(object(t, text))(w); err != nil {
			t.Fatal(err)
		}
	}
	// The policy for Secrets is applied when the Deployment is there: it does not fit that.
	if err := m.Apply(object(t, strings.Replace(overrides("3"), "spec: {", "spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}], ", 1)))(w); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.Clusters {
		c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "secrets", Kind: "Secret"}}})
		c.Spec.ProxyURL, c.Spec.ProxyHeader = "http://user:hunter4@proxy", map[string]string{"Authorization": "hunter4"}
	}
	w = propagatedIn(t, w)
	var file bytes.Buffer
	if err := w.Write(&file); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"hunter", "aHVudGVyM"} {
		if strings.Contains(file.String(), value) {
			t.Errorf("the snapshot has %s", value)
		}
	}
	contents, err := snapshot.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	read := *w
	read.Contents = *contents
	for name, tc := range map[string]struct{ manifest, want, unknown string }{
		"the same policy": {strings.Replace(overrides("3"), "spec: {", "spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}], ", 1), "Secret ns/s unknown: whether its data changes in cluster m1: the snapshot has hashes of it", "whether its data changes in cluster m1: the snapshot has hashes of it"},
		"the same Secret": {secret, "Secret ns/s unknown: whether its data changes in cluster m1: the snapshot has hashes of it", "whether its data changes in cluster m1: the snapshot has hashes of it"},
		"a label":         {strings.Replace(secret, "name: s", "name: s, labels: {x: z}", 1), "Secret ns/s m1 update 0->0 metadata.labels.x\nSecret ns/s unknown: whether its data changes in cluster m1: the snapshot has hashes of it", "whether its data changes in cluster m1: the snapshot has hashes of it"},
		"a Deployment":    {strings.Replace(nginx, "1.19.0", "1.20", 1), "Deployment ns/web m1 update 2->2 spec.template.spec.containers\nDeployment ns/web m2 update 2->2 spec.template.spec.containers", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Plan(&read, []Change{m.Apply(object(t, tc.manifest))})
			if err != nil {
				t.Fatal(err)
			}
			var unknown []string
			for _, o := range e.Objects {
				unknown = append(unknown, o.Unknown...)
			}
			if lines(e) != tc.want || strings.Join(unknown, "\n") != tc.unknown {
				t.Errorf("got\n%s\nunknown: %v", lines(e), unknown)
			}
		})
	}
}
