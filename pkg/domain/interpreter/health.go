package interpreter

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// observed reports whether the controller of an object has seen its spec.
func observed(obj, status map[string]any) bool {
	return number(status, "observedGeneration") == number(child(obj, "metadata"), "generation")
}

// deploymentHealthy is the rule for Deployments and StatefulSets.
func deploymentHealthy(obj *unstructured.Unstructured) (bool, error) {
	status := child(obj.Object, "status")
	updated := number(status, "updatedReplicas")
	if replicas, ok := integer(child(obj.Object, "spec"), "replicas"); ok && updated < replicas {
		return false, nil
	}
	return observed(obj.Object, status) && number(status, "availableReplicas") >= updated, nil
}

func replicaSetHealthy(obj *unstructured.Unstructured) (bool, error) {
	status := child(obj.Object, "status")
	if replicas, ok := integer(child(obj.Object, "spec"), "replicas"); ok && number(status, "availableReplicas") < replicas {
		return false, nil
	}
	return observed(obj.Object, status), nil
}

func daemonSetHealthy(obj *unstructured.Unstructured) (bool, error) {
	status := child(obj.Object, "status")
	updated := number(status, "updatedNumberScheduled")
	return observed(obj.Object, status) && updated >= number(status, "desiredNumberScheduled") &&
		number(status, "numberAvailable") >= updated, nil
}

func serviceHealthy(obj *unstructured.Unstructured) (bool, error) {
	if text(child(obj.Object, "spec"), "type") != string(corev1.ServiceTypeLoadBalancer) {
		return true, nil
	}
	return ingressHealthy(obj)
}

// ingressHealthy reports whether some load balancer has an address.
func ingressHealthy(obj *unstructured.Unstructured) (bool, error) {
	for _, entry := range list(child(obj.Object, "status", "loadBalancer"), "ingress") {
		ingress, _ := entry.(map[string]any)
		if text(ingress, "hostname") != "" || text(ingress, "ip") != "" {
			return true, nil
		}
	}
	return false, nil
}

func volumeClaimHealthy(obj *unstructured.Unstructured) (bool, error) {
	return text(child(obj.Object, "status"), "phase") == string(corev1.ClaimBound), nil
}

func podHealthy(obj *unstructured.Unstructured) (bool, error) {
	status := child(obj.Object, "status")
	switch corev1.PodPhase(text(status, "phase")) {
	case corev1.PodSucceeded:
		return true, nil
	case corev1.PodRunning:
	default:
		return false, nil
	}
	for _, entry := range list(status, "conditions") {
		condition, _ := entry.(map[string]any)
		if text(condition, "type") == string(corev1.PodReady) {
			return text(condition, "status") == string(corev1.ConditionTrue), nil
		}
	}
	return false, nil
}

func disruptionBudgetHealthy(obj *unstructured.Unstructured) (bool, error) {
	status := child(obj.Object, "status")
	return number(status, "currentHealthy") >= number(status, "desiredHealthy"), nil
}
