package search

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fields by which objects of every kind are selected.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// FieldError is the error for a field by which objects of a kind are not selected.
type FieldError struct {
	Kind  schema.GroupVersionKind
	Field string
}

// Error implements error.
func (e FieldError) Error() string {
	return fmt.Sprintf("objects of kind %s cannot be selected by the field %q", e.Kind.Kind, e.Field)
}

// FieldSelector selects objects of a kind by their fields, as the API server of Kubernetes does.
type FieldSelector struct {
	selector fields.Selector
	kind     schema.GroupVersionKind
	// known are the fields of the kind with their values in objects that do not have them.
	known map[string]string
}

// CompileFields returns a selector of a kind. Defined are the fields that the definition of a custom resource makes
// selectable, without the dot before them. It returns a FieldError for a field that the kind does not have.
func CompileFields(kind schema.GroupVersionKind, selector fields.Selector, defined ...string) (*FieldSelector, error) {
	known := selectable(kind)
	for _, field := range defined {
		if known == nil {
			known = map[string]string{}
		}
		known[field] = ""
	}
	for _, r := range selector.Requirements() {
		if _, ok := known[r.Field]; !ok && r.Field != fieldName && r.Field != fieldNamespace {
			return nil, FieldError{Kind: kind, Field: r.Field}
		}
	}
	return &FieldSelector{selector: selector, kind: kind, known: known}, nil
}

// Identity reports whether only names and namespaces are selected, so that the content of objects does not matter.
func (f *FieldSelector) Identity() bool {
	for _, r := range f.selector.Requirements() {
		if r.Field != fieldName && r.Field != fieldNamespace {
			return false
		}
	}
	return true
}

// MatchesIdentity reports whether an object with a namespace and a name is selected. It is for selectors for which Identity
// returns true.
func (f *FieldSelector) MatchesIdentity(namespace, name string) bool {
	return f.selector.Matches(fields.Set{fieldNamespace: namespace, fieldName: name})
}

// Matches reports whether an object is selected.
func (f *FieldSelector) Matches(object *unstructured.Unstructured) bool {
	set := fields.Set{fieldNamespace: object.GetNamespace(), fieldName: object.GetName()}
	for field, absent := range f.known {
		set[field] = cmp.Or(value(object.Object, field), absent)
	}
	switch f.kind {
	case coreKind("Event"):
		set["source"] = cmp.Or(value(object.Object, "source.component"), set["reportingComponent"])
	case coreKind("Namespace"):
		set["name"] = object.GetName()
	case batchJob:
		set["status.successful"] = cmp.Or(value(object.Object, "status.succeeded"), "0")
	}
	return f.selector.Matches(set)
}

// value returns the text of a field, empty if there is none.
func value(object map[string]any, path string) string {
	found, ok, err := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
	if err != nil || !ok {
		return ""
	}
	switch v := found.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// batchJob is the kind whose field for selectors has another name than in its status.
var batchJob = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

func coreKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

// selectable returns the fields by which objects of a kind are selected, beside those of every kind, with their values in
// objects that do not have them. They are those of Kubernetes 1.36.
func selectable(kind schema.GroupVersionKind) map[string]string {
	switch kind {
	case coreKind("Pod"):
		return map[string]string{
			"spec.nodeName": "", "spec.restartPolicy": "", "spec.schedulerName": "", "spec.serviceAccountName": "",
			"spec.hostNetwork": "false", "status.phase": "", "status.podIP": "", "status.nominatedNodeName": "",
		}
	case coreKind("Node"):
		return map[string]string{"spec.unschedulable": "false"}
	case coreKind("Namespace"):
		return map[string]string{"name": "", "status.phase": ""}
	case coreKind("Secret"):
		return map[string]string{"type": ""}
	case coreKind("Service"):
		return map[string]string{"spec.clusterIP": "", "spec.type": ""}
	case coreKind("ReplicationController"):
		return map[string]string{"status.replicas": "0"}
	case coreKind("Event"):
		return map[string]string{
			"involvedObject.kind": "", "involvedObject.namespace": "", "involvedObject.name": "", "involvedObject.uid": "",
			"involvedObject.apiVersion": "", "involvedObject.resourceVersion": "", "involvedObject.fieldPath": "",
			"reason": "", "reportingComponent": "", "source": "", "type": "",
		}
	}
	switch (schema.GroupKind{Group: kind.Group, Kind: kind.Kind}) {
	case schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}:
		return map[string]string{
			"regarding.kind": "", "regarding.namespace": "", "regarding.name": "", "regarding.uid": "", "regarding.apiVersion": "",
			"regarding.resourceVersion": "", "regarding.fieldPath": "", "reason": "", "reportingController": "", "type": "",
		}
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		return map[string]string{"status.replicas": "0"}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return map[string]string{"status.successful": "0"}
	case schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:
		return map[string]string{"spec.signerName": ""}
	}
	return nil
}
