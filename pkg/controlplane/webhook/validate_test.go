package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

func policyText(labels, spec string) string {
	return `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: a, namespace: ns, labels: {` + labels + `}}, spec: {resourceSelectors: [], placement: {}, ` + spec + `}}`
}

func TestValidatePolicy(t *testing.T) {
	const path, id = "/validate-propagationpolicy", "propagationpolicy.karmada.io/permanent-id"
	for _, tc := range []struct {
		name, obj, old, want string
	}{
		{name: "with an id", obj: policyText(id+": x", "")},
		{name: "without an id", obj: policyText("", ""), want: "label " + id + " is required, it should be set by the mutating admission webhook during creation"},
		{name: "the id stays", obj: policyText(id+": z", ""), old: policyText(id+": x", ""), want: "label " + id + " is immutable, it can only be set by the system during creation"},
		{name: "the id is not added", obj: policyText(id+": z", ""), old: policyText("", ""), want: "label " + id + " is immutable, it can only be set by the system during creation"},
		{name: "the scheduler stays", obj: policyText("", "schedulerName: b"), old: policyText("", "schedulerName: a"), want: "the schedulerName should not be updated"},
		{
			name: "several problems at once", obj: policyText(id+": x", "failover: {application: {decisionConditions: {tolerationSeconds: -1}}}"),
			want: "[spec.propagateDeps: Invalid value: false: application failover is set, propagateDeps must be true, spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: -1: must be greater than or equal to 0]",
		},
		{
			name: "application failover without toleration is no panic", obj: policyText(id+": x", "propagateDeps: true, failover: {application: {decisionConditions: {}}}"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := question{path: path, object: tc.obj, old: tc.old}
			if tc.old != "" {
				q.operation = admissionv1.Update
			}
			resp := ask(t, deps(), q)
			if tc.want != "" {
				wantRefused(t, resp, 403, tc.want)
			} else if !resp.Allowed {
				t.Errorf("refused: %s", resp.Result.Message)
			}
		})
	}
}

func TestValidateBinding(t *testing.T) {
	binding := func(annotation, components string) string {
		return `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, annotations: {` + annotation + `}}, spec: {components: [` + components + `]}}`
	}
	const path, dependencies = "/validate-resourcebinding", "resourcebinding.karmada.io/dependencies: "
	for _, ok := range []string{binding("", ""), binding(dependencies+`'[{"apiVersion":"v1","kind":"A"}]'`, ""), binding("", "{name: a, replicas: 1}, {name: a, replicas: 1}")} {
		if resp := ask(t, deps(), question{path: path, object: ok}); !resp.Allowed {
			t.Errorf("%s: %s", ok, resp.Result.Message)
		}
	}
	wantRefused(t, ask(t, deps(), question{path: path, object: binding(dependencies+"not json", "")}), 403,
		`metadata.annotations.resourcebinding.karmada.io/dependencies: Invalid value: "not json": annotation value must be a valid JSON`)
	gated := deps()
	gated.Components = true
	wantRefused(t, ask(t, gated, question{path: path, object: binding("", `{name: a, replicas: 1}, {name: a, replicas: 1}, {name: "", replicas: 1}`)}), 403,
		`[spec.components[1].name: Invalid value: "a": component names must be unique, spec.components[2].name: Invalid value: "": component names must be non-empty]`)
	wantRefused(t, ask(t, deps(), question{path: path, object: `{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding}`}), 400,
		"unable to decode work.karmada.io/v1alpha1, Kind=ResourceBinding into *v1alpha2.ResourceBinding")
}

func TestProtect(t *testing.T) {
	const path = "/validate-resourcedeletionprotection"
	object := func(value string) string {
		return `{apiVersion: v1, kind: Anything, metadata: {name: a, labels: {resourcetemplate.karmada.io/deletion-protected: ` + value + `}}}`
	}
	wantRefused(t, ask(t, deps(), question{path: path, operation: admissionv1.Delete, old: object("Always")}), 403,
		"This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected")
	for _, q := range []question{
		{path: path, operation: admissionv1.Delete, old: object("always")},
		{path: path, operation: admissionv1.Update, object: object("Always"), old: object("Always")},
	} {
		if resp := ask(t, deps(), q); !resp.Allowed {
			t.Errorf("%+v: %s", q, resp.Result.Message)
		}
	}
}

