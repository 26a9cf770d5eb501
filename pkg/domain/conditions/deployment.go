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

	"github.com/karmada-toolkit/karmada/internal/plaintext"
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

// deploymentConditions are the conditions of a Deployment while they are computed.
type deploymentConditions struct {
	c       *computation
	rollout rollout
	list    []appsv1.DeploymentCondition
}

func deployment(c *computation) error {
	d := &deploymentConditions{c: c}
	if err := decode(c.Aggregated.Object, "spec", &d.rollout); err != nil {
		return err
	}
	if err := decode(c.status, "conditions", &d.list); err != nil {
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
	if !d.available() {
		available.Status, available.Reason = corev1.ConditionFalse, reasonUnavailable
		available.Message = "Deployment does not have minimum availability."
	}
	d.replace(available, false)
	d.setProgressing()
	d.setReplicaFailure()
	return set(c, d.list)
}

// available reports whether each target cluster has the minimum of available
// replicas.
func (d *deploymentConditions) available() bool {
	if len(d.c.members) == 0 {
		return d.rollout.Replicas != nil && *d.rollout.Replicas == 0
	}
	for i := range d.c.members {
		m := &d.c.members[i]
		if own := m.condition(string(appsv1.DeploymentAvailable)); own != nil {
			if own.Status != corev1.ConditionTrue {
				return false
			}
			continue
		}
		if m.health != workv1alpha2.ResourceHealthy && m.status.AvailableReplicas < m.desired-d.rollout.maxUnavailable(m.desired) {
			return false
		}
	}
	return true
}

// complete reports whether each target cluster runs the template's generation and
// nothing else.
func (d *deploymentConditions) complete() bool {
	if len(d.c.members) == 0 {
		return d.rollout.Replicas != nil && *d.rollout.Replicas == 0
	}
	return !slices.ContainsFunc(d.c.members, func(m member) bool {
		done := m.health == workv1alpha2.ResourceHealthy ||
			m.health != workv1alpha2.ResourceUnhealthy && m.status.UpdatedReplicas >= m.desired && m.status.AvailableReplicas >= m.desired
		return !done || !d.c.observed(&m) || m.status.Replicas > m.status.UpdatedReplicas
	})
}

// setProgressing sets Progressing by the rules of the Deployment controller, applied
// to the sums of all clusters.
func (d *deploymentConditions) setProgressing() {
	deadline, limited := d.rollout.deadline()
	last := d.find(appsv1.DeploymentProgressing)
	next := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	name := d.c.Aggregated.GetName()
	switch {
	case !limited:
		d.remove(appsv1.DeploymentProgressing)
		return
	case d.rollout.Paused:
		next.Status, next.Reason, next.Message = corev1.ConditionUnknown, reasonPaused, "Deployment is paused"
		if last == nil || last.Reason != reasonTimedOut {
			d.replace(next, false)
		}
		return
	case d.complete():
		next.Reason, next.Message = reasonComplete, fmt.Sprintf("Deployment %q has successfully progressed.", name)
		d.replace(next, false)
		return
	case d.rolledOut(last):
		return
	case d.timedOutInMember():
	case starts(last) || d.c.progressed():
		next.Reason, next.Message = reasonUpdated, fmt.Sprintf("Deployment %q is progressing.", name)
		d.c.recheck = deadline
		d.replace(next, true)
		return
	case last.Reason == reasonTimedOut:
		return
	default:
		if d.c.recheck = last.LastUpdateTime.Add(deadline).Sub(d.c.Now); d.c.recheck > 0 {
			return
		}
	}
	d.c.recheck = 0
	next.Status, next.Reason, next.Message = corev1.ConditionFalse, reasonTimedOut, fmt.Sprintf("Deployment %q has timed out progressing.", name)
	d.replace(next, false)
}

// rolledOut reports whether the template's generation was rolled out before: what
// happens now is a loss of replicas or a change of their number.
func (d *deploymentConditions) rolledOut(last *appsv1.DeploymentCondition) bool {
	return last != nil && last.Reason == reasonComplete && number(d.c.status, "replicas") == number(d.c.status, "updatedReplicas") &&
		!slices.ContainsFunc(d.c.members, func(m member) bool { return !d.c.observed(&m) })
}

// starts reports whether a rollout begins, after none or one that ended or paused.
func starts(last *appsv1.DeploymentCondition) bool {
	return last == nil || last.Reason != reasonUpdated && last.Reason != reasonTimedOut
}

// timedOutInMember reports whether a member that reports its conditions exceeded
// the deadline with the template's generation.
func (d *deploymentConditions) timedOutInMember() bool {
	return slices.ContainsFunc(d.c.members, func(m member) bool {
		own := m.condition(string(appsv1.DeploymentProgressing))
		return own != nil && own.Reason == reasonTimedOut && d.c.observed(&m)
	})
}

// progressed reports whether the rollout advanced since the current status of the
// template.
func (c *computation) progressed() bool {
	grew := func(field string) bool { return number(c.status, field) > number(c.before, field) }
	outdated := func(status map[string]any) int64 {
		return number(status, "replicas") - number(status, "updatedReplicas")
	}
	return grew("updatedReplicas") || grew("readyReplicas") || grew("availableReplicas") ||
		grew("observedGeneration") || outdated(c.status) < outdated(c.before)
}

// setReplicaFailure sets the ReplicaFailure of the first member that reports one.
func (d *deploymentConditions) setReplicaFailure() {
	for i := range d.c.members {
		m := &d.c.members[i]
		if own := m.condition(string(appsv1.DeploymentReplicaFailure)); own != nil && own.Status == corev1.ConditionTrue {
			message := fmt.Sprintf("cluster %s: %s", m.cluster, plaintext.Line(own.Message, maxMessage))
			d.replace(appsv1.DeploymentCondition{
				Type: appsv1.DeploymentReplicaFailure, Status: own.Status, Reason: plaintext.Line(own.Reason, maxReason), Message: message,
			}, false)
			d.find(appsv1.DeploymentReplicaFailure).Message = message
			return
		}
	}
	d.remove(appsv1.DeploymentReplicaFailure)
}

// replace sets a condition. One that has the same status and reason is kept, unless
// renew is set: then its update time is now.
func (d *deploymentConditions) replace(next appsv1.DeploymentCondition, renew bool) {
	last := d.find(next.Type)
	if last != nil && last.Status == next.Status && last.Reason == next.Reason && !renew {
		return
	}
	next.LastUpdateTime, next.LastTransitionTime = metav1.NewTime(d.c.Now), metav1.NewTime(d.c.Now)
	if last == nil {
		d.list = append(d.list, next)
		return
	}
	if last.Status == next.Status {
		next.LastTransitionTime = last.LastTransitionTime
	}
	*last = next
}

func (d *deploymentConditions) find(name appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.list {
		if d.list[i].Type == name {
			return &d.list[i]
		}
	}
	return nil
}

func (d *deploymentConditions) remove(name appsv1.DeploymentConditionType) {
	d.list = slices.DeleteFunc(d.list, func(c appsv1.DeploymentCondition) bool { return c.Type == name })
}
