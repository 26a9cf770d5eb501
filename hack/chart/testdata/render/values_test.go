//go:build helm

package render

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"sigs.k8s.io/yaml"
)

// defaults are the values of values.yaml.
func defaults(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestDefaults_AreThoseOfTheValues(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/defaults.json")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(defaults(t), got); diff != "" {
		t.Errorf("make generate (-values.yaml +defaults.json):\n%s", diff)
	}
}

// branches are the paths of all values, and of the maps around them.
func branches(prefix string, values map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := strings.TrimPrefix(prefix+"."+key, ".")
		out = append(out, path)
		if m, ok := values[key].(map[string]any); ok {
			out = append(out, branches(path, m)...)
		}
	}
	return out
}

// null in the place of a value or of a branch is as if it were not there.
func TestValues_NullMeansTheDefault(t *testing.T) {
	t.Parallel()
	bases := bases()[1:]
	var before []map[string]object
	for _, base := range bases {
		before = append(before, render(t, "try", base, true))
	}
	for _, path := range branches("", defaults(t)) {
		for i, base := range bases {
			set := map[string]any{}
			if err := yaml.Unmarshal([]byte(base), &set); err != nil {
				t.Fatal(err)
			}
			without, given := lacking(set, strings.Split(path, "."))
			want, wantErr := before[i], error(nil)
			text := ""
			if given {
				text = encoded(t, without)
				want, wantErr = tryRender("try", text, true)
			} else if i > 0 && !strings.HasPrefix(path, "agent") && !strings.HasPrefix(path, "etcd") {
				continue
			}
			file, fileErr := tryRender("try", encoded(t, with(set, strings.Split(path, "."), nil)), true)
			argument, argumentErr := tryRender("try", base, true, path+"=null")
			if (fileErr == nil) != (wantErr == nil) || !reflect.DeepEqual(file, want) {
				t.Errorf("%s: null in a file of values with %s: %v %s", path, base, fileErr, cmp.Diff(want, file))
			}
			if (argumentErr == nil) != (wantErr == nil) || !reflect.DeepEqual(argument, want) {
				t.Errorf("--set %s=null with %s: %v %s", path, base, argumentErr, cmp.Diff(want, argument))
			}
		}
	}
}

func encoded(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lacking returns values without a path, and reports whether they have it.
func lacking(values map[string]any, path []string) (map[string]any, bool) {
	value, ok := values[path[0]]
	if !ok {
		return values, false
	}
	out := maps.Clone(values)
	if len(path) == 1 {
		delete(out, path[0])
		return out, true
	}
	inner, _ := value.(map[string]any)
	out[path[0]], ok = lacking(inner, path[1:])
	return out, ok
}

// bases are values of which each makes some other values count.
func bases() []string {
	return []string{
		allValues + "certs: {mode: custom, custom: {caCrt: $CRT, caKey: $KEY, crt: $CRT, key: $KEY, frontProxyCaCrt: $CRT, frontProxyCrt: $CRT, frontProxyKey: $KEY}}",
		`components: [search, descheduler, metricsAdapter, schedulerEstimator]
schedulerEstimator: {memberClusters: [{clusterName: m1, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://m1"}}]}
agent: {clusterName: m1, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://x"}}`,
		`{networkPolicy: {enabled: true}, etcd: {mode: external, external: {servers: "https://a:2379", certs: {caCrt: $CRT, crt: $CRT, key: $KEY}}}}`,
		"installMode: component" + allValuesOfOne,
		`{installMode: agent, agent: {clusterName: m1, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://x"}}}`,
		`{compact: true}`,
	}
}

func TestValues_EachHasAnEffect(t *testing.T) {
	t.Parallel()
	bases := bases()
	notes := render(t, "karmada", "", true)["NOTES"]["text"].(string)
	for _, path := range noEffect() {
		if !strings.Contains(notes, path) {
			t.Errorf("NOTES.txt does not name %s", path)
		}
	}
	var before []map[string]object
	for _, base := range bases {
		before = append(before, render(t, "try", base, true))
	}
	for _, leaf := range leaves("", defaults(t)) {
		path, changed := leaf.path, false
		for i, base := range bases {
			set := map[string]any{}
			if err := yaml.Unmarshal([]byte(base), &set); err != nil {
				t.Fatal(err)
			}
			for _, value := range candidates(leaf.value) {
				after, err := tryRender("try", encoded(t, with(set, strings.Split(path, "."), value)), true)
				if err == nil && !reflect.DeepEqual(before[i], after) {
					changed = true
				}
				if changed {
					break
				}
			}
			if changed {
				break
			}
		}
		named := slices.ContainsFunc(noEffect(), func(p string) bool { return path == p || strings.HasPrefix(path, p+".") })
		if changed == named {
			t.Errorf("%s changes the output: %t; said to have no effect: %t", path, changed, named)
		}
	}
}

// leaf is a value without values in it.
type leaf struct {
	path  string
	value any
}

func leaves(prefix string, values map[string]any) []leaf {
	var out []leaf
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := strings.TrimPrefix(prefix+"."+key, ".")
		if m, ok := values[key].(map[string]any); ok && len(m) > 0 && key != "featureGates" && key != "strategy" {
			out = append(out, leaves(path, m)...)
			continue
		}
		out = append(out, leaf{path, values[key]})
	}
	return out
}

