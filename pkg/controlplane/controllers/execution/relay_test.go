package execution

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
)

func TestAppliedAnew(t *testing.T) {
	condition := func(status metav1.ConditionStatus, generation int64, message string) *metav1.Condition {
		return &metav1.Condition{Status: status, ObservedGeneration: generation, Message: message}
	}
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	tests := []struct {
		name     string
		old, now *metav1.Condition
		want     bool
	}{
		{"no condition", nil, nil, false},
		{"applied for the first time", nil, condition(yes, 1, ""), true},
		{"unchanged", condition(yes, 1, ""), condition(yes, 1, ""), false},
		{"another generation was applied", condition(yes, 1, ""), condition(yes, 2, ""), true},
		{"it failed", condition(yes, 1, ""), condition(no, 1, "a"), true},
		{"the same failure of another generation", condition(no, 1, "a"), condition(no, 2, "a"), false},
		{"another failure", condition(no, 1, "a"), condition(no, 1, "b"), true},
		{"applied after a failure", condition(no, 1, "a"), condition(yes, 1, ""), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := appliedAnew(tt.old, tt.now); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// An agent reports about Works that name bindings of others.
func TestRelay_OnlyForTheTemplateOfItsBinding(t *testing.T) {
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-deployment", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart", UID: "template"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "evil"}},
		},
	}
	elsewhere := binding.DeepCopy()
	elsewhere.Name, elsewhere.Spec.Resource.Name, elsewhere.Spec.Clusters[0].Name = "other-deployment", "other", "good"
	evil := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	work := func(name, of, id, manifest string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-evil", Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: of},
		}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
		return w
	}
	const victim = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"kube-system","name":"victim","annotations":{"resourcetemplate.karmada.io/uid":"victim"}}}`
	cart, other := names.Work("Deployment", "cart", "shop"), names.Work("Deployment", "other", "shop")
	report := func(w *workv1alpha1.Work, status metav1.ConditionStatus, message string) *workv1alpha1.Work {
		w = w.DeepCopy()
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, Message: message, ObservedGeneration: 1}}
		return w
	}
	for name, tc := range map[string]struct {
		work    *workv1alpha1.Work
		status  metav1.ConditionStatus
		message string
		want    string
	}{
		"its own Work": {work(cart, "cart-deployment", "id", victim), metav1.ConditionTrue, "", "Normal SyncSucceed Successfully applied resource(shop/cart) to cluster evil"},
		"a failure with control characters": {
			work(cart, "cart-deployment", "id", victim), metav1.ConditionFalse, "Failed (0/1): a\x1b[2Jb\nc",
			"Warning SyncFailed Failed to create or update resource(shop/cart) in member cluster(evil): a[2Jb c",
		},
		"a Work of another name":      {work("forged", "cart-deployment", "id", victim), metav1.ConditionTrue, "", ""},
		"a binding of other clusters": {work(other, "other-deployment", "id", victim), metav1.ConditionTrue, "", ""},
		"another id":                  {work(cart, "cart-deployment", "x", victim), metav1.ConditionTrue, "", ""},
		"no id":                       {work(cart, "cart-deployment", "", victim), metav1.ConditionTrue, "", ""},
		"a binding that is not there": {work(cart, "gone", "id", victim), metav1.ConditionTrue, "", ""},
		"no binding":                  {work(cart, "", "id", victim), metav1.ConditionTrue, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			c := New(fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(binding, elsewhere, evil).Build(), nil, recorder, recorder, Deps{Metrics: prometheus.NewRegistry()})
			c.relayEvents(t.Context(), tc.work, report(tc.work, tc.status, tc.message))
			got := ""
			if len(recorder.Events) > 0 {
				got = <-recorder.Events
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPortsTakenAnew(t *testing.T) {
	taken := func(ports string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		execution.SetContested(&w.Status, nil, []string{ports}, time.Unix(0, 0))
		return w
	}
	for name, tc := range map[string]struct {
		before, now *workv1alpha1.Work
		want        string
	}{
		"taken":       {&workv1alpha1.Work{}, taken("shop/cart: 30080"), "shop/cart: 30080"},
		"unchanged":   {taken("shop/cart: 30080"), taken("shop/cart: 30080"), ""},
		"others":      {taken("shop/cart: 30080"), taken("shop/cart: 30081"), "shop/cart: 30081"},
		"free again":  {taken("shop/cart: 30080"), &workv1alpha1.Work{}, ""},
		"never taken": {&workv1alpha1.Work{}, &workv1alpha1.Work{}, ""},
	} {
		if got := portsTakenAnew(&tc.before.Status, &tc.now.Status); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRelay_LimitsArePerCluster(t *testing.T) {
	all := map[string]*clusterv1alpha1.Cluster{"m1": build.Cluster("m1"), "m2": build.Cluster("m2")}
	env := memory.New(t, all["m1"], all["m2"])
	c := New(env.Client, env.Client, env.Recorder, env.Recorder, Deps{Clock: env.Clock, Metrics: prometheus.NewRegistry()})
	count := func(cluster string) (n int) {
		for range 2 * relayBurst {
			if c.allow(t.Context(), all[cluster]) {
				n++
			}
		}
		return n
	}
	if got := count("m1"); got != relayBurst {
		t.Errorf("%d events at once", got)
	}
	if got := count("m2"); got != relayBurst {
		t.Errorf("%d events at once of another cluster", got)
	}
	env.Clock.Step(2 * time.Second)
	if got := count("m1"); got != 2*relayRate {
		t.Errorf("%d events after two seconds", got)
	}
}

func TestReasonOf(t *testing.T) {
	if got := reasonOf("Failed to apply all manifests (0/1): no such kind"); got != "no such kind" {
		t.Errorf("got %q", got)
	}
	if got := reasonOf("something else"); got != "something else" {
		t.Errorf("got %q", got)
	}
}

func TestWorkChanged_InAControlPlaneThatWentBack(t *testing.T) {
	work := func(version, manifest string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2, UID: "u", ResourceVersion: version}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
		return w
	}
	tests := []struct {
		name     string
		old, now *workv1alpha1.Work
		want     bool
	}{
		{"only the status", work("5", "{}"), work("6", "{}"), false},
		{"an older version", work("9", "{}"), work("6", "{}"), true},
		{"the same generation of something else", work("5", "{}"), work("6", "{ }"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := workChanged(tt.old, tt.now); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
