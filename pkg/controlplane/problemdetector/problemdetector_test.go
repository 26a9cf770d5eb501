package problemdetector

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

func newNode(m *memory.Env) (*node, func(error)) {
	var failure error
	n := &node{
		name: "n1", reader: m.Client, client: m.Client, clock: m.Clock, flips: flips{success: 20 * time.Second, failure: 30 * time.Second},
		lookup: func(context.Context) error { return failure }, events: events.New(m.Recorder), pod: pod("ns", "p"),
	}
	return n, func(err error) { failure = err }
}

func fakeNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// TestNode_FlipsAfterTheThresholds follows a node through a failure of its DNS server.
func TestNode_FlipsAfterTheThresholds(t *testing.T) {
	m := memory.New(t, fakeNode())
	n, fails := newNode(m)
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
		m.Clock.Step(step.after)
		fails(step.err)
		m.Must(n.report(t.Context()))
		got := memory.Get[*corev1.Node](m, memory.Key("", "n1"))
		condition := clustercondition.NodeCondition(got, conditionType)
		if condition == nil || condition.Status != step.want || !condition.LastHeartbeatTime.Time.Equal(m.Clock.Now()) {
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
	m := memory.New(t)
	n, _ := newNode(m)
	for _, want := range []string{reasonLoadFailed, reasonStoreFailed} {
		if err := n.report(t.Context()); err == nil {
			t.Fatal("no error")
		}
		if got := m.Events(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning "+want+" ") {
			t.Errorf("events %q", got)
		}
		m.FailOn("status Node ", errors.New("refused"))
		if err := m.Stored.Create(t.Context(), fakeNode()); client.IgnoreAlreadyExists(err) != nil {
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
			plane := memory.New(t)
			if tc.cluster != nil {
				tc.cluster.Name = "m1"
				tc.cluster.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
				plane = memory.New(t, tc.cluster)
			}
			plane.Clock.SetTime(now)
			r := newReporter(&Options{ClusterName: "m1", StaleThreshold: time.Minute}, memory.New(t, tc.node).Client, plane.Client, plane.Clock)
			plane.Must(r.report(t.Context()))
			writes := len(plane.Writes())
			plane.Stable(func() { plane.Must(r.report(t.Context())) })
			if writes != tc.writes {
				t.Errorf("%d writes, want %d", writes, tc.writes)
			}
			got := &clusterv1alpha1.Cluster{}
			if err := plane.Stored.Get(t.Context(), client.ObjectKey{Name: "m1"}, got); tc.cluster != nil && (err != nil || len(got.Status.Conditions) != 1+tc.writes) {
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
