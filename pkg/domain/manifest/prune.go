package manifest

import (
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// prunedMetadata reports whether a metadata field is set by the server of an object.
func prunedMetadata(key string) bool {
	switch key {
	case "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
		"managedFields", "resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers":
		return true
	}
	return false
}

// kind is a kind of a group in any version.
type kind struct{ group, kind string }

func kindOf(obj map[string]any) kind {
	apiVersion, _ := obj["apiVersion"].(string)
	name, _ := obj["kind"].(string)
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	return kind{group: group, kind: name}
}

// Prune removes in place what is specific to a cluster: the metadata that the API server
// sets, the status, and the few fields of well-known kinds that controllers of the
// control plane set.
func Prune(obj *unstructured.Unstructured) error {
	if metadata, ok := obj.Object["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return prunedMetadata(key) })
	}
	delete(obj.Object, "status")

	k := kindOf(obj.Object)
	if k == (kind{"batch", "Job"}) {
		var job batchv1.Job
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &job); err != nil {
			return fmt.Errorf("decoding Job %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
		}
	}
	pruneKind(k, obj.Object)
	return nil
}

func pruneKind(k kind, obj map[string]any) {
	switch k {
	case kind{"apps", "Deployment"}:
		removeAnnotations(obj, "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history")
	case kind{"batch", "Job"}:
		pruneJob(obj)
	case kind{"", "Secret"}:
		pruneSecret(obj)
	case kind{"", "ServiceAccount"}:
		pruneServiceAccount(obj)
	case kind{"", "Service"}:
		pruneService(obj)
	case kind{"", "PersistentVolumeClaim"}:
		removeAnnotations(obj, "volume.kubernetes.io/selected-node")
	}
}

func removeAnnotations(obj map[string]any, keys ...string) {
	annotations := child(child(obj, "metadata"), "annotations")
	for _, key := range keys {
		delete(annotations, key)
	}
}

// child returns the map at key, or nil.
func child(m map[string]any, key string) map[string]any {
	c, _ := m[key].(map[string]any)
	return c
}

// pruneJob removes the time to live, which the control plane enforces, and the labels
// that the Job controller generates.
func pruneJob(obj map[string]any) {
	spec := child(obj, "spec")
	delete(spec, "ttlSecondsAfterFinished")
	if manual, _ := spec["manualSelector"].(bool); manual {
		return
	}
	matchLabels := child(child(spec, "selector"), "matchLabels")
	delete(matchLabels, "controller-uid")
	delete(matchLabels, batchv1.ControllerUidLabel)
	podLabels := child(child(child(spec, "template"), "metadata"), "labels")
	delete(podLabels, "controller-uid")
	delete(podLabels, "job-name")
	delete(podLabels, batchv1.ControllerUidLabel)
	delete(podLabels, batchv1.JobNameLabel)
}

func pruneSecret(obj map[string]any) {
	if t, _ := obj["type"].(string); t != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	removeAnnotations(obj, corev1.ServiceAccountUIDKey)
	obj["data"] = nil
}

// pruneServiceAccount removes the token Secrets that the token controller of another
// cluster generated.
func pruneServiceAccount(obj map[string]any) {
	secrets, ok := obj["secrets"].([]any)
	if !ok {
		return
	}
	name, _ := child(obj, "metadata")["name"].(string)
	prefix := name + "-token-"
	kept := make([]any, 0, len(secrets))
	for _, entry := range secrets {
		ref, _ := entry.(map[string]any)
		if secret, _ := ref["name"].(string); strings.HasPrefix(secret, prefix) {
			continue
		}
		kept = append(kept, entry)
	}
	obj["secrets"] = kept
}

// pruneService removes the addresses that a cluster allocated. That of a headless
// Service is None and remains.
func pruneService(obj map[string]any) {
	spec := child(obj, "spec")
	if ip, ok := spec["clusterIP"].(string); !ok || ip == corev1.ClusterIPNone {
		return
	}
	delete(spec, "clusterIP")
	delete(spec, "clusterIPs")
}
