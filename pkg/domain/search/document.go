package search

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fields of a document by which documents are selected.
const (
	// FieldCluster has the name of the cluster.
	FieldCluster = "cluster"
	// FieldControlPlane has the ID of the control plane whose role wrote the document.
	FieldControlPlane = "controlPlane"
	// FieldRun has the ID of the copy that wrote the document: documents of earlier ones are of objects that are gone.
	FieldRun = "run"
)

// Origin is where a document comes from.
type Origin struct{ Cluster, ControlPlane, Run string }

// indexPrefix begins the name of every index.
const indexPrefix = "kubernetes-"

// Indices is the pattern of all indices.
const Indices = indexPrefix + "*"

// Index returns the index of the documents of a kind: kubernetes-KIND for groups of Kubernetes, kubernetes-KIND.GROUP for
// others.
func Index(kind schema.GroupKind) string {
	name := indexPrefix + strings.ToLower(kind.Kind)
	if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") {
		name += "." + strings.ToLower(kind.Group)
	}
	return name
}

// IndexSettings returns the settings of an index, and the mapping of its fields, in JSON.
func IndexSettings() (settings, mapping []byte, err error) {
	text := map[string]any{"type": "text"}
	keyword := map[string]any{"type": "keyword"}
	both := map[string]any{"type": "text", "fields": map[string]any{"keyword": map[string]any{"type": "keyword", "ignore_above": 256}}}
	opaque := map[string]any{"type": "object", "enabled": false}
	properties := map[string]any{"properties": map[string]any{
		FieldCluster: keyword, FieldControlPlane: keyword, FieldRun: keyword,
		"apiVersion": text, "kind": text, "spec": opaque, "status": opaque,
		"metadata": map[string]any{"properties": map[string]any{
			"name": both, "namespace": both, "resourceVersion": both, "annotations": opaque, "labels": opaque,
			"creationTimestamp": text, "deletionTimestamp": text,
			"ownerReferences": text,
		}},
	}}
	if mapping, err = json.Marshal(properties); err != nil {
		return nil, nil, fmt.Errorf("encoding the mapping: %w", err)
	}
	settings, err = json.Marshal(map[string]any{
		"settings": map[string]any{"index": map[string]any{"number_of_shards": 1, "number_of_replicas": 0}}, "mappings": properties,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the settings of an index: %w", err)
	}
	return settings, mapping, nil
}

// Document returns the document of a cached object in JSON: metadata, and spec and status as JSON in a text, as their fields
// differ. What kubectl applied is left out: it has the content of Secrets.
func Document(u *unstructured.Unstructured, o Origin) ([]byte, error) {
	annotations := maps.Clone(u.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	metadata := map[string]any{
		"name": u.GetName(), "namespace": u.GetNamespace(), "resourceVersion": u.GetResourceVersion(),
		"creationTimestamp": u.GetCreationTimestamp().UTC().Format(time.RFC3339), "labels": u.GetLabels(), "annotations": annotations,
	}
	if at := u.GetDeletionTimestamp(); at != nil {
		metadata["deletionTimestamp"] = at.UTC().Format(time.RFC3339)
	}
	out := map[string]any{
		FieldCluster: o.Cluster, FieldControlPlane: o.ControlPlane, FieldRun: o.Run,
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": metadata,
	}
	for _, field := range []string{"spec", "status"} {
		value, ok := u.Object[field]
		if !ok {
			continue
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encoding the %s of %s: %w", field, u.GetName(), err)
		}
		out[field] = string(data)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding the document of %s: %w", u.GetName(), err)
	}
	return data, nil
}
