package execution

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

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
)

const (
	// relayRate and relayBurst bound the events about templates that a cluster in Pull
	// mode causes: events per second, and how many at once.
	relayRate, relayBurst = 5, 500
	// relayMessage is the longest reason of a failure that is relayed, in bytes.
	relayMessage = 1024
)

// relay records events, on templates, about what the agent of a cluster in Pull mode
// did with a Work: an agent has no rights in the namespaces of templates, so it
// reports that in the Work only. What an agent reports is not trusted: it is relayed
// for the template of the binding that the Work was made for, and no other.
func (c *Controller) relay(ctx context.Context, before, now *workv1alpha1.Work) {
	old := meta.FindStatusCondition(before.Status.Conditions, workv1alpha1.WorkApplied)
	applied := meta.FindStatusCondition(now.Status.Conditions, workv1alpha1.WorkApplied)
	if !newsOfApplied(old, applied) {
		return
	}
	name, err := names.ClusterOfExecutionNamespace(now.Namespace)
	if err != nil {
		return
	}
	cluster, err := c.cluster(ctx, name)
	if err != nil || cluster == nil || cluster.Spec.SyncMode != clusterv1alpha1.Pull || c.deps.Accept(cluster) {
		return
	}
	binding := c.bindingOf(ctx, now)
	if binding == nil || !speaksFor(now, binding, name) || !c.relays.allow(name, c.deps.Clock.Now()) {
		return
	}
	ref := binding.GetSpec().Resource
	template := &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if applied.Status == metav1.ConditionFalse {
		c.events.failedFor(failedObject{name: key.String(), message: plaintext.Line(reasonOf(applied.Message), relayMessage), template: template}, name)
		return
	}
	c.events.appliedTo(template, key, name)
}

// bindingOf returns the binding that a Work says it comes from, or nil.
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

// speaksFor reports whether a Work is the one that the control plane made for a
// binding in a cluster.
func speaksFor(work *workv1alpha1.Work, binding workv1alpha2.Binding, cluster string) bool {
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

// relays bounds how many events clusters cause.
type relays struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// allow reports whether a cluster may cause another event now.
func (r *relays) allow(cluster string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.limiters[cluster]
	if l == nil {
		if r.limiters == nil {
			r.limiters = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(relayRate, relayBurst)
		r.limiters[cluster] = l
	}
	return l.AllowN(now, 1)
}

// forget drops what is known of a cluster that is gone.
func (r *relays) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.limiters, cluster)
}

// newsOfApplied says whether the condition Applied tells something new: that this
// generation is applied, or a failure.
func newsOfApplied(old, now *metav1.Condition) bool {
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

// reasonOf returns why objects were not applied, without how many.
func reasonOf(message string) string {
	if _, reason, ok := strings.Cut(message, "): "); ok {
		return reason
	}
	return message
}
