package interpreter

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eachStatus decodes the status of every item and calls fn with it; fn gets nil
// for an item that has none.
func eachStatus[S any](items []item, fn func(cluster string, status *S)) {
	for i := range items {
		status := new(S)
		if !memberStatus(&items[i], status) {
			status = nil
		}
		fn(items[i].ClusterName, status)
	}
}

// replace aggregates into a new status of the same type.
func replace[S any](obj *object, items []item, status *S, add func(cluster string, member *S), done func()) (*object, error) {
	var was S
	if err := decode(child(obj.Object, "status"), &was); err != nil {
		return nil, err
	}
	eachStatus(items, add)
	if done != nil {
		done()
	}
	return replaceStatus(obj, &was, status)
}

// firstOf returns the first of the phases that is in the set.
func firstOf[P comparable](set map[P]bool, phases ...P) P {
	for _, phase := range phases {
		if set[phase] {
			return phase
		}
	}
	var none P
	return none
}

func aggregatePod(obj *object, items []item) (*object, error) {
	if items == nil {
		return sameStatus[corev1.PodStatus](obj)
	}
	var status corev1.PodStatus
	phases := map[corev1.PodPhase]bool{}
	return replace(obj, items, &status, func(_ string, member *corev1.PodStatus) {
		if member == nil {
			phases[corev1.PodPending] = true
			return
		}
		phases[member.Phase] = true
		status.ContainerStatuses = appendStates(status.ContainerStatuses, member.ContainerStatuses)
		status.InitContainerStatuses = appendStates(status.InitContainerStatuses, member.InitContainerStatuses)
	}, func() {
		status.Phase = firstOf(phases, corev1.PodFailed, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded)
	})
}

// sameStatus returns the object with its status written as its type has it.
func sameStatus[S any](obj *object) (*object, error) {
	var status S
	if err := decode(child(obj.Object, "status"), &status); err != nil {
		return nil, err
	}
	tree, err := encode(&status)
	if err != nil {
		return nil, err
	}
	return withStatus(obj, tree), nil
}

func appendStates(all, more []corev1.ContainerStatus) []corev1.ContainerStatus {
	for i := range more {
		all = append(all, corev1.ContainerStatus{Ready: more[i].Ready, State: more[i].State})
	}
	return all
}

func aggregateVolume(obj *object, items []item) (*object, error) {
	var status corev1.PersistentVolumeStatus
	phases := map[corev1.PersistentVolumePhase]bool{}
	return replace(obj, items, &status, func(_ string, member *corev1.PersistentVolumeStatus) {
		if member == nil {
			phases[corev1.VolumePending] = true
			return
		}
		phases[member.Phase] = true
	}, func() {
		status.Phase = firstOf(phases, corev1.VolumeFailed, corev1.VolumePending, corev1.VolumeAvailable,
			corev1.VolumeBound, corev1.VolumeReleased)
	})
}

func aggregateVolumeClaim(obj *object, items []item) (*object, error) {
	status := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}
	if len(items) == 0 {
		status.Phase = corev1.ClaimPending
	}
	return replace(obj, items, &status, func(_ string, member *corev1.PersistentVolumeClaimStatus) {
		switch {
		case status.Phase == corev1.ClaimLost:
		case member == nil: // the cluster has not reported
			status.Phase = corev1.ClaimPending
		case member.Phase != corev1.ClaimBound:
			status.Phase = member.Phase
		}
	}, nil)
}

func aggregateDisruptionBudget(obj *object, items []item) (*object, error) {
	var status policyv1.PodDisruptionBudgetStatus
	aggregated, err := replace(obj, items, &status, func(cluster string, member *policyv1.PodDisruptionBudgetStatus) {
		if member == nil {
			return
		}
		status.CurrentHealthy += member.CurrentHealthy
		status.DesiredHealthy += member.DesiredHealthy
		status.ExpectedPods += member.ExpectedPods
		status.DisruptionsAllowed += member.DisruptionsAllowed
		for pod, since := range member.DisruptedPods {
			if status.DisruptedPods == nil {
				status.DisruptedPods = map[string]metav1.Time{}
			}
			status.DisruptedPods[cluster+"/"+pod] = since
		}
	}, nil)
	if err != nil || aggregated != obj || hasKeys(child(obj.Object, "status"), "currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods") {
		return aggregated, err
	}
	// Its four counters are required fields: they are written also when all of them are zero.
	tree, err := encode(&status)
	if err != nil {
		return nil, err
	}
	return withStatus(obj, tree), nil
}

// hasKeys reports whether a map has all of the keys.
func hasKeys(m map[string]any, keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { _, ok := m[key]; return !ok })
}

func aggregateAutoscaler(obj *object, items []item) (*object, error) {
	var status autoscalingv2.HorizontalPodAutoscalerStatus
	return replace(obj, items, &status, func(_ string, member *autoscalingv2.HorizontalPodAutoscalerStatus) {
		if member != nil {
			status.CurrentReplicas += member.CurrentReplicas
			status.DesiredReplicas += member.DesiredReplicas
		}
	}, nil)
}
