package binding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
)

// TestReconcile_OverridesDoNotEvadeAQuota raises replicas and requests of a charged workload by policies of its namespace.
func TestReconcile_OverridesDoNotEvadeAQuota(t *testing.T) {
	template := func() *unstructured.Unstructured {
		obj := deployment()
		containers := []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{"requests": map[string]any{"cpu": "10m"}}}}
		if err := unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	counts := func(name corev1.ResourceName) *policyv1alpha1.FederatedResourceQuota {
		return &policyv1alpha1.FederatedResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "q"},
			Spec:       policyv1alpha1.FederatedResourceQuotaSpec{Overall: corev1.ResourceList{name: resource.MustParse("1")}},
		}
	}
	const requests = "/spec/template/spec/containers/0/resources/requests/cpu"
	for name, tc := range map[string]struct {
		path, value string
		quota       *policyv1alpha1.FederatedResourceQuota
		off         bool
		refused     bool
	}{
		"more replicas":                   {"/spec/replicas", "44", counts("cpu"), false, true},
		"larger requests":                 {requests, `"700m"`, counts("cpu"), false, true},
		"smaller requests":                {requests, `"1m"`, counts("cpu"), false, false},
		"requests that are not valid":     {requests, `"lots"`, counts("cpu"), false, true},
		"another image":                   {"/spec/template/spec/containers/0/image", `"x"`, counts("cpu"), false, false},
		"what the quota does not count":   {requests, `"700m"`, counts("memory"), false, false},
		"quotas that are not enforced":    {requests, `"700m"`, counts("cpu"), true, false},
		"another namespace has the quota": {requests, `"700m"`, func() *policyv1alpha1.FederatedResourceQuota { q := counts("cpu"); q.Namespace = "other"; return q }(), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, template(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}), replacing("m1", tc.path, tc.value), tc.quota)
			h.r.writer.enforceQuotas = !tc.off
			_, err := h.reconcile()
			want := []string{"m1", "m2"}
			if tc.refused {
				want = []string{"m2"}
			}
			if diff := cmp.Diff(want, h.clustersWithWorks()); diff != "" || (err != nil) != tc.refused {
				t.Errorf("%v\n%s", err, diff)
			}
			condition := h.deliverable()
			if tc.refused != (condition != nil && condition.Reason == delivery.ReasonOverrideForbidden && strings.Contains(condition.Message, "nginx")) {
				t.Errorf("condition %+v", condition)
			}
		})
	}
}
