package problemdetector

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// Reasons of events on the pod of the detector.
const (
	reasonLoadFailed  = "LoadCorednsConditionFailed"
	reasonStoreFailed = "StoreCorednsConditionFailed"
)

// conditionType is the condition of nodes and clusters.
const conditionType corev1.NodeConditionType = clusterv1alpha1.ServiceDomainNameResolutionReady

// node reports whether one node resolves names, as a condition of the Node.
type node struct {
	name   string
	reader client.Reader
	client client.Client
	lookup func(context.Context) error
	clock  clock.WithTicker
	flips  flips
	events *events.Recorder
	// pod is what events are recorded on, or nil.
	pod *corev1.ObjectReference
}

// report resolves a name and writes the condition, with a new heartbeat.
func (n *node) report(ctx context.Context) error {
	observed := n.observe(ctx)
	obj := &corev1.Node{}
	if err := n.reader.Get(ctx, client.ObjectKey{Name: n.name}, obj); err != nil {
		return n.failed(reasonLoadFailed, fmt.Errorf("reading the condition of node %q: %w", n.name, err))
	}
	stored := clustercondition.NodeCondition(obj, conditionType)
	if !n.flips.due(stored, observed.Status, n.clock.Now()) {
		observed.Status, observed.Reason, observed.Message = stored.Status, stored.Reason, stored.Message
	}
	if observed.LastTransitionTime = observed.LastHeartbeatTime; stored != nil && stored.Status == observed.Status {
		observed.LastTransitionTime = stored.LastTransitionTime
	}
	// The conditions of a Node are merged by their types.
	change := patch.Strategic(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{observed}}})
	if err := n.client.Status().Patch(ctx, obj, change); err != nil {
		return n.failed(reasonStoreFailed, fmt.Errorf("writing the condition of node %q: %w", n.name, err))
	}
	if n.pod != nil {
		n.events.Recovered(n.pod)
	}
	return nil
}

// observe resolves a name, for half of the time that is left.
func (n *node) observe(ctx context.Context) corev1.NodeCondition {
	begin := n.clock.Now()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, begin.Add(deadline.Sub(begin)/2))
		defer cancel()
	}
	c := corev1.NodeCondition{
		Type: conditionType, Status: corev1.ConditionTrue, Reason: clustercondition.ReasonNameResolutionReady,
		Message: "service domain name resolution is ready",
	}
	if err := n.lookup(ctx); err != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, clustercondition.ReasonNameResolutionFailed, err.Error()
	}
	c.LastHeartbeatTime = metav1.NewTime(n.clock.Now())
	return c
}

// failed records an event on the pod, and returns the error.
func (n *node) failed(reason string, err error) error {
	if n.pod != nil {
		n.events.Warning(n.pod, reason, err.Error())
	}
	return err
}

// flips delays changes of the condition of a node until the other status has lasted.
type flips struct {
	success, failure time.Duration

	observed corev1.ConditionStatus
	since    time.Time
}

// due reports whether an observed status replaces that of the stored condition, which may be nil. The first observation
// does at once.
func (f *flips) due(stored *corev1.NodeCondition, observed corev1.ConditionStatus, now time.Time) bool {
	if f.observed == "" {
		f.observed = observed // without a time: the process does not know for how long
	}
	if f.observed != observed {
		f.observed, f.since = observed, now
	}
	wait := f.failure
	if observed == corev1.ConditionTrue {
		wait = f.success
	}
	return stored == nil || stored.Status == observed || f.since.IsZero() || now.Sub(f.since) >= wait
}
