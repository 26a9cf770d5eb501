package quota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func spec(t *testing.T, text string) *workv1alpha2.ResourceBindingSpec {
	t.Helper()
	out := &workv1alpha2.ResourceBindingSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func list(l corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, quantity := range l {
		out[string(name)] = quantity.String()
	}
	return out
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       map[string]string
	}{
		{"not scheduled", `{resource: {}, replicas: 3, replicaRequirements: {resourceRequest: {cpu: 1}}}`, map[string]string{}},
		{"no requirements", `{resource: {}, clusters: [{name: a, replicas: 2}]}`, map[string]string{}},
		{"replicas over clusters", `{resource: {}, replicaRequirements: {resourceRequest: {cpu: 100m, memory: 1Gi, x: 0}}, clusters: [{name: a, replicas: 2}, {name: b, replicas: 3}]}`, map[string]string{"cpu": "500m", "memory": "5Gi"}},
		{
			"components in each cluster",
			`{resource: {}, replicaRequirements: {resourceRequest: {cpu: 9}}, components: [{name: a, replicas: 2, replicaRequirements: {resourceRequest: {cpu: 1}}}, {name: b, replicas: 1, replicaRequirements: {resourceRequest: {cpu: 500m}}}, {name: c, replicas: 1}], clusters: [{name: a}, {name: b}]}`,
			map[string]string{"cpu": "5"},
		},
		{"components nowhere", `{resource: {}, components: [{name: a, replicas: 2, replicaRequirements: {resourceRequest: {cpu: 1}}}]}`, map[string]string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, list(Usage(spec(t, tc.spec)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
