package interpreter

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobs is how the statuses of Jobs add up.
type jobs struct {
	now func() metav1.Time
}

// jobSum is what the members' Jobs add up to.
type jobSum struct {
	status                             batchv1.JobStatus
	failed                             []string
	started, ended, complete, criteria int
}

func (j jobs) aggregate(obj *object, items []item) (*object, error) {
	var was batchv1.JobStatus
	if err := decode(child(obj.Object, "status"), &was); err != nil {
		return nil, err
	}
	if holds(was.Conditions, batchv1.JobComplete) || holds(was.Conditions, batchv1.JobFailed) {
		return obj, nil
	}
	var sum jobSum
	for i := range items {
		var member batchv1.JobStatus
		if memberStatus(&items[i], &member) {
			sum.add(items[i].ClusterName, &member)
		}
	}
	status := &sum.status
	status.Conditions = j.conditions(&sum, len(items))
	if was.StartTime != nil {
		status.StartTime = was.StartTime
	} else if sum.started != len(items) {
		status.StartTime = nil
	}
	if sum.ended != len(items) {
		status.CompletionTime = nil
	}
	return replaceStatus(obj, &was, status)
}

func (s *jobSum) add(cluster string, member *batchv1.JobStatus) {
	s.status.Active += member.Active
	s.status.Succeeded += member.Succeeded
	s.status.Failed += member.Failed
	if holds(member.Conditions, batchv1.JobFailed) {
		s.failed = append(s.failed, cluster)
	}
	if holds(member.Conditions, batchv1.JobComplete) {
		s.complete++
	}
	if holds(member.Conditions, batchv1.JobSuccessCriteriaMet) {
		s.criteria++
	}
	if member.StartTime != nil {
		s.started++
		if s.status.StartTime == nil || member.StartTime.Before(s.status.StartTime) {
			s.status.StartTime = member.StartTime
		}
	}
	if member.CompletionTime != nil {
		s.ended++
		s.status.CompletionTime = latest(s.status.CompletionTime, member.CompletionTime)
	}
}

func (j jobs) conditions(s *jobSum, members int) []batchv1.JobCondition {
	var conditions []batchv1.JobCondition
	now := j.now()
	add := func(t batchv1.JobConditionType, reason, message string) {
		conditions = append(conditions, batchv1.JobCondition{
			Type: t, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
			Reason: reason, Message: message,
		})
	}
	if len(s.failed) > 0 {
		add(batchv1.JobFailed, "JobFailed", "Job executed failed in member clusters "+strings.Join(s.failed, ","))
	}
	if s.complete == members && members > 0 {
		add(batchv1.JobComplete, "Completed", "Job completed")
		if s.criteria == members {
			add(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "All member clusters have met success criteria")
		}
	}
	return conditions
}

func holds(conditions []batchv1.JobCondition, t batchv1.JobConditionType) bool {
	return slices.ContainsFunc(conditions, func(c batchv1.JobCondition) bool { return c.Type == t && c.Status == corev1.ConditionTrue })
}

func latest(a, b *metav1.Time) *metav1.Time {
	if b == nil || a != nil && b.Before(a) {
		return a
	}
	return b
}

func aggregateCronJob(obj *object, items []item) (*object, error) {
	var was, status batchv1.CronJobStatus
	if err := decode(child(obj.Object, "status"), &was); err != nil {
		return nil, err
	}
	for i := range items {
		var member batchv1.CronJobStatus
		if !memberStatus(&items[i], &member) {
			continue
		}
		status.Active = append(status.Active, member.Active...)
		status.LastScheduleTime = latest(status.LastScheduleTime, member.LastScheduleTime)
		status.LastSuccessfulTime = latest(status.LastSuccessfulTime, member.LastSuccessfulTime)
	}
	return replaceStatus(obj, &was, &status)
}