// candidates are values of the type of a value, of which one fits.
func candidates(value any) []any {
	switch value.(type) {
	case string:
		return []any{"changed", "1h", "pvc", "hostPath", "external", "internal", "agent", "auto", "LoadBalancer", "Never", "7Gi", "10.0.0.0/8", "debug", "/changed", "https://changed",
			"-----BEGIN CERTIFICATE-----x", "-----BEGIN PRIVATE KEY-----x", "https://changed:2379", "workStatus", "hook-failed"}
	case bool:
		return []any{true, false}
	case float64:
		return []any{700}
	case []any:
		return []any{[]any{"changed"}, []any{map[string]any{"key": "changed"}}, []any{map[string]any{"podSelector": nil}}, []any{}}
	}
	return []any{
		map[string]any{"changed": "x"}, map[string]any{"minAvailable": 7}, map[string]any{"type": "Recreate"}, map[string]any{"type": "RollingUpdate"},
		map[string]any{"requests": map[string]any{"cpu": "7"}}, map[string]any{"podAffinity": map[string]any{"a": "b"}}, map[string]any{"AllAlpha": true},
	}
}

func with(in map[string]any, path []string, value any) map[string]any {
	out := maps.Clone(in)
	if out == nil {
		out = map[string]any{}
	}
	if len(path) == 1 {
		out[path[0]] = value
		return out
	}
	inner, _ := out[path[0]].(map[string]any)
	out[path[0]] = with(inner, path[1:], value)
	return out
}

