package override

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

const clusterAdmin = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: owned},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: tenant, apiGroup: rbac.authorization.k8s.io}]}`

const settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {key: value}}`

func TestApply_IdentityIsFixed(t *testing.T) {
	for name, overriders := range map[string]string{
		"the whole object":       `plaintext: [{path: "", operator: replace, value: ` + clusterAdmin + `}]`,
		"apiVersion":             `plaintext: [{path: /apiVersion, operator: replace, value: v2}]`,
		"kind":                   `plaintext: [{path: /kind, operator: replace, value: Secret}]`,
		"kind taken away":        `plaintext: [{path: /kind, operator: remove}]`,
		"kind that is no string": `plaintext: [{path: /kind, operator: replace, value: {a: b}}]`,
		"metadata":               `plaintext: [{path: /metadata, operator: replace, value: {name: web, namespace: kube-system}}]`,
		"metadata taken away":    `plaintext: [{path: /metadata, operator: remove}]`,
		"metadata is a list":     `plaintext: [{path: /metadata, operator: replace, value: []}]`,
		"name":                   `plaintext: [{path: /metadata/name, operator: add, value: other}]`,
		"namespace":              `plaintext: [{path: /metadata/namespace, operator: replace, value: kube-system}]`,
		"no namespace":           `plaintext: [{path: /metadata/namespace, operator: remove}]`,
		"name as an image":       `imageOverrider: [{predicate: {path: /metadata/name}, component: Repository, operator: replace, value: other}]`,
		"namespace as an image":  `imageOverrider: [{predicate: {path: /metadata/namespace}, component: Repository, operator: replace, value: kube-system}]`,
		"apiVersion as an image": `imageOverrider: [{predicate: {path: /apiVersion}, component: Registry, operator: add, value: example.io}]`,
		"name blanked":           `fieldOverrider: [{fieldPath: /metadata/name}]`,
		"namespace blanked":      `fieldOverrider: [{fieldPath: /metadata/namespace}]`,
	} {
		for form, spec := range map[string]string{
			"rules": `overrideRules: [{overriders: {` + overriders + `}}]`, "deprecated": `overriders: {` + overriders + `}`,
		} {
			for _, policy := range []policyv1alpha1.OverridePolicyObject{op(t, "p", spec), cop(t, "p", spec)} {
				t.Run(fmt.Sprintf("%s, %s, %T", name, form, policy), func(t *testing.T) {
					got, _, err := Apply(object(t, settings), cluster("m1"), Policies{policy})
					if !errors.Is(err, ErrForbidden) || got != nil {
						t.Errorf("got %v, %v", got, err)
					}
					if failed, ok := errors.AsType[*Error](err); !ok || failed.Overrider == "" {
						t.Errorf("the error names no overrider: %v", err)
					}
				})
			}
		}
	}
}

