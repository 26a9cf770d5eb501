package execution

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// relay tells users, on the templates, what the agent of a cluster in Pull mode did
// with a Work: an agent has no rights in the namespaces of templates, so it says it
// in the Work only.
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
	for i := range now.Spec.Workload.Manifests {
		raw := now.Spec.Workload.Manifests[i].Raw
		if applied.Status == metav1.ConditionFalse {
			c.events.failedFor(failedObjectOf(raw, reasonOf(applied.Message)), name)
			continue
		}
		var m metav1.PartialObjectMetadata
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion(m.APIVersion)
		obj.SetKind(m.Kind)
		obj.SetNamespace(m.Namespace)
		obj.SetName(m.Name)
		obj.SetAnnotations(m.Annotations)
		c.events.objectApplied(obj, name)
	}
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
