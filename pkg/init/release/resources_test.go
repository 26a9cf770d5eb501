package release

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// A control plane of Karmada's chart, which has its version alone, gets purge modes of v1.17 by their present names; others are not read.
func TestResources_ContinueFormer(t *testing.T) {
	s := &Resources{Release: settings().Release}
	version := func(data map[string]string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.SystemNamespace, Name: names.VersionConfigMap}, Data: data}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    policyv1alpha1.PurgeMode
	}{
		"new":             {nil, "Immediately"},
		"of this chart":   {[]client.Object{version(map[string]string{names.VersionKey: "v1.19.0", names.SettingsKey: "a"})}, "Immediately"},
		"Karmada's chart": {[]client.Object{version(map[string]string{names.VersionKey: "v1.17.0"})}, policyv1alpha1.PurgeModeDirectly},
	} {
		policy := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": policyv1alpha1.GroupVersion.String(), "kind": "PropagationPolicy", "metadata": map[string]any{"namespace": "ns", "name": "p"},
			"spec": map[string]any{"failover": map[string]any{"application": map[string]any{"purgeMode": "Immediately"}}},
		}}
		m := memory.New(t, append(tc.objects, policy)...)
		if err := s.continueFormer(t.Context(), m.Client); err != nil {
			t.Fatal(err)
		}
		if got := memory.Get[*policyv1alpha1.PropagationPolicy](m, memory.Key("ns", "p")); got.Spec.Failover.Application.PurgeMode != tc.want {
			t.Errorf("%s: %+v", name, got.Spec.Failover.Application)
		}
	}
}
