package detector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

const noPolicy = "Warning ApplyPolicyFailed No policy match for resource"

// step reconciles the template after some time and returns the events, and after
// how long the template is reconciled again.
func (h *harness) step(clock *clocktesting.FakeClock, after time.Duration) (published []string, again time.Duration) {
	h.Helper()
	clear(h.later)
	clock.SetTime(clock.Now().Add(after))
	h.mustReconcile(keyFor("nginx"))
	return h.Events(), h.later[templateKey{objectKey: keyFor("nginx").objectKey, byPolicy: true}]
}

func TestUnmatched_ReportedOncePerTransitionAfterFiveSeconds(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)))
	clock := h.Clock
	for _, tc := range []struct {
		after, again time.Duration
		want         []string
	}{
		{0, 5 * time.Second, nil},
		{2 * time.Second, 3 * time.Second, nil},
		{3 * time.Second, 0, []string{noPolicy}},
		{time.Hour, 0, nil},
	} {
		got, again := h.step(clock, tc.after)
		if diff := cmp.Diff(tc.want, got); diff != "" || again != tc.again {
			t.Errorf("after %s: reconciled again after %s, want %s; events %s", tc.after, again, tc.again, diff)
		}
	}
	p := pp("p", nil)
	h.Must(h.Stored.Create(t.Context(), p))
	if got, _ := h.step(clock, 0); len(got) != 1 || got[0] != "Normal ApplyPolicySucceed Apply policy(default/p) succeed" {
		t.Fatalf("with a policy: events %v", got)
	}
	p.Finalizers = nil
	h.Must(h.Stored.Update(t.Context(), p))
	h.Must(h.Stored.Delete(t.Context(), p))
	_, _ = h.step(clock, 0) // releases the template
	if got, again := h.step(clock, 0); got != nil || again != 5*time.Second {
		t.Errorf("without the policy: events %v, reconciled again after %s", got, again)
	}
	if got, _ := h.step(clock, 5*time.Second); len(got) != 1 || got[0] != noPolicy {
		t.Errorf("5 s without the policy: events %v", got)
	}
}

func TestUnmatched_APolicyWithinFiveSecondsLeavesNoEvent(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)))
	clock := h.Clock
	_, _ = h.step(clock, 0)
	h.Must(h.Stored.Create(t.Context(), pp("p", nil)))
	if got, _ := h.step(clock, 6*time.Second); len(got) != 1 || got[0] == noPolicy {
		t.Errorf("events %v", got)
	}
}

func TestUnmatched_WaitingForOverridesIsNoMissingPolicy(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", func(s *policyv1alpha1.PropagationSpec) { s.DependentOverrides = []string{"op"} }))
	clock := h.Clock
	for range 2 {
		if err := h.reconcile(keyFor("nginx")); err == nil {
			t.Fatal("no error")
		}
		clock.SetTime(clock.Now().Add(time.Minute))
	}
	if got := h.Events(); got != nil {
		t.Errorf("events %v", got)
	}
}

func TestUnmatched_DependenciesNeedNoPolicy(t *testing.T) {
	attached := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nginx-deployment"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:   workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "nginx"},
			RequiredBy: []workv1alpha2.BindingSnapshot{{Namespace: "default", Name: "other"}},
		},
	}
	h := newHarness(t, nil, one(deployment("nginx", 1)), attached)
	clock := h.Clock
	_, _ = h.step(clock, 0)
	if got, _ := h.step(clock, time.Minute); got != nil {
		t.Errorf("events %v", got)
	}
}

func TestUnmatched_ARestartReportsWhatWasNotReported(t *testing.T) {
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "nginx.1"},
		InvolvedObject: corev1.ObjectReference{UID: "uid-nginx"}, Reason: ReasonApplyPolicyFailed, Message: messageNoPolicy,
	}
	for name, tc := range map[string]struct {
		age    time.Duration
		stored []client.Object
		want   []string
	}{
		"young, not reported":           {time.Minute, nil, []string{noPolicy}},
		"young, reported":               {time.Minute, []client.Object{event}, nil},
		"older than events are kept":    {2 * time.Hour, nil, nil},
		"an event of an earlier object": {time.Minute, []client.Object{earlier(event)}, []string{noPolicy}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := deployment("nginx", 1)
			h := newHarness(t, nil, one(obj), tc.stored...)
			clock := h.Clock
			obj.SetCreationTimestamp(metav1.NewTime(clock.Now().Add(-tc.age)))
			h.edit("nginx", func(live *unstructured.Unstructured) { live.SetCreationTimestamp(obj.GetCreationTimestamp()) })
			h.det.source.onTemplate(templates.Event{New: obj, Initial: true})
			_, _ = h.step(clock, 0)
			got, _ := h.step(clock, 5*time.Second)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func earlier(event *corev1.Event) *corev1.Event {
	out := event.DeepCopy()
	out.InvolvedObject.UID = types.UID("uid-earlier")
	return out
}

func TestExpectsPolicy(t *testing.T) {
	for _, tc := range []struct {
		apiVersion, kind, namespace, name string
		labels                            map[string]string
		want                              bool
	}{
		{"apps/v1", "Deployment", "default", "nginx", nil, true},
		{"v1", "ConfigMap", "default", "app", nil, true},
		{"v1", "ConfigMap", "default", "kube-root-ca.crt", nil, false},
		{"v1", "ServiceAccount", "default", "default", nil, false},
		{"v1", "ServiceAccount", "default", "app", nil, true},
		{"v1", "Namespace", "", "app", nil, false},
		{"v1", "Service", "default", "kubernetes", nil, false},
		{"v1", "Service", "other", "kubernetes", nil, true},
		{"v1", "Endpoints", "default", "app", map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}, false},
		{"discovery.k8s.io/v1", "EndpointSlice", "default", "kubernetes", nil, false},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "admin", map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}, false},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "cluster-proxy-admin", map[string]string{"karmada.io/system": "true"}, false},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "app", nil, true},
		{"scheduling.k8s.io/v1", "PriorityClass", "", "system-node-critical", nil, false},
		{"scheduling.k8s.io/v1", "PriorityClass", "", "high", nil, true},
		{"networking.k8s.io/v1", "IPAddress", "", "10.0.0.1", nil, false},
		{"networking.k8s.io/v1", "Ingress", "default", "app", nil, true},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "works.work.karmada.io", nil, false},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "guestbooks.example.io", nil, true},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "p", nil, false},
		{"example.io/v1", "Guestbook", "default", "g", nil, true},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind}}
		obj.SetNamespace(tc.namespace)
		obj.SetName(tc.name)
		obj.SetLabels(tc.labels)
		if got := expectsPolicy(obj); got != tc.want {
			t.Errorf("%s %s/%s: got %v", tc.kind, tc.namespace, tc.name, got)
		}
	}
}

func TestExpectsPolicy_NotForWhatControllersMake(t *testing.T) {
	obj := deployment("nginx", 1)
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.io/v1", Kind: "App", Name: "a", UID: "1", Controller: new(true)}})
	if expectsPolicy(obj) {
		t.Error("an object with a controller expects a policy")
	}
}
