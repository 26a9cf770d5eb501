package problemdetector

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

func newNode(t *testing.T, c client.Client) (*node, *clocktesting.FakeClock, *record.FakeRecorder, func(error)) {
	t.Helper()
	clock, recorder := clocktesting.NewFakeClock(time.Unix(100_000, 0)), record.NewFakeRecorder(10)
	var failure error
	n := &node{
		name: "n1", reader: c, client: c, clock: clock, flips: flips{success: 20 * time.Second, failure: 30 * time.Second},
		lookup: func(context.Context) error { return failure }, events: events.New(recorder), pod: pod("ns", "p"),
	}
	return n, clock, recorder, func(err error) { failure = err }
}

func fakeNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// TestNode_FlipsAfterTheThresholds follows a node through a failure of its DNS server.
func TestNode_FlipsAfterTheThresholds(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(fakeNode()).WithStatusSubresource(&corev1.Node{}).Build()
	n, clock, _, fails := newNode(t, c)
	broken := errors.New("no such host")
	for i, step := range []struct {
		after time.Duration
		err   error
		want  corev1.ConditionStatus
	}{
		{0, nil, "True"}, // the first observation at once
		{5 * time.Second, broken, "True"},
		{29 * time.Second, broken, "True"},
		{time.Second, broken, "False"},
		{5 * time.Second, nil, "False"},
		{5 * time.Second, broken, "False"}, // starts again
		{5 * time.Second, nil, "False"},
		{19 * time.Second, nil, "False"},
		{time.Second, nil, "True"},
	} {
		clock.Step(step.after)
		fails(step.err)
		if err := n.report(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := &corev1.Node{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "n1"}, got); err != nil {
			t.Fatal(err)
		}
		condition := clustercondition.NodeCondition(got, conditionType)
		if condition == nil || condition.Status != step.want || !condition.LastHeartbeatTime.Time.Equal(clock.Now()) {
			t.Fatalf("step %d: the condition is %+v, want %s", i, condition, step.want)
		}
		if failed := condition.Status == corev1.ConditionFalse; failed != (condition.Message == "no such host") {
			t.Errorf("step %d: the message is %q", i, condition.Message)
		}
		if clustercondition.NodeCondition(got, corev1.NodeReady) == nil {
			t.Fatal("the other conditions are missing")
		}
	}
}

func TestNode_RecordsEventsOnItsPod(t *testing.T) {
	refuse := false
	c := fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if refuse {
				return errors.New("refused")
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	n, _, recorder, _ := newNode(t, c)
	for _, want := range []string{reasonLoadFailed, reasonStoreFailed} {
		if err := n.report(t.Context()); err == nil {
			t.Fatal("no error")
		}
		if got := <-recorder.Events; !strings.HasPrefix(got, "Warning "+want+" ") {
			t.Errorf("the event is %q", got)
		}
		refuse = true
		if err := c.Create(t.Context(), fakeNode()); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
}

func TestReporter_WritesOnceAndOnlyWhatItKnows(t *testing.T) {
	now := time.Unix(100_000, 0)
	resolving := fakeNode()
	resolving.Status.Conditions = append(resolving.Status.Conditions, corev1.NodeCondition{
		Type: conditionType, Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.NewTime(now),
	})
	for _, tc := range []struct {
		name    string
		node    *corev1.Node
		cluster *clusterv1alpha1.Cluster
		writes  int
	}{
		{"no node resolves", resolving, &clusterv1alpha1.Cluster{}, 1},
		{"nothing is known", fakeNode(), &clusterv1alpha1.Cluster{}, 0},
		{"no cluster", resolving, nil, 0},
		{"the cluster is being deleted", resolving, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}, Finalizers: []string{"f"}}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			writes := 0
			builder := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithStatusSubresource(&clusterv1alpha1.Cluster{}).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					writes++
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				},
			})
			if tc.cluster != nil {
				tc.cluster.Name = "m1"
				tc.cluster.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
				builder = builder.WithObjects(tc.cluster)
			}
			plane := builder.Build()
			r := newReporter(&Options{ClusterName: "m1", StaleThreshold: time.Minute},
				fake.NewClientBuilder().WithObjects(tc.node).Build(), plane, clocktesting.NewFakeClock(now))
			for range 2 {
				if err := r.report(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if writes != tc.writes {
				t.Errorf("%d writes, want %d", writes, tc.writes)
			}
			got := &clusterv1alpha1.Cluster{}
			if err := plane.Get(t.Context(), client.ObjectKey{Name: "m1"}, got); tc.cluster != nil && (err != nil || len(got.Status.Conditions) != 1+tc.writes) {
				t.Errorf("the conditions are %v, %v", got.Status.Conditions, err)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"defaults with what is required", func(*Options) {}, ""},
		{"no cluster", func(o *Options) { o.ClusterName = "" }, "--cluster-name is missing"},
		{"no control plane", func(o *Options) { o.KarmadaKubeconfig = "" }, "--karmada-kubeconfig is missing"},
		{"unknown detector", func(o *Options) { o.Detectors = []string{"disk"} }, `unknown detector "disk"`},
		{"no period", func(o *Options) { o.Period = 0 }, "--coredns-detect-period must be at least"},
		{"port", func(o *Options) { o.HealthzPort = 70000 }, "--healthz-port must be between"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := NewOptions()
			o.ClusterName, o.KarmadaKubeconfig = "m1", "file"
			tc.change(o)
			if err := o.Validate(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestOptions_Enabled(t *testing.T) {
	for list, want := range map[string]bool{"*": true, "coredns-detector": true, "-coredns-detector,*": false, "": false} {
		if o := (&Options{Detectors: strings.Split(list, ",")}); o.enabled() != want {
			t.Errorf("%q: %t", list, o.enabled())
		}
	}
}

func TestByAddress(t *testing.T) {
	for host, want := range map[string]bool{"https://10.0.0.1:443": true, "https://[fd00::1]:443": true, "https://kubernetes.default:443": false, "": false} {
		if byAddress(host) != want {
			t.Errorf("%q: %t", host, !want)
		}
	}
}
