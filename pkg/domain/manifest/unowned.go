package manifest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StripUnowned removes from a template, in place, the fields that the API server of the control plane allocated, or defaulted by
// its own configuration: those that no field manager owns. Each member allocates and defaults its own. An object without managed
// fields is not changed. Node ports stay, to be the same in all clusters where they are free, and are marked as allocated.
//
// The rules of an aggregated ClusterRole are removed too: they are those of the control plane.
func StripUnowned(obj *unstructured.Unstructured) {
	managed, spec := mapsOf(child(obj.Object, "metadata")["managedFields"]), child(obj.Object, "spec")
	if k := kindOf(obj.Object); k == (kind{"rbac.authorization.k8s.io", "ClusterRole"}) && obj.Object["aggregationRule"] != nil {
		obj.Object["rules"] = []any{}
		return
	}
	fields := unownedFields(kindOf(obj.Object))
	if len(managed) == 0 || len(fields) == 0 || spec == nil {
		return
	}
	for _, field := range fields {
		if _, ok := spec[field]; ok && !owned(managed, "f:"+field) {
			delete(spec, field)
		}
	}
	markNodePorts(obj.Object, managed)
}

// owned reports whether a field manager owns a field of the spec.
func owned(managed []map[string]any, path ...string) bool {
	for _, entry := range managed {
		if subresource, _ := entry["subresource"].(string); subresource != "" {
			continue
		}
		at := child(child(entry, "fieldsV1"), "f:spec")
		for _, segment := range path[:len(path)-1] {
			at = child(at, segment)
		}
		if _, ok := at[path[len(path)-1]]; ok {
			return true
		}
	}
	return false
}

// unownedFields returns the fields of the spec of a kind that an API server allocates, or defaults by its configuration.
func unownedFields(k kind) []string {
	switch k {
	case kind{"", "Service"}:
		return []string{"ipFamilies", "ipFamilyPolicy"}
	case kind{"", "PersistentVolumeClaim"}:
		return []string{"storageClassName"}
	case kind{"", "Pod"}:
		return []string{"priority", "priorityClassName", "preemptionPolicy", "tolerations", "serviceAccountName", "serviceAccount", "overhead"}
	case kind{"networking.k8s.io", "Ingress"}:
		return []string{"ingressClassName"}
	}
	return nil
}

// portKey returns the key of a port of a Service in managed fields.
func portKey(port map[string]any) string {
	protocol, _ := port["protocol"].(string)
	name, err := json.Marshal(protocol)
	if err != nil { // a text
		panic(err)
	}
	return fmt.Sprintf("k:{\"port\":%v,\"protocol\":%s}", port["port"], name)
}
