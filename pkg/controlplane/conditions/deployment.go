package conditions

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Reasons of the conditions of Deployments, as Kubernetes has them.
const (
	reasonAvailable   = "MinimumReplicasAvailable"
	reasonUnavailable = "MinimumReplicasUnavailable"
	reasonComplete    = "NewReplicaSetAvailable"
	reasonUpdated     = "ReplicaSetUpdated"
	reasonTimedOut    = "ProgressDeadlineExceeded"
	reasonPaused      = "DeploymentPaused"
)

// rollout are the fields of a Deployment's spec that its conditions depend on.
type rollout struct {
	Replicas                *int32                    `json:"replicas"`
	Paused                  bool                      `json:"paused"`
	ProgressDeadlineSeconds *int32                    `json:"progressDeadlineSeconds"`
	Strategy                appsv1.DeploymentStrategy `json:"strategy"`
}

// deadline returns how long a rollout may make no progress, and false when it may
// for any time.
func (r *rollout) deadline() (time.Duration, bool) {
	if r.ProgressDeadlineSeconds == nil || *r.ProgressDeadlineSeconds == math.MaxInt32 {
		return 0, false
	}
	return time.Duration(*r.ProgressDeadlineSeconds) * time.Second, true
}

// maxUnavailable returns how many of the replicas in one cluster may be
// unavailable, by the rules of the Deployment controller.
func (r *rollout) maxUnavailable(replicas int32) int32 {
	if replicas == 0 || r.Strategy.Type == appsv1.RecreateDeploymentStrategyType || r.Strategy.RollingUpdate == nil {
		return 0
	}
	scaled := func(value *intstr.IntOrString, up bool) int32 {
		n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromInt32(0)), int(replicas), up)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	unavailable := scaled(r.Strategy.RollingUpdate.MaxUnavailable, false)
	if unavailable == 0 && scaled(r.Strategy.RollingUpdate.MaxSurge, true) == 0 {
		unavailable = 1
	}
	return min(unavailable, replicas)
}

func (c *computation) deployment() error {
	var r rollout
	if err := decode(c.Aggregated.Object, "spec", &r); err != nil {
		return err
	}
	var conditions []appsv1.DeploymentCondition
	if err := decode(c.status, "conditions", &conditions); err != nil {
		return err
	}
	if err := c.observe(); err != nil {
		return err
	}
	if c.Aggregated.GetLabels()[workv1alpha2.RetainReplicasLabel] == "true" {
		for i := range c.members { // the replicas are the member's own
			c.members[i].desired = c.members[i].status.Replicas
		}
	}
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: reasonAvailable,
		Message: "Deployment has minimum availability.",
	}
	if !c.available(&r) {
		available.Status, available.Reason = corev1.ConditionFalse, reasonUnavailable
		available.Message = "Deployment does not have minimum availability."
	}
	conditions = c.replace(conditions, available, false)
	conditions = c.progressing(conditions, &r)
	conditions = c.replicaFailure(conditions)
	return set(c, conditions)
}

// available reports whether each target cluster has the minimum of available
// replicas.
func (c *computation) available(r *rollout) bool {
	if len(c.members) == 0 {
		return r.Replicas != nil && *r.Replicas == 0
	}
	for i := range c.members {
		m := &c.members[i]
		if own := m.condition(string(appsv1.DeploymentAvailable)); own != nil {
			if own.Status != corev1.ConditionTrue {
				return false
			}
			continue
		}
		if m.health != workv1alpha2.ResourceHealthy && m.status.AvailableReplicas < m.desired-r.maxUnavailable(m.desired) {
			return false
		}
	}
	return true
}

// complete reports whether each target cluster runs the template's generation and
// nothing else.
func (c *computation) complete(r *rollout) bool {
	if len(c.members) == 0 {
		return r.Replicas != nil && *r.Replicas == 0
	}
	return !slices.ContainsFunc(c.members, func(m member) bool {
		done := m.health == workv1alpha2.ResourceHealthy ||
			m.health != workv1alpha2.ResourceUnhealthy && m.status.UpdatedReplicas >= m.desired && m.status.AvailableReplicas >= m.desired
		return !done || !c.observed(&m) || m.status.Replicas > m.status.UpdatedReplicas
	})
}

