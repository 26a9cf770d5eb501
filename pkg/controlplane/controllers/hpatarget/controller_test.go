package hpatarget

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// hpa returns an autoscaler of Deployment web; labels are those that a policy sets on it.
func hpa(labels map[string]string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: labels},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: web().ref},
	}
}

func web() target {
	return target{"default", autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
}

// propagated are the labels of an autoscaler that a policy propagates.
func propagated() map[string]string {
	return map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
}

func newReconciler(t *testing.T, objs ...client.Object) (*memory.Env, *reconciler) {
	t.Helper()
	m := memory.New(t, objs...)
	return m, &reconciler{client: m.Client, live: m.Client}
}

func deployment(labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: labels}}
}

func TestReconcile(t *testing.T) {
	marked := map[string]string{workv1alpha2.RetainReplicasLabel: "true"}
	for name, tc := range map[string]struct {
		objs []client.Object
		want string
		// patches is the number of requests that write.
		patches int
	}{
		"a propagated autoscaler marks":             {[]client.Object{hpa(propagated()), deployment(nil)}, "true", 1},
		"a target that is marked":                   {[]client.Object{hpa(propagated()), deployment(marked)}, "true", 0},
		"the last autoscaler is gone":               {[]client.Object{deployment(marked)}, "", 1},
		"no autoscaler, no mark":                    {[]client.Object{deployment(nil)}, "", 0},
		"an autoscaler that is not propagated":      {[]client.Object{hpa(nil), deployment(marked)}, "true", 0},
		"the target is missing":                     {[]client.Object{hpa(propagated())}, "", 0},
		"another value of the label is overwritten": {[]client.Object{hpa(propagated()), deployment(map[string]string{workv1alpha2.RetainReplicasLabel: "no"})}, "true", 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, r := newReconciler(t, tc.objs...)
			for range 2 { // the second pass changes nothing
				if _, err := r.Reconcile(t.Context(), web()); err != nil {
					t.Fatal(err)
				}
			}
			got := &appsv1.Deployment{}
			if err := m.Stored.Get(t.Context(), memory.Key("default", "web"), got); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if patches := m.Writes(); got.Labels[workv1alpha2.RetainReplicasLabel] != tc.want || len(patches) != tc.patches {
				t.Errorf("labels %v after %q, want %q after %d", got.Labels, patches, tc.want, tc.patches)
			}
		})
	}
}

func TestReconcile_Errors(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("changed"))
	m, r := newReconciler(t, hpa(propagated()), deployment(nil))
	m.FailOnce("patch ", conflict)
	if _, err := r.Reconcile(t.Context(), web()); !apierrors.IsConflict(err) {
		t.Errorf("a conflict is retried: got %v", err)
	}
	if _, err := r.Reconcile(t.Context(), web()); err != nil || len(m.Writes()) != 2 {
		t.Errorf("after a conflict: %v", err)
	}
	bad := web()
	bad.ref.APIVersion = "a/b/c"
	if _, err := r.Reconcile(t.Context(), bad); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("a reference that cannot be read is not retried: got %v", err)
	}
}

func TestUnmarked(t *testing.T) {
	_, r := newReconciler(t, hpa(propagated()))
	unmarked, marked := build.Deployment("web", 1), build.Deployment("web", 1)
	marked.SetLabels(map[string]string{workv1alpha2.RetainReplicasLabel: "true"})
	other := build.Deployment("other", 1)
	for name, tc := range map[string]struct {
		event templates.Event
		want  int
	}{
		"the label is removed":   {templates.Event{Old: marked, New: unmarked}, 1},
		"the label stays":        {templates.Event{Old: marked, New: marked}, 0},
		"the object is new":      {templates.Event{New: marked}, 0},
		"no autoscaler names it": {templates.Event{Old: marked, New: other}, 0},
	} {
		if got := r.unmarked(t.Context(), tc.event); len(got) != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
