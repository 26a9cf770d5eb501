package webhook

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func quantities(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func quotaObject(name string, overall, used corev1.ResourceList) *policyv1alpha1.FederatedResourceQuota {
	q := &policyv1alpha1.FederatedResourceQuota{}
	q.Name, q.Namespace = name, "ns"
	q.Spec.Overall, q.Status.OverallUsed = overall, used
	return q
}

func bindingText(clusters, request string) string {
	return `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, namespace: ns}, spec: {resource: {apiVersion: apps/v1, kind: Deployment, name: d},
  replicaRequirements: {resourceRequest: {` + request + `}}, clusters: [` + clusters + `]}}`
}

func used(t *testing.T, d Deps, name string) map[string]string {
	t.Helper()
	var q policyv1alpha1.FederatedResourceQuota
	if err := d.LiveReader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &q); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, quantity := range q.Status.OverallUsed {
		out[string(name)] = quantity.String()
	}
	return out
}

func TestQuota(t *testing.T) {
	const two, five = "{name: m1, replicas: 1}, {name: m2, replicas: 1}", "{name: m1, replicas: 5}"
	for _, tc := range []struct {
		name     string
		q        question
		quotas   []client.Object
		want     map[string]string // of quota a
		exceeded string
	}{
		{
			name:   "a new binding is charged",
			q:      question{object: bindingText(two, "cpu: 100m, memory: 1Gi")},
			quotas: []client.Object{quotaObject("a", quantities("cpu", "1"), quantities("cpu", "300m", "requests.cpu", "1"))},
			want:   map[string]string{"cpu": "500m", "requests.cpu": "1"},
		},
		{
			name:   "a binding without clusters costs nothing",
			q:      question{object: bindingText("", "cpu: 100m")},
			quotas: []client.Object{quotaObject("a", quantities("cpu", "0"), nil)},
			want:   map[string]string{},
		},
		{
			name:     "too much",
			q:        question{object: bindingText(five, "cpu: 300m, memory: 1Gi")},
			quotas:   []client.Object{quotaObject("a", quantities("cpu", "1", "memory", "2Gi"), nil)},
			want:     map[string]string{},
			exceeded: "FederatedResourceQuota(ns/a) exceeded for resource cpu: requested sum 1500m, limit 1.",
		},
		{
			name:     "all quotas are checked before the first is charged",
			q:        question{object: bindingText(five, "cpu: 300m")},
			quotas:   []client.Object{quotaObject("a", quantities("cpu", "2"), nil), quotaObject("b", quantities("cpu", "1"), nil)},
			want:     map[string]string{},
			exceeded: "FederatedResourceQuota(ns/b) exceeded for resource cpu: requested sum 1500m, limit 1.",
		},
		{
			name:   "less is possible above the limit",
			q:      question{operation: admissionv1.Update, object: bindingText(two, "cpu: 1"), old: bindingText(five, "cpu: 1")},
			quotas: []client.Object{quotaObject("a", quantities("cpu", "1"), quantities("cpu", "6"))},
			want:   map[string]string{"cpu": "3"},
		},
		{
			name:   "an unchanged binding above the limit is let in",
			q:      question{operation: admissionv1.Update, object: bindingText(five, "cpu: 1"), old: bindingText(five, "cpu: 1000m")},
			quotas: []client.Object{quotaObject("a", quantities("cpu", "1"), quantities("cpu", "6"))},
			want:   map[string]string{"cpu": "6"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := deps(tc.quotas...)
			d.Enforcement = true
			tc.q.path, tc.q.namespace = "/validate-resourcebinding", "ns"
			resp := ask(t, d, tc.q)
			switch {
			case tc.exceeded == "" && !resp.Allowed:
				t.Errorf("refused: %s", resp.Result.Message)
			case tc.exceeded != "" && (resp.Allowed || resp.Result.Code != 403 || resp.Result.Reason != "QuotaExceeded" || resp.Result.Message != tc.exceeded):
				t.Errorf("answer %v %+v", resp.Allowed, resp.Result)
			}
			if diff := cmp.Diff(tc.want, used(t, d, "a")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// conflicting is a status writer whose writes of one quota conflict.
type conflicting struct {
	client.SubResourceWriter
	name  string
	times int
}

func (c *conflicting) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if obj.GetName() == c.name && c.times > 0 {
		c.times--
		return apierrors.NewConflict(schema.GroupResource{Resource: "federatedresourcequotas"}, c.name, nil)
	}
	return c.SubResourceWriter.Update(ctx, obj, opts...)
}

func TestQuota_Conflicts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		times int
		want  string
	}{
		{"a conflict on the second quota does not charge the first twice", 2, "500m"},
		{"a quota that cannot be written leaves the others as they were", 99, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := deps(quotaObject("a", quantities("cpu", "2"), nil), quotaObject("b", quantities("cpu", "2"), nil))
			d.Enforcement = true
			d.StatusWriter = &conflicting{SubResourceWriter: d.StatusWriter, name: "b", times: tc.times}
			resp := ask(t, d, question{path: "/validate-resourcebinding", namespace: "ns", object: bindingText("{name: m1, replicas: 5}", "cpu: 100m")})
			if resp.Allowed != (tc.want != "") {
				t.Errorf("answer %v %+v", resp.Allowed, resp.Result)
			}
			if got := used(t, d, "a")["cpu"]; got != tc.want {
				t.Errorf("used %q", got)
			}
		})
	}
}