// progressing returns the conditions with Progressing, which follows the rules of
// the Deployment controller over the sums of all clusters.
func (c *computation) progressing(conditions []appsv1.DeploymentCondition, r *rollout) []appsv1.DeploymentCondition {
	deadline, limited := r.deadline()
	last := find(conditions, appsv1.DeploymentProgressing)
	next := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	name := c.Aggregated.GetName()
	switch {
	case !limited:
		return remove(conditions, appsv1.DeploymentProgressing)
	case r.Paused:
		next.Status, next.Reason, next.Message = corev1.ConditionUnknown, reasonPaused, "Deployment is paused"
		if last != nil && last.Reason == reasonTimedOut {
			return conditions
		}
		return c.replace(conditions, next, false)
	case c.complete(r):
		next.Reason, next.Message = reasonComplete, fmt.Sprintf("Deployment %q has successfully progressed.", name)
		return c.replace(conditions, next, false)
	case c.rolledOut(last):
		return conditions
	case c.timedOutInMember():
	case starts(last) || c.progressed():
		next.Reason, next.Message = reasonUpdated, fmt.Sprintf("Deployment %q is progressing.", name)
		c.recheck = deadline
		return c.replace(conditions, next, true)
	case last.Reason == reasonTimedOut:
		return conditions
	default:
		if c.recheck = last.LastUpdateTime.Add(deadline).Sub(c.Now); c.recheck > 0 {
			return conditions
		}
	}
	c.recheck = 0
	next.Status, next.Reason, next.Message = corev1.ConditionFalse, reasonTimedOut, fmt.Sprintf("Deployment %q has timed out progressing.", name)
	return c.replace(conditions, next, false)
}

// rolledOut reports whether the template's generation was rolled out before: what
// happens now is a loss of replicas or a change of their number.
func (c *computation) rolledOut(last *appsv1.DeploymentCondition) bool {
	return last != nil && last.Reason == reasonComplete && number(c.status, "replicas") == number(c.status, "updatedReplicas") &&
		!slices.ContainsFunc(c.members, func(m member) bool { return !c.observed(&m) })
}

// starts reports whether a rollout begins, after none or one that ended or paused.
func starts(last *appsv1.DeploymentCondition) bool {
	return last == nil || last.Reason != reasonUpdated && last.Reason != reasonTimedOut
}

// timedOutInMember reports whether a member that reports its conditions exceeded
// the deadline with the template's generation.
func (c *computation) timedOutInMember() bool {
	return slices.ContainsFunc(c.members, func(m member) bool {
		own := m.condition(string(appsv1.DeploymentProgressing))
		return own != nil && own.Reason == reasonTimedOut && c.observed(&m)
	})
}

// progressed reports whether the rollout got further than the status of the
// template says.
func (c *computation) progressed() bool {
	grew := func(field string) bool { return number(c.status, field) > number(c.before, field) }
	outdated := func(status map[string]any) int64 {
		return number(status, "replicas") - number(status, "updatedReplicas")
	}
	return grew("updatedReplicas") || grew("readyReplicas") || grew("availableReplicas") ||
		grew("observedGeneration") || outdated(c.status) < outdated(c.before)
}

// replicaFailure returns the conditions with the ReplicaFailure of a member that
// reports one.
func (c *computation) replicaFailure(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	for i := range c.members {
		if own := c.members[i].condition(string(appsv1.DeploymentReplicaFailure)); own != nil && own.Status == corev1.ConditionTrue {
			return c.replace(conditions, appsv1.DeploymentCondition{
				Type: appsv1.DeploymentReplicaFailure, Status: own.Status, Reason: own.Reason, Message: own.Message,
			}, false)
		}
	}
	return remove(conditions, appsv1.DeploymentReplicaFailure)
}

// replace returns the conditions with next. One that has the same status and reason
// stays as it is, unless renew is set: then its update time is now.
func (c *computation) replace(conditions []appsv1.DeploymentCondition, next appsv1.DeploymentCondition, renew bool) []appsv1.DeploymentCondition {
	last := find(conditions, next.Type)
	if last != nil && last.Status == next.Status && last.Reason == next.Reason && !renew {
		return conditions
	}
	next.LastUpdateTime, next.LastTransitionTime = metav1.NewTime(c.Now), metav1.NewTime(c.Now)
	if last == nil {
		return append(conditions, next)
	}
	if last.Status == next.Status {
		next.LastTransitionTime = last.LastTransitionTime
	}
	*last = next
	return conditions
}

func find(conditions []appsv1.DeploymentCondition, name appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range conditions {
		if conditions[i].Type == name {
			return &conditions[i]
		}
	}
	return nil
}

func remove(conditions []appsv1.DeploymentCondition, name appsv1.DeploymentConditionType) []appsv1.DeploymentCondition {
	return slices.DeleteFunc(conditions, func(d appsv1.DeploymentCondition) bool { return d.Type == name })
}
