package manifest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

const secretMarker = "hunter2"

func stars([]string, any) string { return manifest.Mask }

// TestMasked masks the marker in each kind and field. What stays is checked, too.
func TestMasked(t *testing.T) {
	policy := func(kind, selectors, overriders string) string {
		return "apiVersion: policy.karmada.io/v1alpha1\nkind: " + kind + "\nspec: {" + selectors + overriders + "}"
	}
	const (
		plaintext = "plaintext: [{path: /data/a, operator: add, value: hunter2}, {path: /data, operator: replace, value: {operator: hunter2, path: [hunter2]}}, " +
			"{path: '', operator: replace, value: {data: {b: hunter2}}}, {path: /metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration, operator: add, value: hunter2}, " +
			"{path: /spec/replicas, operator: replace, value: 5}]"
		fields  = "fieldOverrider: [{fieldPath: /data/f, json: [{subPath: /x, operator: add, value: hunter2}], yaml: [{subPath: /x, operator: add, value: hunter2}]}]"
		secrets = "resourceSelectors: [{apiVersion: v1, kind: Secret}], "
	)
	rules := "overrideRules: [{overriders: {" + plaintext + ", " + fields + "}}, {overriders: {" + plaintext + "}}]"
	for name, tc := range map[string]struct {
		text string
		// keeps are what stays.
		keeps []string
		// marked is set if nothing in it is secret.
		marked bool
	}{
		"Secret":                    {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: hunter2}\nstringData: {b: hunter2, fieldPath: hunter2}", []string{`"a":"***"`, `"b":"***"`}, false},
		"Secret of another group":   {"apiVersion: x.io/v1\nkind: Secret\ndata: {a: hunter2}", []string{`"a":"***"`}, false},
		"a Secret that was applied": {"apiVersion: v1\nkind: Secret\nmetadata: {annotations: {a: b, kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"a\":\"hunter2\"}}'}}", []string{`"a":"b"`, `{\"a\":\"***\"}`}, false},
		"ConfigMap":                 {"apiVersion: v1\nkind: ConfigMap\ndata: {a: hunter2}", nil, true},
		"Cluster": {
			"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nspec: {syncMode: Push, proxyURL: 'http://user:hunter2@proxy:3128/p?q=r', proxyHeader: {addresses: hunter2, proxyURL: hunter2}}",
			[]string{`"http://***@proxy:3128/p?q=r"`, `"addresses":"***"`, `"Push"`}, false,
		},
		"a Cluster with a token":       {"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nspec: {proxyURL: 'http://hunter2@proxy'}", []string{`"http://***@proxy"`}, false},
		"a Cluster with a wrong URL":   {"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nspec: {proxyURL: 'http://a:hunter2@%zz'}", []string{`"***"`}, false},
		"a Cluster without a password": {"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nspec: {proxyURL: 'http://proxy:3128'}", []string{`"http://proxy:3128"`}, false},
		"a Cluster that was applied": {
			"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"spec\":{\"proxyHeader\":{\"a\":\"hunter2\"}}}'}}",
			[]string{`{\"a\":\"***\"}`}, false,
		},
		"an annotation that is no JSON": {"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}", nil, false},
		"OverridePolicy for Secrets":    {policy("OverridePolicy", secrets, rules), []string{`"/data/a"`, `"value":5`, `"operator":"***"`, `"subPath":"/x"`}, false},
		"OverridePolicy for all":        {policy("OverridePolicy", "", rules), []string{`"value":5`}, false},
		"OverridePolicy, deprecated":    {policy("OverridePolicy", secrets, "overriders: {"+plaintext+"}"), []string{`"value":5`}, false},
		"ClusterOverridePolicy":         {policy("ClusterOverridePolicy", "resourceSelectors: [{kind: Deployment}, {kind: Secret}], ", rules), []string{`"value":5`}, false},
		"OverridePolicy for others":     {policy("OverridePolicy", "resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], ", rules), nil, true},
		"Work":                          {"apiVersion: work.karmada.io/v1alpha1\nkind: Work\nmetadata: {annotations: {a: b, policy.karmada.io/applied-overrides: hunter2, policy.karmada.io/applied-cluster-overrides: hunter2}}", []string{`"a":"b"`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tc.text), &u.Object); err != nil {
				t.Fatal(err)
			}
			before := u.DeepCopy()
			text, err := json.Marshal(manifest.Masked(u, stars).Object)
			if err != nil || strings.Contains(string(text), secretMarker) != tc.marked {
				t.Errorf("%s, %v", text, err)
			}
			for _, want := range tc.keeps {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s is missing: %s", want, text)
				}
			}
			if !reflect.DeepEqual(u, before) {
				t.Errorf("it was changed: %v", u)
			}
		})
	}
}

// suspicious are names of fields that could have secret values.
var suspicious = regexp.MustCompile(`(?i)token|passw|secret|credential|header|proxy|auth|apikey|privatekey|address|url|endpoint|value|raw|config`)

