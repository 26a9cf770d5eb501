package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// brief lists errors as type, path and detail.
func brief(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		line := string(err.Type) + " " + err.Field
		if err.Detail != "" {
			line += ": " + err.Detail
		}
		out = append(out, strings.TrimPrefix(line, "FieldValue"))
	}
	return out
}

// decode reads YAML into a new T and fails on unknown fields.
func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	obj := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return obj
}

func TestValidateClusterName(t *testing.T) {
	for name, want := range map[string]string{
		"m1": "", "1m": "", strings.Repeat("x", 48): "",
		"":                      "must be not empty",
		strings.Repeat("x", 49): "must be no more than 48 characters",
		"a.b":                   "must not contain dots",
	} {
		if got := strings.Join(ValidateClusterName(name), ";"); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if len(ValidateClusterName("UPPER")) == 0 {
		t.Error("upper case passes")
	}
}

func TestValidateCluster(t *testing.T) {
	for _, tc := range []struct {
		name, cluster, spec string
		want                []string
	}{
		{name: "the least", spec: `{syncMode: Pull}`},
		{name: "the name is checked once", cluster: "a.b", spec: `{syncMode: Pull}`, want: []string{"Invalid metadata.name: must not contain dots"}},
		{name: "no mode", spec: `{}`, want: []string{"Required spec.syncMode", `NotSupported spec.syncMode: supported values: "Pull", "Push"`}},
		{
			name: "an endpoint needs a scheme", spec: `{syncMode: Push, apiEndpoint: "10.0.0.1:6443"}`,
			want: []string{`Invalid spec.apiEndpoint: apiEndpoint must be a valid URL: parse "10.0.0.1:6443": first path segment in URL cannot contain colon; desired format: hostname, hostname:port, IP or IP:port`},
		},
		{name: "an endpoint of any scheme", spec: `{syncMode: Push, apiEndpoint: "ftp://x"}`},
		{
			name: "an endpoint is a host only", spec: `{syncMode: Push, apiEndpoint: "https://u:p@/x?q=1#f"}`,
			want: []string{
				"Invalid spec.apiEndpoint: host must be provided; desired format: hostname, hostname:port, IP or IP:port",
				"Invalid spec.apiEndpoint: user information is not permitted in the URL",
				"Invalid spec.apiEndpoint: fragments are not permitted in the URL",
				"Invalid spec.apiEndpoint: query parameters are not permitted in the URL",
			},
		},
		{
			name: "references are whole", spec: `{syncMode: Push, secretRef: {namespace: "", name: x}, impersonatorSecretRef: {namespace: y, name: ""}}`,
			want: []string{"Required spec.secretRef.namespace", "Required spec.impersonatorSecretRef.name"},
		},
		{
			name: "proxies speak http, https or socks5", spec: `{syncMode: Push, proxyURL: "ftp://p"}`,
			want: []string{`Invalid spec.proxyURL: unsupported scheme "ftp", must be http, https, or socks5`},
		},
		{name: "one proxy that is good", spec: `{syncMode: Push, proxyURL: "socks5://p:1"}`},
		{
			name: "zone and zones", spec: `{syncMode: Push, zone: a, zones: [b]}`,
			want: []string{"TypeInvalid spec.spec: Zone and Zones cannot co-exist"},
		},
		{
			name: "taints", spec: `{syncMode: Push, taints: [{key: a, effect: NoSchedule}, {key: a, value: x, effect: NoSchedule}, {key: a, effect: NoExecute}, {key: b, effect: PreferNoSchedule}, {key: c, effect: ""}]}`,
			want: []string{
				"Duplicate spec.taints[1]: taints must be unique by key and effect pair",
				`NotSupported spec.taints[3].effect: supported values: "NoSchedule", "NoExecute"`,
				"Required spec.taints[4].effect",
			},
		},
		{name: "models with one grade twice", spec: models(`{grade: 0, ranges: [{name: cpu, min: "0", max: "1"}]}`, `{grade: 0, ranges: [{name: cpu, min: "1", max: "9223372036854775807"}]}`), want: modelProblem("The grade of each models should not be the same")},
		{name: "models of different length", spec: models(`{grade: 0, ranges: [{name: cpu, min: "0", max: "1"}]}`, `{grade: 1, ranges: []}`), want: modelProblem("The number of resource types should be the same")},
		{name: "an empty interval", spec: models(`{grade: 0, ranges: [{name: cpu, min: "1", max: "1"}]}`), want: modelProblem("The max value of each resource must be greater than the min value")},
		{name: "a first model that does not start at 0", spec: models(`{grade: 0, ranges: [{name: cpu, min: "1", max: "2"}]}`), want: modelProblem("The min value of each resource in the first model should be 0")},
		{name: "models of different resources", spec: models(`{grade: 0, ranges: [{name: cpu, min: "0", max: "1"}]}`, `{grade: 1, ranges: [{name: memory, min: "1", max: "2"}]}`), want: modelProblem("The resource types of each models should be the same")},
		{name: "a gap", spec: models(`{grade: 0, ranges: [{name: cpu, min: "0", max: "1"}]}`, `{grade: 1, ranges: [{name: cpu, min: "2", max: "3"}]}`), want: modelProblem("Model intervals for resources must be contiguous and non-overlapping")},
		{name: "a last model with an end", spec: models(`{grade: 0, ranges: [{name: cpu, min: "0", max: "1"}]}`), want: modelProblem("The max value of each resource in the last model should be MaxInt64")},
		{name: "models that are good", spec: models(`{grade: 0, ranges: [{name: memory, min: "0", max: "4Gi"}]}`, `{grade: 1, ranges: [{name: memory, min: "4096Mi", max: "9223372036854775807"}]}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{Spec: *decode[clusterv1alpha1.ClusterSpec](t, tc.spec)}
			if c.Name = tc.cluster; c.Name == "" {
				c.Name = "m1"
			}
			if diff := cmp.Diff(tc.want, brief(ValidateCluster(c))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func models(m ...string) string {
	return "{syncMode: Push, resourceModels: [" + strings.Join(m, ",") + "]}"
}

func modelProblem(detail string) []string {
	return []string{"Invalid spec.resourceModels: " + detail}
}

func TestValidateCluster_DefaultModelsAreGood(t *testing.T) {
	c := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	c.Name = "m1"
	clusterv1alpha1.PrepareClusterForCreate(c, true)
	if errs := ValidateCluster(c); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestValidateClusterUpdate(t *testing.T) {
	old := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	old.Name, old.UID, old.ResourceVersion = "m1", "u", "1"
	updated := old.DeepCopy()
	updated.Spec.SyncMode = clusterv1alpha1.Pull
	if errs := ValidateClusterUpdate(updated, old); len(errs) > 0 {
		t.Error(errs)
	}
	updated.UID = "v"
	if diff := cmp.Diff([]string{"Invalid metadata.uid: field is immutable"}, brief(ValidateClusterUpdate(updated, old))); diff != "" {
		t.Error(diff)
	}
}