// A namespaced policy is for whoever may write it, which need not be an
// administrator of the namespace.
func TestApply_RightsAreForClusterPolicies(t *testing.T) {
	const (
		binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: default},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: User, name: auditor, apiGroup: rbac.authorization.k8s.io}]}`
		quota = `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: default}, spec: {hard: {pods: "2"}}}`
		role  = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: default}}`
		slice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s, namespace: default, labels: {endpointslice.kubernetes.io/managed-by: endpointslice-controller.karmada.io}},
  addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}]}`
		endpoints = `{apiVersion: v1, kind: Endpoints, metadata: {name: e, namespace: default}, subsets: [{addresses: [{ip: 10.0.0.1}]}]}`
		network   = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: net, namespace: default}, spec: {podSelector: {}, policyTypes: [Ingress]}}`
	)
	for name, tc := range map[string]struct{ object, overriders string }{
		"the role of a binding":     {binding, `plaintext: [{path: /roleRef/name, operator: replace, value: cluster-admin}]`},
		"the subjects of a binding": {binding, `plaintext: [{path: /subjects/-, operator: add, value: {kind: User, name: tenant}}]`},
		"new rules of a role":       {role, `plaintext: [{path: /rules, operator: add, value: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}]`},
		"a name as an image":        {binding, `imageOverrider: [{predicate: {path: /roleRef/name}, component: Repository, operator: replace, value: cluster-admin}]`},
		"an address of a slice":     {slice, `plaintext: [{path: /endpoints/0/addresses/0, operator: replace, value: 10.9.9.9}]`},
		"the manager of a slice":    {slice, `labelsOverrider: [{operator: replace, value: {endpointslice.kubernetes.io/managed-by: mine}}]`},
		"an address of Endpoints":   {endpoints, `plaintext: [{path: /subsets/0/addresses/0/ip, operator: replace, value: 10.9.9.9}]`},
		"a network policy":          {network, `plaintext: [{path: /spec/podSelector, operator: replace, value: {matchLabels: {a: b}}}]`},
		"a quota":                   {quota, `plaintext: [{path: /spec/hard/pods, operator: replace, value: "1000"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := `overrideRules: [{overriders: {` + tc.overriders + `}}]`
			obj := object(t, tc.object)
			if got, applied, err := Apply(obj, cluster("m1"), Policies{op(t, "p", spec)}); err != nil || got != obj || applied.Namespaced != nil {
				t.Errorf("namespaced: got %v, %v", got, err)
			}
			got, _, err := Apply(obj, cluster("m1"), Policies{cop(t, "p", spec), op(t, "q", `overrideRules: [{overriders: {plaintext: [{path: /nope, operator: remove}]}}]`)})
			if err != nil || got == obj {
				t.Errorf("cluster-wide, beside a namespaced one that fails: got %v", err)
			}
		})
	}
}

// Errors end up in events, which more people may read than Secrets.
func TestApply_ErrorsShowNothingOfASecret(t *testing.T) {
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: default}, data: {key: TUFSS0VS, doc: "TUFSS0VS: [", bad: "TUFSS0VS TUFSS0VS"}}`
	for name, overriders := range map[string]string{
		"an image":        `imageOverrider: [{predicate: {path: /data/bad}, component: Tag, operator: remove}]`,
		"a YAML document": `fieldOverrider: [{fieldPath: /data/doc, yaml: [{subPath: /a, operator: remove}]}]`,
		"a JSON document": `fieldOverrider: [{fieldPath: /data/key, json: [{subPath: /a, operator: remove}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Apply(object(t, secret), cluster("m1"), Policies{op(t, "p", `overrideRules: [{overriders: {`+overriders+`}}]`)})
			if err == nil || strings.Contains(err.Error(), "TUFS") || !strings.Contains(err.Error(), "Overrider[0]") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// identityPaths are the fields that overriders are aimed at, with ways around.
func identityPaths() []string {
	return []string{
		"", "/", "/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace", "/metadata/name/", "//kind", "/kind/0",
		"/metadata/labels", "/metadata/generateName", "/data/key", "/metadata~1name", "/metadata/n~0ame", "/data", "/spec", "kind",
	}
}

func identityValues() []string {
	return []string{
		``, `null`, `""`, `"other"`, `"kube-system"`, `"Secret"`, `{}`, `[]`, `1`, `{"name":"web"}`, `{"name":"web","namespace":"default"}`,
		`{"name":"web","namespace":"kube-system"}`, `{"name":["web"],"namespace":"default"}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"default"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"web"}}`,
	}
}

func rawValue(text string) apiextensionsv1.JSON {
	if text == "" {
		return apiextensionsv1.JSON{}
	}
	return apiextensionsv1.JSON{Raw: []byte(text)}
}

// overriderOf returns overriders with one entry of a kind.
func overriderOf(kind int, path, operator, value string) policyv1alpha1.Overriders {
	op := policyv1alpha1.OverriderOperator(operator)
	pairs := map[string]string{path: value}
	switch kind % 9 {
	case 0:
		return policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: op, Value: rawValue(value)}}}
	case 1, 2, 3:
		return policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
			Predicate: &policyv1alpha1.ImagePredicate{Path: path}, Operator: op, Value: value,
			Component: []policyv1alpha1.ImageComponent{policyv1alpha1.Registry, policyv1alpha1.Repository, policyv1alpha1.Tag}[kind%9-1],
		}}}
	case 4:
		return policyv1alpha1.Overriders{CommandOverrider: []policyv1alpha1.CommandArgsOverrider{{ContainerName: path, Operator: op, Value: []string{value}}}}
	case 5:
		return policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: op, Value: pairs}}}
	case 6:
		return policyv1alpha1.Overriders{AnnotationsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: op, Value: pairs}}}
	case 7:
		return policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
			FieldPath: path, YAML: []policyv1alpha1.YAMLPatchOperation{{Operator: op, Value: rawValue(value)}},
		}}}
	}
	return policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
		FieldPath: path, JSON: []policyv1alpha1.JSONPatchOperation{{Operator: op, Value: rawValue(value)}},
	}}}
}

// wantIdentity fails unless the object of a successful Apply is still the same.
func wantIdentity(t *testing.T, before, got *unstructured.Unstructured, err error, policies Policies) {
	t.Helper()
	if err != nil {
		return
	}
	// What a member gets is what JSON says, not what the map holds.
	data, err := json.Marshal(got.Object)
	if err != nil {
		t.Fatal(err)
	}
	after := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &after.Object); err != nil {
		t.Fatal(err)
	}
	if IdentityOf(before) == IdentityOf(after) {
		return
	}
	text, _ := json.Marshal(policies) // for the message only
	t.Fatalf("%+v became %+v by %s", IdentityOf(before), IdentityOf(after), text)
}

func TestApply_NoOverriderChangesTheIdentity(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	paths, values, operators := identityPaths(), identityValues(), []string{"add", "remove", "replace", "move", ""}
	for range 20000 {
		var policies Policies
		for i := range 1 + rnd.IntN(3) {
			spec := policyv1alpha1.OverrideSpec{}
			for range 1 + rnd.IntN(3) {
				spec.OverrideRules = append(spec.OverrideRules, policyv1alpha1.RuleWithCluster{
					Overriders: overriderOf(rnd.IntN(9), pick(paths), pick(operators), pick(values)),
				})
			}
			if rnd.IntN(2) == 0 {
				p := &policyv1alpha1.OverridePolicy{Spec: spec}
				p.Namespace, p.Name = "default", fmt.Sprint(i)
				policies = append(policies, p)
				continue
			}
			p := &policyv1alpha1.ClusterOverridePolicy{Spec: spec}
			p.Name = fmt.Sprint(i)
			policies = append(policies, p)
		}
		before := object(t, settings)
		got, _, err := Apply(before, cluster("m1"), policies)
		wantIdentity(t, before, got, err, policies)
	}
}

// FuzzApply_Identity checks that no overrider changes which object it is.
func FuzzApply_Identity(f *testing.F) {
	for kind := range 9 {
		for _, path := range []string{"", "/kind", "/metadata/name", "/metadata/namespace"} {
			f.Add(kind, path, "replace", `"other"`)
			f.Add(kind, path, "add", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web"}}`)
		}
	}
	f.Fuzz(func(t *testing.T, kind int, path, operator, value string) {
		if kind < 0 || value != "" && !json.Valid([]byte(value)) {
			return
		}
		p := &policyv1alpha1.OverridePolicy{}
		p.Namespace, p.Name = "default", "p"
		p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: overriderOf(kind, path, operator, value)}}
		before := object(t, settings)
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*(len(path)+len(operator)+len(value))), func() {
			got, _, err := Apply(before, cluster("m1"), Policies{p})
			wantIdentity(t, before, got, err, Policies{p})
		})
	})
}
