package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

func TestRetainUnset(t *testing.T) {
	const webhooks = "apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration"
	for name, tc := range map[string]struct{ kind, desired, observed, want string }{
		"the node ports of a Service": {
			"apiVersion: v1, kind: Service", `spec: {ports: [{name: b, port: 81}, {name: a, port: 80}, {name: c, port: 82, nodePort: 1}, {port: 83}, {name: new, port: 84}]}`,
			`spec: {ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{name: a, port: 80, nodePort: 30000}, {name: b, port: 79, nodePort: 30001}, {name: c, port: 82, nodePort: 30002}, {name: d, port: 83, nodePort: 30003}]}`,
			`spec: {ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{name: b, port: 81, nodePort: 30001}, {name: a, port: 80, nodePort: 30000}, {name: c, port: 82, nodePort: 1}, {port: 83, nodePort: 30003}, {name: new, port: 84}]}`,
		},
		"the class of a claim": {
			"apiVersion: v1, kind: PersistentVolumeClaim", `spec: {resources: {}}`, `spec: {storageClassName: standard, volumeMode: Filesystem, accessModes: [a]}`,
			`spec: {resources: {}, storageClassName: standard, volumeMode: Filesystem}`,
		},
		"no class is a class": {
			"apiVersion: v1, kind: PersistentVolumeClaim", `spec: {storageClassName: ""}`, `spec: {storageClassName: standard}`, `spec: {storageClassName: ""}`,
		},
		"certificates that the template leaves out": {
			webhooks, `webhooks: [{name: a, clientConfig: {}}, {name: b, clientConfig: {caBundle: mine}}, {name: c, clientConfig: {caBundle: Cg==}}, {name: d}]`,
			`webhooks: [{name: d, clientConfig: {caBundle: d}}, {name: c, clientConfig: {caBundle: c}}, {name: b, clientConfig: {caBundle: b}}, {name: a, clientConfig: {caBundle: a}}]`,
			`webhooks: [{name: a, clientConfig: {caBundle: a}}, {name: b, clientConfig: {caBundle: mine}}, {name: c, clientConfig: {caBundle: c}}, {name: d}]`,
		},
		"an APIService without verification has no certificate": {
			"apiVersion: apiregistration.k8s.io/v1, kind: APIService", `spec: {insecureSkipTLSVerify: true}`, `spec: {caBundle: c}`, `spec: {insecureSkipTLSVerify: true}`,
		},
		"an APIService": {"apiVersion: apiregistration.k8s.io/v1, kind: APIService", `spec: {group: g}`, `spec: {caBundle: c}`, `spec: {group: g, caBundle: c}`},
		"a conversion": {
			"apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition", `spec: {conversion: {webhook: {clientConfig: {}}}}`,
			`spec: {conversion: {webhook: {clientConfig: {caBundle: c}}}}`, `spec: {conversion: {webhook: {clientConfig: {caBundle: c}}}}`,
		},
		"no conversion in the template": {
			"apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition", `spec: {conversion: {strategy: None}}`,
			`spec: {conversion: {webhook: {clientConfig: {caBundle: c}}}}`, `spec: {conversion: {strategy: None}}`,
		},
		"the rules of an aggregated role": {
			"apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole", `{aggregationRule: {a: b}, rules: []}`, `rules: [{verbs: [get]}]`, `{aggregationRule: {a: b}, rules: [{verbs: [get]}]}`,
		},
		"the rules of another role": {"apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole", `rules: []`, `rules: [{verbs: [get]}]`, `rules: []`},
		"a Pod": {
			"apiVersion: v1, kind: Pod",
			`spec: {nodeSelector: {mine: a}, tolerations: [{key: b}], containers: [{name: a, image: i, resources: {requests: {cpu: 1}}, env: [{name: E, value: e}]}]}`,
			`spec: {priority: 0, nodeSelector: {zone: z}, tolerations: [{key: a}, {key: b}], volumes: [{name: token}], containers: [
  {name: proxy, image: p}, {name: a, image: old, securityContext: {privileged: false}, env: [{name: E, value: x}, {name: F}], resources: {requests: {cpu: 2, memory: 3}, limits: {cpu: 4}}}]}`,
			`spec: {priority: 0, nodeSelector: {mine: a, zone: z}, tolerations: [{key: b}, {key: a}], volumes: [{name: token}], containers: [
  {name: proxy, image: p}, {name: a, image: i, securityContext: {privileged: false}, env: [{name: E, value: e}, {name: F}], resources: {requests: {cpu: 1, memory: 3}, limits: {cpu: 4}}}]}`,
		},
		"a member that answers anything": {
			"apiVersion: v1, kind: Pod", `spec: {containers: [{name: a}], nodeSelector: {a: b}}`, `spec: {containers: [{name: [a]}, 7, {name: {a: b}}], nodeSelector: 3, tolerations: x, volumes: {a: b}}`,
			`spec: {containers: [{name: a}], nodeSelector: {a: b}}`,
		},
		"a restart in the member": {
			"apiVersion: apps/v1, kind: Deployment", `spec: {template: {spec: {}}}`, `spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T00:00:00Z"}}}}`,
			`spec: {template: {spec: {}, metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T00:00:00Z"}}}}`,
		},
		"a later restart in the template": {
			"apiVersion: apps/v1, kind: DaemonSet", `spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T02:00:00+01:00"}}}}`,
			`spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T00:30:00Z"}}}}`,
			`spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T02:00:00+01:00"}}}}`,
		},
		"another kind": {"apiVersion: example.io/v1, kind: Service", `spec: {}`, `spec: {ipFamilies: [a]}`, `spec: {}`},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(fields string) *unstructured.Unstructured {
				obj := &unstructured.Unstructured{}
				if fields[0] != '{' {
					fields = "{" + fields + "}"
				}
				if err := yaml.Unmarshal([]byte("{"+tc.kind+", "+fields[1:]), &obj.Object); err != nil {
					t.Fatal(err)
				}
				return obj
			}
			desired, observed := parse(tc.desired), parse(tc.observed)
			before := observed.DeepCopy()
			RetainUnset(desired, observed)
			if diff := cmp.Diff(parse(tc.want).Object, desired.Object); diff != "" {
				t.Error(diff)
			}
			if !cmp.Equal(before.Object, observed.Object) {
				t.Error("the observed object was changed")
			}
			again := desired.DeepCopy()
			if RetainUnset(again, observed); !cmp.Equal(again.Object, desired.Object) {
				t.Error("the second time differs")
			}
		})
	}
}

