package webhook

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/ledgers"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

func quantities(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func quotaObject(name string, overall corev1.ResourceList) *policyv1alpha1.FederatedResourceQuota {
	q := &policyv1alpha1.FederatedResourceQuota{}
	q.Name, q.Namespace = name, "ns"
	q.Spec.Overall = overall
	return q
}

func bindingText(clusters, request string) string {
	return `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: a, namespace: ns}, spec: {resource: {apiVersion: apps/v1, kind: Deployment, name: d},
  replicaRequirements: {resourceRequest: {` + request + `}}, clusters: [` + clusters + `]}}`
}

// total returns what is used and reserved.
func total(t *testing.T, d Deps) map[string]string {
	t.Helper()
	s, err := (&ledgers.Ledgers{Live: d.LiveReader}).Get(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, quantity := range s.Total() {
		out[string(name)] = quantity.String()
	}
	return out
}

// storedBinding uses an amount of cpu.
func storedBinding(name, cpu string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = "ns", name
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities("cpu", cpu)}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}}
	return b
}

func TestQuota(t *testing.T) {
	const two, five = "{name: m1, replicas: 1}, {name: m2, replicas: 1}", "{name: m1, replicas: 5}"
	for _, tc := range []struct {
		name     string
		q        question
		objects  []client.Object
		want     map[string]string // nothing if there is no ledger
		exceeded string
	}{
		{
			name:    "a new binding is charged beside those that are stored",
			q:       question{object: bindingText(two, "cpu: 100m, memory: 1Gi")},
			objects: []client.Object{quotaObject("a", quantities("cpu", "1")), storedBinding("b", "300m")},
			want:    map[string]string{"cpu": "500m", "memory": "2Gi"},
		},
		{
			name:    "a binding without clusters uses nothing",
			q:       question{object: bindingText("", "cpu: 100m")},
			objects: []client.Object{quotaObject("a", quantities("cpu", "0"))},
		},
		{
			name:    "a binding that uses only resources without a limit",
			q:       question{object: bindingText(two, "memory: 1Gi")},
			objects: []client.Object{quotaObject("a", quantities("cpu", "0", "requests.memory", "1"))},
		},
		{
			name:     "too much",
			q:        question{object: bindingText(five, "cpu: 300m, memory: 1Gi")},
			objects:  []client.Object{quotaObject("a", quantities("cpu", "1", "memory", "2Gi"))},
			exceeded: "FederatedResourceQuota(ns/a) exceeded for resource cpu: requested sum 1500m, limit 1.",
		},
		{
			name:     "every quota is checked",
			q:        question{object: bindingText(five, "cpu: 300m")},
			objects:  []client.Object{quotaObject("a", quantities("cpu", "2")), quotaObject("b", quantities("cpu", "1"))},
			exceeded: "FederatedResourceQuota(ns/b) exceeded for resource cpu: requested sum 1500m, limit 1.",
		},
		{
			name:    "less is possible above the limit",
			q:       question{operation: admissionv1.Update, object: bindingText(two, "cpu: 1"), old: bindingText(five, "cpu: 1")},
			objects: []client.Object{quotaObject("a", quantities("cpu", "1")), storedBinding("b", "6")},
		},
		{
			name:    "less of what is exceeded and more of what is not",
			q:       question{operation: admissionv1.Update, object: bindingText(two, "cpu: 1, memory: 1Gi"), old: bindingText(five, "cpu: 1")},
			objects: []client.Object{quotaObject("a", quantities("cpu", "1", "memory", "2Gi")), storedBinding("b", "6")},
			want:    map[string]string{"cpu": "6", "memory": "2Gi"},
		},
		{
			name:    "an unchanged binding above the limit is admitted",
			q:       question{operation: admissionv1.Update, object: bindingText(five, "cpu: 1"), old: bindingText(five, "cpu: 1000m")},
			objects: []client.Object{quotaObject("a", quantities("cpu", "1")), storedBinding("b", "6")},
		},
		{
			name:    "a dry run reserves nothing",
			q:       question{object: bindingText(two, "cpu: 100m"), dryRun: true},
			objects: []client.Object{quotaObject("a", quantities("cpu", "1"))},
		},
		{
			name:     "a dry run is refused as the write would be",
			q:        question{object: bindingText(five, "cpu: 300m"), dryRun: true},
			objects:  []client.Object{quotaObject("a", quantities("cpu", "1"))},
			exceeded: "FederatedResourceQuota(ns/a) exceeded for resource cpu: requested sum 1500m, limit 1.",
		},
		{
			name: "a ledger that cannot be decoded is counted again",
			q:    question{object: bindingText(two, "cpu: 100m")},
			objects: []client.Object{
				quotaObject("a", quantities("cpu", "1")), storedBinding("b", "300m"),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-quota-ns"}, Data: map[string]string{"ledger": "{"}},
			},
			want: map[string]string{"cpu": "500m"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := deps(tc.objects...)
			d.Enforcement = true
			tc.q.path, tc.q.namespace = "/validate-resourcebinding", "ns"
			resp := ask(t, d, tc.q)
			switch {
			case tc.exceeded == "" && !resp.Allowed:
				t.Errorf("refused: %s", resp.Result.Message)
			case tc.exceeded != "" && (resp.Allowed || resp.Result.Code != 403 || resp.Result.Reason != "QuotaExceeded" || resp.Result.Message != tc.exceeded):
				t.Errorf("answer %v %+v", resp.Allowed, resp.Result)
			}
			if tc.want == nil {
				tc.want = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, total(t, d)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// conflicting is a writer whose writes conflict.
type conflicting struct {
	client.Writer
	times int
}

func (c *conflicting) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if c.times > 0 {
		c.times--
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, obj.GetName(), nil)
	}
	return c.Writer.Create(ctx, obj, opts...)
}

func TestQuota_Conflicts(t *testing.T) {
	for _, tc := range []struct {
		name    string
		times   int
		message string
		want    string
	}{
		{"a write that conflicts is charged once", 2, "", "500m"},
		{"one that always conflicts fails and is not charged", 99, "failed to apply FederatedResourceQuota updates after multiple retries for RB ns/a: ", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := deps(quotaObject("a", quantities("cpu", "2")), quotaObject("b", quantities("cpu", "2")))
			d.Enforcement = true
			d.Writer = &conflicting{Writer: d.Writer, times: tc.times}
			resp := ask(t, d, question{path: "/validate-resourcebinding", namespace: "ns", object: bindingText("{name: m1, replicas: 5}", "cpu: 100m")})
			if resp.Allowed != (tc.message == "") || !resp.Allowed && (resp.Result.Code != 500 || !strings.HasPrefix(resp.Result.Message, tc.message)) {
				t.Errorf("answer %v %+v", resp.Allowed, resp.Result)
			}
			if got := total(t, d)["cpu"]; got != tc.want {
				t.Errorf("used %q", got)
			}
		})
	}
}

// TestQuota_TogetherIsOneWrite shows that the charges of a namespace that wait for its ledger are written at once.
func TestQuota_TogetherIsOneWrite(t *testing.T) {
	d := deps(quotaObject("a", quantities("cpu", "10")))
	slow := &slowWriter{Writer: d.Writer, first: make(chan struct{}), release: make(chan struct{})}
	d.Writer = slow
	e := newEnforcer(d)
	quotas := []policyv1alpha1.FederatedResourceQuota{*quotaObject("a", quantities("cpu", "10"))}
	const charges = 20
	results := make(chan error, charges)
	submit := func(i int) {
		w := &quota.Write{Binding: fmt.Sprintf("b%d", i), After: quantities("cpu", "1")}
		results <- e.charge(t.Context(), "ns", &charge{write: w, quotas: quotas, done: make(chan error, 1)})
	}
	go submit(0)
	<-slow.first
	for i := 1; i < charges; i++ {
		go submit(i)
	}
	for waiting := 0; waiting < charges-1; {
		e.mu.Lock()
		waiting = len(e.namespaces["ns"].pending)
		e.mu.Unlock()
		runtime.Gosched()
	}
	close(slow.release)
	refused := 0
	for range charges {
		if err := <-results; err != nil {
			refused++
		}
	}
	if got := total(t, d)["cpu"]; refused != 10 || got != "10" || slow.writes > 3 {
		t.Errorf("%d refused, %s used, %d writes", refused, got, slow.writes)
	}
}

type slowWriter struct {
	client.Writer
	first, release chan struct{}
	writes         int
}

func (w *slowWriter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	w.writes++
	close(w.first)
	<-w.release
	return w.Writer.Create(ctx, obj, opts...)
}

func (w *slowWriter) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	w.writes++
	return w.Writer.Update(ctx, obj, opts...)
}

// The ledgers of namespaces that were deleted are not known for ever; charges that wait are.
func TestEnforcer_ForgetsIdleNamespaces(t *testing.T) {
	e := newEnforcer(deps(quotaObject("a", quantities("cpu", "10"))))
	for i := range maxNamespaces {
		e.namespaces[fmt.Sprintf("deleted-%d", i)] = &queue{}
	}
	e.namespaces["busy"] = &queue{running: true}
	w := &quota.Write{Binding: "b", After: quantities("cpu", "1")}
	if err := e.charge(t.Context(), "ns", &charge{write: w, done: make(chan error, 1)}); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(e.namespaces)); !slices.Equal(got, []string{"busy", "ns"}) {
		t.Errorf("%d namespaces are known", len(got))
	}
}
