package execution

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
)

const (
	// relayRate and relayBurst limit the events about templates that a cluster in Pull
	// mode causes: per second, and at once.
	relayRate, relayBurst = 5, 500
	// relayMessage is the limit of the message of a failure, in bytes.
	relayMessage = 1024
)

// relayEvents records events, on templates, about what the agents of clusters in Pull mode did
// with Works: an agent has no rights in the namespaces of templates, so it reports that
// in the Work only. An agent can only cause events for the template of the binding that
// the Work was created for.
func (c *Controller) relayEvents(ctx context.Context, before, now *workv1alpha1.Work) {
	old := meta.FindStatusCondition(before.Status.Conditions, workv1alpha1.WorkApplied)
	applied := meta.FindStatusCondition(now.Status.Conditions, workv1alpha1.WorkApplied)
	anew, ports := appliedAnew(old, applied), portsTakenAnew(&before.Status, &now.Status)
	if !anew && ports == "" {
		return
	}
	name, err := names.ClusterOfExecutionNamespace(now.Namespace)
	if err != nil {
		return
	}
	cluster, err := c.find(ctx, name)
	if err != nil || cluster == nil || cluster.Spec.SyncMode != clusterv1alpha1.Pull || c.deps.Accept(cluster) {
		return
	}
	binding := c.bindingOf(ctx, now)
	if binding == nil || !createdFor(now, binding, name) || !c.allow(ctx, cluster) {
		return
	}
	ref := binding.GetSpec().Resource
	template := &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if ports != "" {
		c.events.otherPorts(template, key.String(), name, plaintext.Line(ports, relayMessage))
	}
	switch {
	case !anew:
	case applied.Status == metav1.ConditionFalse:
		c.events.failedFor(failedObject{name: key.String(), message: plaintext.Line(reasonOf(applied.Message), relayMessage), template: template}, name)
	default:
		c.events.appliedTo(template, key, name)
	}
}

// bindingOf returns the binding that the annotations of a Work name, or nil.
func (c *Controller) bindingOf(ctx context.Context, work *workv1alpha1.Work) workv1alpha2.Binding {
	var binding workv1alpha2.Binding = &workv1alpha2.ResourceBinding{}
	key := client.ObjectKey{
		Namespace: work.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation], Name: work.Annotations[workv1alpha2.ResourceBindingNameAnnotation],
	}
	if key.Name == "" {
		binding, key = &workv1alpha2.ClusterResourceBinding{}, client.ObjectKey{Name: work.Annotations[workv1alpha2.ClusterResourceBindingAnnotation]}
	}
	if key.Name == "" || c.client.Get(ctx, key, binding, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	return binding
}

// createdFor reports whether a Work is the one that the control plane made for a
// binding in a cluster.
func createdFor(work *workv1alpha1.Work, binding workv1alpha2.Binding, cluster string) bool {
	label := workv1alpha2.ResourceBindingPermanentIDLabel
	if binding.GetNamespace() == "" {
		label = workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	spec := binding.GetSpec()
	id := binding.GetLabels()[label]
	required := func(s workv1alpha2.BindingSnapshot) bool {
		return slices.ContainsFunc(s.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	}
	return id != "" && work.Labels[label] == id &&
		work.Name == names.Work(spec.Resource.Kind, spec.Resource.Name, spec.Resource.Namespace) &&
		(spec.TargetContains(cluster) || spec.EvictingFrom(cluster) || slices.ContainsFunc(spec.RequiredBy, required))
}

// allow reports whether a cluster may cause another event now.
func (c *Controller) allow(ctx context.Context, cluster *clusterv1alpha1.Cluster) bool {
	limiter, ok := c.limiters.Open(ctx, cluster, nil, func() *rate.Limiter { return rate.NewLimiter(relayRate, relayBurst) })
	return ok && limiter.AllowN(c.deps.Clock.Now(), 1)
}

// appliedAnew reports whether the condition Applied has a new result: another generation
// was applied, or there is another failure.
func appliedAnew(old, now *metav1.Condition) bool {
	switch {
	case now == nil:
		return false
	case old == nil || old.Status != now.Status:
		return true
	case now.Status == metav1.ConditionFalse:
		return old.Message != now.Message
	}
	return old.ObservedGeneration != now.ObservedGeneration
}

// portsTakenAnew returns the node ports of the condition Contested if they are others than before.
func portsTakenAnew(before, now *workv1alpha1.WorkStatus) string {
	old := meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkContested)
	taken := meta.FindStatusCondition(now.Conditions, workv1alpha1.WorkContested)
	if taken == nil || taken.Reason != workv1alpha1.WorkNodePortTakenReason || old != nil && old.Message == taken.Message {
		return ""
	}
	_, ports, _ := strings.Cut(taken.Message, execution.NodePortsFollow)
	return ports
}

// reasonOf returns the errors in the message of the condition Applied.
func reasonOf(message string) string {
	if _, reason, ok := strings.Cut(message, "): "); ok {
		return reason
	}
	return message
}