// TestValues_HaveCases checks each value of values.yaml with those of cases.yaml.
func TestValues_HaveCases(t *testing.T) {
	t.Parallel()
	file := struct {
		Values []struct {
			Keys  string
			Valid []any
			Wrong []struct {
				Value any
				Error string
			}
		}
		Free         map[string]string
		Combinations []struct{ Values, Error string }
	}{}
	text, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	byKey := map[string]int{}
	for i, c := range file.Values {
		for _, key := range strings.Fields(c.Keys) {
			byKey[key] = i
		}
	}
	used, paths := map[string]bool{}, map[int][]string{}
	for _, leaf := range leaves("", defaults(t)) {
		found := ""
		for end := leaf.path; found == "" && end != ""; _, end, _ = strings.Cut(end, ".") {
			if _, ok := byKey[end]; ok {
				found = end
			}
		}
		if found == "" {
			t.Errorf("%s has no case in cases.yaml", leaf.path)
			continue
		}
		used[found] = true
		paths[byKey[found]] = append(paths[byKey[found]], leaf.path)
		_, sameType := leaf.value.(bool) // either is valid
		c := file.Values[byKey[found]]
		for _, wrong := range c.Wrong {
			sameType = sameType || reflect.TypeOf(wrong.Value) == reflect.TypeOf(leaf.value)
		}
		if free := file.Free[found] != ""; len(c.Valid) == 0 || len(c.Wrong) == 0 || !sameType != free {
			t.Errorf("%s needs a valid and a wrong value; it has a wrong one of its type: %t; any of its type is said to be valid: %t", leaf.path, sameType, free)
		}
	}
	for key := range byKey {
		if !used[key] {
			t.Errorf("%s is in cases.yaml and not in values.yaml", key)
		}
	}
	for i, c := range file.Values {
		// All keys of the case at once.
		set := func(value any) (out map[string]any) {
			for _, path := range paths[i] {
				out = with(out, strings.Split(path, "."), value)
			}
			return out
		}
		for _, value := range c.Valid {
			if _, err := tryRender("karmada", encoded(t, set(value)), true); err != nil {
				t.Errorf("%s: %v is refused: %v", c.Keys, value, err)
			}
		}
		for _, wrong := range c.Wrong {
			_, err := tryRender("karmada", encoded(t, set(wrong.Value)), true)
			for _, path := range paths[i] {
				want := strings.ReplaceAll(wrong.Error, "PATH", "/"+strings.ReplaceAll(path, ".", "/"))
				if err == nil || !names(err, want) {
					t.Errorf("%s: %v: got %v, want %q", path, wrong.Value, err, want)
				}
			}
		}
	}
	for _, c := range file.Combinations {
		_, err := tryRender("karmada", c.Values, true)
		if (err == nil) != (c.Error == "") || err != nil && !names(err, c.Error) {
			t.Errorf("%s: got %v, want %q", c.Values, err, c.Error)
		}
	}
}

// names reports whether an error has a line; "..." stands for any end.
func names(err error, line string) bool {
	start, any := strings.CutSuffix(line, "...")
	return slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(got string) bool {
		got = strings.TrimLeft(got, " -")
		return got == line || any && strings.HasPrefix(got, start) || strings.HasSuffix(got, "): "+line)
	})
}

// A map of values is a map.
func TestValues_BranchesAreMaps(t *testing.T) {
	leaves := leaves("", defaults(t))
	for _, path := range branches("", defaults(t)) {
		if slices.ContainsFunc(leaves, func(l leaf) bool { return strings.HasPrefix(path+".", l.path+".") }) {
			continue
		}
		keys := strings.Split(path, ".")
		_, err := tryRender("karmada", encoded(t, with(nil, keys, []any{})), true)
		if want := "at '/" + strings.Join(keys, "/") + "': got array, want null or object"; err == nil || !names(err, want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Helm itself validates with the schema, too.
func TestValues_HelmRefuses(t *testing.T) {
	chart, err := load()
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]any{"etcd": map[string]any{"internal": map[string]any{"storageType": "nfs"}}}
	_, err = chartutil.ToRenderValues(chart, set, common.ReleaseOptions{Name: "karmada"}, common.DefaultCapabilities)
	if err == nil || !names(err, "at '/etcd/internal/storageType': value must be one of 'hostPath', 'pvc', <nil>") {
		t.Errorf("got %v", err)
	}
}

// The files of people who install Karmada's chart, and null for any default.
func TestValues_AreAccepted(t *testing.T) {
	for _, values := range []string{
		"kubeControllerManager: {resources: null}\nmetricsAdapter: {resources: {requests: {cpu: 100m}}}\nscheduler: {labels: {app: karmada-scheduler}}\netcd: {internal: {name: etcd}}",
		"global: {anything: else}\ncfssl: {image: {registry: docker.io, repository: cfssl/cfssl, tag: latest}}\nkubectl: {image: {tag: latest}}",
		"apiServer: {nodePort: \"31443\", serviceType: NodePort, replicaCount: \"2\"}",
		"clusterDomain: null\nsystemNamespace: null\ncomponents: null\nscheduler: {image: {tag: null}, replicaCount: null, tolerations: null, strategy: null}\npodDisruptionBudget: null",
		`{etcd: {internal: {image: {repository: karmada/etcd}}}, search: {image: {repository: karmada/karmada-search}}, certs: {auto: {hosts: ["*.etcd.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}", host-server-ip]}}}`,
	} {
		if _, err := tryRender("karmada", values, true); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}