func customization(name, kind string, rules configv1alpha1.CustomizationRules) *configv1alpha1.ResourceInterpreterCustomization {
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	c.APIVersion, c.Kind = "config.karmada.io/v1alpha1", "ResourceInterpreterCustomization"
	c.Name = name
	c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.io/v1", Kind: kind}
	c.Spec.Customizations = rules
	return c
}

func TestValidateCustomization(t *testing.T) {
	health := configv1alpha1.CustomizationRules{HealthInterpretation: &configv1alpha1.HealthInterpretation{LuaScript: "function InterpretHealth(o) return true end"}}
	broken := configv1alpha1.CustomizationRules{HealthInterpretation: &configv1alpha1.HealthInterpretation{LuaScript: "x ="}}
	needs := configv1alpha1.CustomizationRules{DependencyInterpretation: &configv1alpha1.DependencyInterpretation{LuaScript: "function GetDependencies(o) return {} end"}}
	existing := []client.Object{customization("a", "Foo", health), customization("b", "Foo", needs)}
	for _, tc := range []struct {
		name string
		obj  *configv1alpha1.ResourceInterpreterCustomization
		want string
	}{
		{name: "another kind", obj: customization("c", "Bar", health)},
		{name: "the same object", obj: customization("a", "Foo", health)},
		{name: "dependencies may come from several", obj: customization("c", "Foo", needs)},
		{name: "taken", obj: customization("c", "Foo", health), want: "conflicting with InterpreterOperation(InterpretHealth) of existing ResourceInterpreterCustomization(a)"},
		{name: "no Lua", obj: customization("c", "Bar", broken), want: "InterpreterOperation(InterpretHealth) Lua script error: <string> at EOF:   syntax error\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, err := json.Marshal(tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			resp := ask(t, deps(existing...), question{path: "/validate-resourceinterpretercustomization", object: string(text)})
			if tc.want != "" {
				wantRefused(t, resp, 403, tc.want)
			} else if !resp.Allowed {
				t.Errorf("refused: %s", resp.Result.Message)
			}
		})
	}
}

