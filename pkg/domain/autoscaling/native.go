package autoscaling

import (
	"encoding/json"
	"math"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Propagated reports whether a template has the label of a policy.
func Propagated(labels map[string]string) bool {
	_, namespaced := labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]
	_, cluster := labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel]
	return namespaced || cluster
}

// SameTarget reports whether two references are to the same object. Versions do not matter.
func SameTarget(a, b autoscalingv2.CrossVersionObjectReference) bool {
	return a.Kind == b.Kind && a.Name == b.Name && group(a.APIVersion) == group(b.APIVersion)
}

// group returns the group of an API version, empty for the core group.
func group(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// Marking is what becomes of the label that makes members keep their replicas.
type Marking int

// The markings.
const (
	// KeepMark leaves the label as it is.
	KeepMark Marking = iota
	// AddMark sets it.
	AddMark
	// RemoveMark removes it.
	RemoveMark
)

// Mark decides about the label of a target from the HorizontalPodAutoscalers of its namespace: a propagated one sets it,
// and it is removed when none is left. One that is no longer propagated leaves it.
func Mark(target autoscalingv2.CrossVersionObjectReference, hpas []autoscalingv2.HorizontalPodAutoscaler) Marking {
	marking := RemoveMark
	for i := range hpas {
		if hpas[i].DeletionTimestamp != nil || !SameTarget(hpas[i].Spec.ScaleTargetRef, target) {
			continue
		}
		if Propagated(hpas[i].Labels) {
			return AddMark
		}
		marking = KeepMark
	}
	return marking
}

// SyncReplicas returns the replicas that a Deployment gets from its status, where HorizontalPodAutoscalers scale it in
// members, and whether it is time to write them: once its schedule and all statuses are current.
func SyncReplicas(d *appsv1.Deployment, b *workv1alpha2.ResourceBinding) (int32, bool) {
	if d.Labels[workv1alpha2.RetainReplicasLabel] != "true" || d.Spec.Replicas == nil || *d.Spec.Replicas == d.Status.Replicas {
		return 0, false
	}
	if len(b.Spec.Clusters) == 0 { // such as a binding that was deleted and is created again
		return 0, false
	}
	if !divides(b, d) || b.Spec.Replicas != *d.Spec.Replicas || b.Generation != b.Status.SchedulerObservedGeneration || len(b.Spec.Clusters) != len(b.Status.AggregatedStatus) {
		return 0, false
	}
	sum := int64(0)
	for i := range b.Status.AggregatedStatus {
		raw := b.Status.AggregatedStatus[i].Status
		if raw == nil {
			return 0, false
		}
		var status appsv1.DeploymentStatus
		if err := json.Unmarshal(raw.Raw, &status); err != nil || status.Replicas <= 0 {
			return 0, false
		}
		sum += int64(status.Replicas)
	}
	if sum != int64(d.Status.Replicas) || sum > math.MaxInt32 {
		return 0, false
	}
	return d.Status.Replicas, true
}

// divides reports whether a binding divides the replicas of a Deployment.
func divides(b *workv1alpha2.ResourceBinding, d *appsv1.Deployment) bool {
	r, p := b.Spec.Resource, b.Spec.Placement
	return r.Kind == "Deployment" && group(r.APIVersion) == appsv1.GroupName && r.Namespace == d.Namespace && r.Name == d.Name &&
		p != nil && p.ReplicaScheduling != nil && p.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided
}
