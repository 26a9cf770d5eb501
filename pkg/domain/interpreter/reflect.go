package interpreter

import (
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// generations are the version of the template a member's status is about.
type generations struct {
	// Generation of the member's object.
	Generation int64 `json:"generation,omitempty"`
	// ResourceTemplateGeneration is the generation of the template that the
	// member's object was made from.
	ResourceTemplateGeneration int64 `json:"resourceTemplateGeneration,omitempty"`
}

// The statuses of workloads as they are collected.
type (
	deploymentStatus struct {
		appsv1.DeploymentStatus `json:",inline"`
		generations             `json:",inline"`
	}
	replicaSetStatus struct {
		appsv1.ReplicaSetStatus `json:",inline"`
		generations             `json:",inline"`
	}
	daemonSetStatus struct {
		appsv1.DaemonSetStatus `json:",inline"`
		generations            `json:",inline"`
	}
	statefulSetStatus struct {
		appsv1.StatefulSetStatus `json:",inline"`
		generations              `json:",inline"`
	}
)

// statusRules are the rules about the status of workloads.
type statusRules struct{ lenient bool }

// generations reads both generations from a member's object.
func (s statusRules) generations(obj *unstructured.Unstructured) (generations, error) {
	metadata := child(obj.Object, "metadata")
	g := generations{Generation: number(metadata, "generation")}
	annotation := text(child(metadata, "annotations"), workv1alpha2.ResourceTemplateGenerationAnnotation)
	template, err := strconv.ParseInt(annotation, 10, 64)
	if err != nil && !s.lenient {
		return g, fmt.Errorf("annotation %s of %s %s/%s: %w", workv1alpha2.ResourceTemplateGenerationAnnotation,
			obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	g.ResourceTemplateGeneration = template
	return g, nil
}

// collect decodes the named fields of the status of obj into typed and returns
// its JSON.
func collect(status map[string]any, typed any, fields ...string) (*runtime.RawExtension, error) {
	if err := decode(pick(status, fields...), typed); err != nil {
		return nil, err
	}
	return raw(typed)
}

func raw(value any) (*runtime.RawExtension, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", value, err)
	}
	return &runtime.RawExtension{Raw: data}, nil
}

// reflectWhole collects the status as it is.
func reflectWhole(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status, ok := obj.Object["status"]
	if !ok || status == nil {
		return nil, nil
	}
	return raw(status)
}

// workload collects the fields of a workload's status into typed, whose
// generations are g.
func (s statusRules) workload(obj *unstructured.Unstructured, typed any, g *generations, fields ...string) (*runtime.RawExtension, error) {
	status := child(obj.Object, "status")
	if status == nil {
		return nil, nil
	}
	read, err := s.generations(obj)
	if err != nil {
		return nil, err
	}
	if err := decode(pick(status, fields...), typed); err != nil {
		return nil, err
	}
	*g = read
	collected, err := raw(typed)
	if err != nil || string(collected.Raw) == "{}" {
		return nil, err
	}
	return collected, nil
}

func (s statusRules) deployment(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	var status deploymentStatus
	return s.workload(obj, &status, &status.generations, "replicas", "updatedReplicas", "readyReplicas",
		"availableReplicas", "unavailableReplicas", "observedGeneration")
}

func (s statusRules) replicaSet(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	var status replicaSetStatus
	return s.workload(obj, &status, &status.generations, "replicas", "readyReplicas", "availableReplicas",
		"observedGeneration")
}

func (s statusRules) daemonSet(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	var status daemonSetStatus
	return s.workload(obj, &status, &status.generations, "currentNumberScheduled", "desiredNumberScheduled",
		"numberAvailable", "numberMisscheduled", "numberReady", "updatedNumberScheduled", "numberUnavailable",
		"observedGeneration")
}

func (s statusRules) statefulSet(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	var status statefulSetStatus
	fields := []string{"availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"}
	if s.lenient {
		fields = append(fields, "observedGeneration")
	}
	return s.workload(obj, &status, &status.generations, fields...)
}

func reflectService(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status := child(obj.Object, "status")
	if status == nil || text(child(obj.Object, "spec"), "type") != string(corev1.ServiceTypeLoadBalancer) {
		return nil, nil
	}
	return collect(status, &corev1.ServiceStatus{}, "loadBalancer")
}

func reflectJob(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status := child(obj.Object, "status")
	if status == nil {
		return nil, nil
	}
	return collect(status, &batchv1.JobStatus{}, "active", "succeeded", "failed", "conditions", "startTime", "completionTime")
}

func reflectDisruptionBudget(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status := child(obj.Object, "status")
	if status == nil {
		return nil, nil
	}
	return collect(status, &policyv1.PodDisruptionBudgetStatus{}, "disruptionsAllowed", "expectedPods",
		"desiredHealthy", "currentHealthy", "disruptedPods")
}

func reflectAutoscaler(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	status := child(obj.Object, "status")
	if status == nil {
		return nil, nil
	}
	return collect(status, &autoscalingv2.HorizontalPodAutoscalerStatus{}, "currentReplicas", "desiredReplicas")
}