func TestValidateTaintPolicy(t *testing.T) {
	q := question{path: "/validate-clustertaintpolicy", object: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, metadata: {name: a}, spec: {taints: [{key: a, effect: NoExecute}, {key: a, effect: NoExecute}]}}`}
	allowed := deps()
	allowed.AllowNoExecute = true
	wantRefused(t, ask(t, allowed, q), 403, `spec.taints[1]: Duplicate value: "Duplicate taint with the same key(a) and effect(NoExecute) is not allowed"`)
	if resp := ask(t, deps(), q); resp.Allowed || !strings.HasPrefix(resp.Result.Message, "[spec.taints[0]: Forbidden: Configuring taint with NoExecute effect is not allowed") {
		t.Errorf("%+v", resp.Result)
	}
}

// Every webhook that an installer registers must be served, or the API server
// refuses the objects.
func TestHandlers_ServeWhatIsRegistered(t *testing.T) {
	handlers, err := Handlers(deps())
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{
		"/convert": true, "/readyz/": true,
		"/validate-clustertaintpolicy": true, // registered by Karmada's plain manifests only
	}
	for _, w := range components.MutatingWebhooks("", nil).Webhooks {
		served[*w.ClientConfig.URL] = true
	}
	for _, w := range components.ValidatingWebhooks("", nil).Webhooks {
		served[*w.ClientConfig.URL] = true
	}
	for path := range served {
		if handlers[path] == nil {
			t.Errorf("%s is registered but not served", path)
		}
	}
	for path := range handlers {
		if !served[path] {
			t.Errorf("%s is served but not registered", path)
		}
	}
}

func TestHandlers_BadRequests(t *testing.T) {
	handlers, err := Handlers(deps())
	if err != nil {
		t.Fatal(err)
	}
	handler := handlers["/mutate-work"]
	for _, tc := range []struct {
		name, contentType string
		body              []byte
		code              int32
		message           string
	}{
		{"content type", "application/json; charset=utf-8", []byte("{}"), 400, "contentType=application/json; charset=utf-8, expected application/json"},
		{"size", "application/json", make([]byte, 7<<20), 413, "request entity is too large; limit is 7340032 bytes"},
		{"nothing", "application/json", nil, 400, ""},
	} {
		recorder := post(t, handler, "/mutate-work", tc.contentType, tc.body)
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
			t.Fatal(err)
		}
		if r := review.Response.Result; r.Code != tc.code || tc.message != "" && r.Message != tc.message {
			t.Errorf("%s: %d %q", tc.name, r.Code, r.Message)
		}
	}
}

func TestVerdict(t *testing.T) {
	check := newValidator(policyKind("PropagationPolicy"), func(context.Context, *admission.Request, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata) error {
		return failure{errors.New("the server is away")}
	})
	req := admission.Request{}
	req.Object.Raw = []byte(`{"apiVersion":"policy.karmada.io/v1alpha1","kind":"PropagationPolicy"}`)
	if resp := check.Handle(t.Context(), req); resp.Result.Code != http.StatusInternalServerError || resp.Result.Message != "the server is away" {
		t.Errorf("%+v", resp.Result)
	}
}

func TestValidate_Warns(t *testing.T) {
	const m2 = `clusterNames[1]: no cluster "m2" has joined`
	for _, tc := range []struct {
		path, apiVersion, kind, spec string
		want                         []string
	}{
		{"/validate-propagationpolicy", "policy", "PropagationPolicy",
			"spec: {resourceSelectors: [{apiVersion: v1, kind: A, namespace: default}], placement: {clusterAffinity: {clusterNames: [m1, m2]}}}", []string{"spec.placement.clusterAffinity." + m2}},
		{"/validate-clusterpropagationpolicy", "policy", "ClusterPropagationPolicy",
			"spec: {resourceSelectors: [{apiVersion: v1, kind: A}], placement: {clusterAffinity: {clusterNames: [m1, m2]}}}", []string{"spec.placement.clusterAffinity." + m2}},
		{"/validate-overridepolicy", "policy", "OverridePolicy",
			"spec: {overrideRules: [{targetCluster: {clusterNames: [m1, m2]}, overriders: {}}]}", []string{"spec.overrideRules[0].targetCluster." + m2}},
		{"/validate-clusteroverridepolicy", "policy", "ClusterOverridePolicy",
			"spec: {overrideRules: [{targetCluster: {clusterNames: [m1, m2]}, overriders: {}}]}", []string{"spec.overrideRules[0].targetCluster." + m2}},
		{"/validate-clustertaintpolicy", "policy", "ClusterTaintPolicy",
			"spec: {targetClusters: {clusterNames: [m1, m2]}, taints: [{key: a, effect: NoSchedule}]}", []string{"spec.targetClusters." + m2}},
		{"/validate-resourceinterpreterwebhookconfiguration", "config", "ResourceInterpreterWebhookConfiguration",
			`webhooks: [{name: a.example.com, clientConfig: {url: "https://a.example.com", caBundle: YQ==}, interpreterContextVersions: [v1alpha1],
				rules: [{operations: ["*"], apiGroups: [a], apiVersions: [v1], kinds: [A]}]}]`, []string{"webhooks[0].clientConfig.caBundle: it has no certificate: all calls fail"}},
		{"/validate-multiclusterservice", "networking", "MultiClusterService",
			"spec: {types: [CrossCluster], range: {clusterNames: [m1]}, serviceProvisionClusters: [m1], serviceConsumptionClusters: [m1]}", []string{
				"spec.range has no effect: use spec.providerClusters",
				"spec.serviceProvisionClusters has no effect: use spec.providerClusters",
				"spec.serviceConsumptionClusters has no effect: use spec.consumerClusters",
			}},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			d := deps()
			d.Clusters = func(context.Context) ([]string, bool) { return []string{"m1"}, true }
			q := question{path: tc.path, object: "{apiVersion: " + tc.apiVersion + ".karmada.io/v1alpha1, kind: " + tc.kind + `, metadata: {name: p, namespace: default,
				labels: {propagationpolicy.karmada.io/permanent-id: x, clusterpropagationpolicy.karmada.io/permanent-id: x}}, ` + tc.spec + "}"}
			resp := ask(t, d, q)
			if diff := cmp.Diff(tc.want, resp.Warnings); !resp.Allowed || diff != "" {
				t.Errorf("%v: %s", resp.Result, diff)
			}
			d.Clusters = func(context.Context) ([]string, bool) { return nil, false }
			if resp := ask(t, d, q); strings.Contains(tc.want[0], m2) && len(resp.Warnings) > 0 {
				t.Errorf("warnings without knowledge: %q", resp.Warnings)
			}
		})
	}
}

func TestResourceBinding_StaysInItsNamespace(t *testing.T) {
	const (
		kind    = "apiVersion: work.karmada.io/v1alpha2\nkind: ResourceBinding\n"
		own     = kind + "metadata: {name: a, namespace: team, labels: {resourcebinding.karmada.io/permanent-id: x}}\nspec: {resource: {apiVersion: v1, kind: Secret, namespace: team, name: s}}\n"
		none    = kind + "metadata: {name: a, namespace: team, labels: {resourcebinding.karmada.io/permanent-id: x}}\nspec: {resource: {apiVersion: v1, kind: Secret, name: s}}\n"
		foreign = kind + "metadata: {name: a, namespace: team, labels: {resourcebinding.karmada.io/permanent-id: x}}\nspec: {resource: {apiVersion: v1, kind: Secret, namespace: karmada-cluster, name: s}}\n"
		renamed = kind + "metadata: {name: a, namespace: team, labels: {resourcebinding.karmada.io/permanent-id: x}}\nspec: {resource: {apiVersion: v1, kind: Secret, namespace: karmada-cluster, name: t}}\n"
		otherID = kind + "metadata: {name: a, namespace: team, labels: {resourcebinding.karmada.io/permanent-id: other}}\nspec: {resource: {apiVersion: v1, kind: Secret, namespace: team, name: s}}\n"
		noID    = kind + "metadata: {name: a, namespace: team}\nspec: {resource: {apiVersion: v1, kind: Secret, namespace: team, name: s}}\n"
	)
	const namespace = `spec.resource.namespace: Forbidden: "karmada-cluster" is not the namespace of the binding, "team"; a ResourceBinding delivers objects of its own namespace only`
	const id = "metadata.labels[resourcebinding.karmada.io/permanent-id]: Forbidden: the permanent id of a binding cannot be changed or removed"
	for name, tc := range map[string]struct{ object, old, want string }{
		"of its own namespace":                    {object: own},
		"without a namespace":                     {object: none},
		"of another namespace":                    {object: foreign, want: namespace},
		"changed to another namespace":            {object: foreign, old: own, want: namespace},
		"filled with another namespace":           {object: foreign, old: none, want: namespace},
		"a stored one may stay":                   {object: foreign, old: foreign},
		"a stored one must not turn to another":   {object: renamed, old: foreign, want: namespace},
		"a stored one is mended":                  {object: own, old: foreign},
		"the id changes":                          {object: otherID, old: own, want: id},
		"the id goes":                             {object: noID, old: own, want: id},
		"a stored one without an id gets its own": {object: own, old: noID},
	} {
		t.Run(name, func(t *testing.T) {
			q := question{path: "/validate-resourcebinding", namespace: "team", object: tc.object, old: tc.old}
			if tc.old != "" {
				q.operation = admissionv1.Update
			}
			resp := ask(t, deps(), q)
			if tc.want != "" {
				wantRefused(t, resp, 403, tc.want)
			} else if !resp.Allowed {
				t.Errorf("refused: %s", resp.Result.Message)
			}
		})
	}
}