// harmless are fields with such names that are not secret, by a part of their path, with the reason.
var harmless = map[string]string{
	"/tls/secretName":                 "the name of a Secret",
	"/statusValues":                   "states of conditions",
	"/secretRef/":                     "the name of a Secret",
	"/impersonatorSecretRef/":         "the name of a Secret",
	"/apiEndpoint":                    "validation permits no user",
	"/clientConfig/":                  "the service and the authority of a webhook; validation permits no user",
	"/key":                            "keys of labels and taints",
	"/taints/value":                   "a taint",
	"/tolerations/":                   "taints",
	"/matchExpressions/values":        "a selector",
	"/clusterTolerations/":            "taints",
	"/metric/":                        "a selector",
	"/imageOverrider/value":           "a part of an image reference",
	"/labelsOverrider/value":          "a label",
	"/annotationsOverrider/value":     "an annotation, which is not secret in a Secret either",
	"/commandOverrider/value":         "Secrets have no containers",
	"/argsOverrider/value":            "Secrets have no containers",
	"/proxyURL":                       "masked but for the user",
	"/openSearch/addresses":           "validation permits no user",
	"/replicaRequirements/nodeClaim/": "selectors and taints",
}

// TestMasked_ClassifiesFields sets every text of our kinds: what has a suspicious name is masked, or known to be harmless.
func TestMasked_ClassifiesFields(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1alpha1.AddToScheme, autoscalingv1alpha1.AddToScheme, clusterv1alpha1.AddToScheme, configv1alpha1.AddToScheme, networkingv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme, remedyv1alpha1.AddToScheme, searchv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	checked, used := 0, map[string]bool{}
	for kind := range scheme.AllKnownTypes() {
		object, err := scheme.New(kind)
		if _, isObject := object.(metav1.Object); err != nil || !isObject || !strings.HasSuffix(kind.Group, "karmada.io") {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		for _, top := range []string{"Spec", "Status", "Webhooks"} {
			if field := reflect.ValueOf(object).Elem().FieldByName(top); field.IsValid() {
				u.Object[strings.ToLower(top)] = filled(field.Type(), 0)
			}
		}
		// The selectors would select nothing.
		if spec, ok := u.Object["spec"].(map[string]any); ok && strings.HasSuffix(kind.Kind, "OverridePolicy") {
			delete(spec, "resourceSelectors")
		}
		setPointers(u.Object)
		u.SetGroupVersionKind(kind)
		for _, path := range marked(kind.Kind, manifest.Masked(u, stars).Object) {
			checked++
			names := strings.Split(path, "/")
			if !suspicious.MatchString(strings.Join(names[max(0, len(names)-2):], "/")) { // the last may be a key of a map
				continue
			}
			known := false
			for part := range harmless {
				if strings.Contains(path, part) {
					known, used[part] = true, true
				}
			}
			if !known {
				t.Errorf("%s: classify it: secretFields of this package, or harmless", path)
			}
		}
	}
	for part := range harmless {
		if !used[part] {
			t.Errorf("%s: no field", part)
		}
	}
	if checked < 100 {
		t.Errorf("only %d fields", checked)
	}
}

// filled returns a value of a type with the marker in every text, as the type's JSON has it.
func filled(of reflect.Type, depth int) any {
	if depth > 12 {
		return nil
	}
	switch of.String() {
	case "v1.JSON", "runtime.RawExtension":
		return secretMarker
	case "v1.Time", "v1.Duration", "resource.Quantity", "intstr.IntOrString", "v1.MicroTime":
		return nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		return filled(of.Elem(), depth+1)
	case reflect.String:
		return secretMarker
	case reflect.Slice:
		return []any{filled(of.Elem(), depth+1)}
	case reflect.Map:
		return map[string]any{"key": filled(of.Elem(), depth+1)}
	case reflect.Struct:
		out := map[string]any{}
		for field := range of.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			value := filled(field.Type, depth+1)
			if inner, ok := value.(map[string]any); ok && strings.Contains(options, "inline") {
				maps.Copy(out, inner)
				continue
			}
			out[name] = value
		}
		return out
	}
	return nil
}

// setPointers makes the paths of overriders those of data.
func setPointers(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if (name == "path" || name == "fieldPath") && v["operator"] != nil || name == "fieldPath" {
				v[name] = "/data/a"
			}
			setPointers(child)
		}
	case []any:
		for _, child := range v {
			setPointers(child)
		}
	}
}

// marked returns the paths of the values with the marker.
func marked(path string, value any) (out []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			out = append(out, marked(path+"/"+name, child)...)
		}
	case []any:
		for _, child := range v {
			out = append(out, marked(path, child)...)
		}
	case string:
		if strings.Contains(fmt.Sprint(v), secretMarker) {
			return []string{path}
		}
	}
	return out
}
