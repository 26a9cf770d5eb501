package detector

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

const (
	// matchGrace is how long a template has no matching policy before that is
	// reported: a policy is often created right after the object that it selects.
	matchGrace = 5 * time.Second
	// eventTTL is how long API servers keep events by default. After a start,
	// templates that are older are not reported again.
	eventTTL = time.Hour
)

// unmatchedReporter reports templates that no policy selects.
type unmatchedReporter struct {
	live     client.Reader
	bindings *bindings
	waiting  *waiting
	queue    *queue
	events   *recorder
	clock    clock.PassiveClock
}

// report records an event on a template that no policy matches, once until a policy
// matches it, and not before matchGrace has passed. When that is over, the template is
// reconciled without a change by a user: a lazy policy that came meanwhile is not applied.
func (r *unmatchedReporter) report(ctx context.Context, obj *unstructured.Unstructured) error {
	if obj.GetDeletionTimestamp() != nil || !expectsPolicy(obj) {
		return nil
	}
	key, now := keyOf(obj), r.clock.Now()
	state := r.waiting.update(key, func(t *waitingTemplate) {
		if t.since.IsZero() {
			t.since = now
		}
	})
	if state.reported {
		return nil
	}
	if wait := state.since.Add(matchGrace).Sub(now); wait > 0 {
		r.queue.addAfter(templateKey{objectKey: key, byPolicy: true}, wait)
		return nil
	}
	known, err := r.reportedBefore(ctx, obj, state, now)
	if err != nil {
		return err
	}
	if !known {
		r.events.unmatched(obj)
	}
	r.waiting.update(key, func(t *waitingTemplate) { t.reported = true })
	return nil
}

// reportedBefore reports whether there is no need for an event: the template
// reaches clusters as a dependency of others, or an earlier process recorded the
// event.
func (r *unmatchedReporter) reportedBefore(ctx context.Context, obj *unstructured.Unstructured, state waitingTemplate, now time.Time) (bool, error) {
	binding, err := r.bindings.get(ctx, obj)
	if err != nil {
		return false, err
	}
	if binding != nil && len(binding.GetSpec().RequiredBy) > 0 {
		return true, nil
	}
	if !state.listed {
		return false, nil
	}
	if now.Sub(obj.GetCreationTimestamp().Time) >= eventTTL {
		return true, nil
	}
	namespace := cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault)
	var list corev1.EventList
	err = r.live.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{
		"involvedObject.uid": string(obj.GetUID()), "reason": ReasonApplyPolicyFailed,
	})
	if err != nil {
		return false, fmt.Errorf("listing the events of %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	for i := range list.Items {
		if list.Items[i].Message == messageNoPolicy {
			return true, nil
		}
	}
	return false, nil
}

// expectsPolicy reports whether a template without a policy is worth an event. It
// is not if it belongs to the control plane, if it configures the control plane itself, or if
// it needs no policy to get to members.
func expectsPolicy(obj *unstructured.Unstructured) bool {
	labels := obj.GetLabels()
	if metav1.GetControllerOf(obj) != nil || policy.Own(obj) != "" {
		return false
	}
	gk := obj.GroupVersionKind().GroupKind()
	switch gk.Group {
	case "":
		return expectsPolicyCore(obj)
	case "admissionregistration.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "coordination.k8s.io",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io":
		return false
	case "discovery.k8s.io":
		return labels["endpointslice.kubernetes.io/managed-by"] == ""
	case "apiextensions.k8s.io":
		return schema.ParseGroupResource(obj.GetName()).Group != "multicluster.x-k8s.io"
	}
	return true
}

func expectsPolicyCore(obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case "Namespace", "Node": // namespaces are synced to members, nodes belong to a cluster
		return false
	case "ServiceAccount":
		return obj.GetName() != "default"
	case "Endpoints":
		return obj.GetLabels()["endpoints.kubernetes.io/managed-by"] == ""
	}
	return true
}
