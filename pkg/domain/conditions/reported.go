package conditions

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
)

// Limits of what a member reports, in bytes.
const (
	maxReason  = 256
	maxMessage = 1024
)

// ReplicaFailure returns the condition ReplicaFailure of a Deployment if it is True, or nil.
func ReplicaFailure(obj *unstructured.Unstructured) *appsv1.DeploymentCondition {
	if obj.GroupVersionKind() != appsv1.SchemeGroupVersion.WithKind("Deployment") {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok || fields["type"] != string(appsv1.DeploymentReplicaFailure) || fields["status"] != string(corev1.ConditionTrue) {
			continue
		}
		reason, _ := fields["reason"].(string)
		message, _ := fields["message"].(string)
		return &appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
			Reason: plaintext.Line(reason, maxReason), Message: plaintext.Line(message, maxMessage)}
	}
	return nil
}

// Report adds the condition ReplicaFailure of a member's object to the status that the interpreter collected of it, which
// leaves conditions out. Apply copies it into the template. Without the condition, or if the status has conditions, the
// status is returned unchanged.
func Report(obj *unstructured.Unstructured, status *runtime.RawExtension) (*runtime.RawExtension, error) {
	failure := ReplicaFailure(obj)
	if failure == nil {
		return status, nil
	}
	fields := map[string]json.RawMessage{}
	if status != nil && len(status.Raw) > 0 {
		if err := json.Unmarshal(status.Raw, &fields); err != nil {
			return nil, fmt.Errorf("decoding the collected status: %w", err)
		}
	}
	if _, ok := fields["conditions"]; ok || fields == nil {
		return status, nil
	}
	list, err := json.Marshal([]memberCondition{{
		Type: string(failure.Type), Status: failure.Status, Reason: failure.Reason, Message: failure.Message,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the condition %s: %w", failure.Type, err)
	}
	fields["conditions"] = list
	out, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding the collected status: %w", err)
	}
	return &runtime.RawExtension{Raw: out}, nil
}