// A rule for registrations keeps certificates that the member has, and changes nothing else: the endpoint of a webhook least of all.
func TestRetain_KeepsCertificatesOnly(t *testing.T) {
	layer := NewDeclarative(NewLuaEngine(lua.DefaultLimits()))
	layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{{Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
		Target: configv1alpha1.CustomizationTarget{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		Customizations: configv1alpha1.CustomizationRules{Retention: &configv1alpha1.LocalValueRetention{LuaScript: `
function Retain(desired, observed)
  desired.webhooks[1].clientConfig.caBundle = observed.webhooks[1].clientConfig.caBundle
  desired.webhooks[1].clientConfig.url = "https://elsewhere"
  desired.webhooks[2].clientConfig.caBundle = "of the rule"
  desired.metadata.labels = {a = "b"}
  return desired
end`}},
	}}})
	hooks := func(first, second string) *unstructured.Unstructured {
		hook := func(name, ca string) any {
			return map[string]any{"name": name, "clientConfig": map[string]any{"caBundle": ca, "url": "https://here"}}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "x"},
			"webhooks": []any{hook("a", first), hook("b", second)},
		}}
	}
	got, err := New(WithLayer(layer)).Retain(hooks("template", "template"), hooks("member", "member"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hooks("member", "template").Object, got.Object); diff != "" {
		t.Error(diff)
	}
}

func TestAggregate_ClaimIsBoundWhenAllMembersAre(t *testing.T) {
	claim := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": "a"}}}
	bound, pending, none := `{"phase": "Bound"}`, `{"phase": "Pending"}`, ""
	for _, tc := range []struct {
		members []string
		want    string
	}{
		{nil, "Pending"}, {[]string{bound, none}, "Pending"}, {[]string{none, bound}, "Pending"}, {[]string{bound, bound}, "Bound"},
		{[]string{pending, bound}, "Pending"}, {[]string{`{"phase": "Lost"}`, none}, "Lost"},
	} {
		var items []workv1alpha2.AggregatedStatusItem
		for _, member := range tc.members {
			item := workv1alpha2.AggregatedStatusItem{}
			if member != none {
				item.Status = &runtime.RawExtension{Raw: []byte(member)}
			}
			items = append(items, item)
		}
		got, err := New().AggregateStatus(claim, items)
		if err != nil {
			t.Fatal(err)
		}
		if phase, _, _ := unstructured.NestedString(got.Object, "status", "phase"); phase != tc.want {
			t.Errorf("%v: %q, want %q", tc.members, phase, tc.want)
		}
	}
}
