package conditions

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicaSet sums the labeled replicas, which kstatus compares with the wanted
// ones. Members whose rules do not collect them count with all their replicas: the
// pods of a ReplicaSet have the labels of its template.
func (c *computation) replicaSet() error {
	var labeled int64
	var failure *memberCondition
	for i := range c.members {
		m := &c.members[i]
		if n := m.status.FullyLabeledReplicas; n != nil {
			labeled += int64(*n)
		} else {
			labeled += int64(m.status.Replicas)
		}
		if own := m.condition(string(appsv1.ReplicaSetReplicaFailure)); failure == nil && own != nil && own.Status == corev1.ConditionTrue {
			failure = own
		}
	}
	delete(c.status, "fullyLabeledReplicas")
	// The API server rejects more labeled replicas than replicas.
	if labeled = min(labeled, number(c.status, "replicas")); labeled > 0 {
		c.status["fullyLabeledReplicas"] = labeled
	}
	if err := c.observe(); err != nil {
		return err
	}
	var conditions []appsv1.ReplicaSetCondition
	if err := decode(c.status, "conditions", &conditions); err != nil {
		return err
	}
	at := slices.IndexFunc(conditions, func(r appsv1.ReplicaSetCondition) bool { return r.Type == appsv1.ReplicaSetReplicaFailure })
	switch {
	case failure == nil && at >= 0:
		conditions = slices.Delete(conditions, at, at+1)
	case failure != nil && at < 0:
		conditions = append(conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: failure.Status, Reason: failure.Reason, Message: failure.Message,
			LastTransitionTime: metav1.NewTime(c.Now),
		})
	}
	return set(c, conditions)
}

// job completes the status of a finished Job so that the API server accepts it:
// Failed follows FailureTarget, Complete follows SuccessCriteriaMet, neither has
// active pods or lacks a start time. A Job is complete only when all target clusters
// reported; one that failed in a cluster and is active in another has FailureTarget
// until it ends there.
func job(c *computation) error {
	var conditions []batchv1.JobCondition
	if err := decode(c.status, "conditions", &conditions); err != nil {
		return err
	}
	if slices.ContainsFunc(c.members, func(m member) bool { return !m.reported }) {
		// The interpreter counts only clusters that have a Work.
		conditions = slices.DeleteFunc(conditions, func(j batchv1.JobCondition) bool {
			return j.Type == batchv1.JobComplete || j.Type == batchv1.JobSuccessCriteriaMet
		})
		delete(c.status, "completionTime")
	}
	for _, step := range []struct{ end, target batchv1.JobConditionType }{
		{batchv1.JobFailed, batchv1.JobFailureTarget}, {batchv1.JobComplete, batchv1.JobSuccessCriteriaMet},
	} {
		end, target := step.end, step.target
		at := slices.IndexFunc(conditions, func(j batchv1.JobCondition) bool { return j.Type == end && j.Status == corev1.ConditionTrue })
		if at < 0 {
			continue
		}
		if !slices.ContainsFunc(conditions, func(j batchv1.JobCondition) bool { return j.Type == target }) {
			first := conditions[at]
			first.Type = target
			if target == batchv1.JobSuccessCriteriaMet {
				first.Reason = batchv1.JobReasonCompletionsReached
			}
			conditions = append(conditions, first)
		}
		if number(c.status, "active") > 0 {
			conditions = slices.Delete(conditions, at, at+1)
		}
		setStartTime(c)
	}
	keepTimes(c, conditions)
	return set(c, conditions)
}

// setStartTime sets the start time of a Job to the earliest of the members', if it
// has none.
func setStartTime(c *computation) {
	if c.status["startTime"] != nil {
		return
	}
	var earliest *metav1.Time
	for i := range c.members {
		if t := c.members[i].status.StartTime; t != nil && (earliest == nil || t.Before(earliest)) {
			earliest = t
		}
	}
	if earliest != nil {
		c.status["startTime"] = earliest.ToUnstructured()
	}
}

// keepTimes keeps the times of conditions that the Job had before with the same
// status, so that the same state is written once.
func keepTimes(c *computation, conditions []batchv1.JobCondition) {
	var before []batchv1.JobCondition
	if decode(c.before, "conditions", &before) != nil {
		return
	}
	for i := range conditions {
		for j := range before {
			if before[j].Type == conditions[i].Type && before[j].Status == conditions[i].Status {
				conditions[i].LastProbeTime, conditions[i].LastTransitionTime = before[j].LastProbeTime, before[j].LastTransitionTime
			}
		}
	}
}

// pod joins the conditions of the members' Pods: one is True where it is True in
// each cluster, and has the reason of the first cluster where it is not.
func pod(c *computation) error {
	if qos, ok := c.before["qosClass"]; ok && c.status["qosClass"] == nil {
		c.status["qosClass"] = qos // the API server's, which no write removes
	}
	var before []corev1.PodCondition
	if err := decode(c.before, "conditions", &before); err != nil {
		return err
	}
	var conditions []corev1.PodCondition
	for _, name := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		next, ok := joined(c.members, name)
		if !ok {
			continue
		}
		next.LastTransitionTime = metav1.NewTime(c.Now)
		for i := range before {
			if before[i].Type == name && before[i].Status == next.Status {
				next.LastTransitionTime = before[i].LastTransitionTime
			}
		}
		conditions = append(conditions, next)
	}
	return set(c, conditions)
}

// joined returns a condition of all members' Pods, and whether any has it.
func joined(members []member, name corev1.PodConditionType) (corev1.PodCondition, bool) {
	out := corev1.PodCondition{Type: name, Status: corev1.ConditionTrue}
	found := false
	for i := range members {
		own := members[i].condition(string(name))
		found = found || own != nil
		if out.Status != corev1.ConditionTrue || own != nil && own.Status == corev1.ConditionTrue {
			continue
		}
		out.Status = corev1.ConditionFalse
		if own != nil {
			out.Status, out.Reason, out.Message = cmp.Or(own.Status, corev1.ConditionFalse), own.Reason, own.Message
		}
	}
	return out, found
}
