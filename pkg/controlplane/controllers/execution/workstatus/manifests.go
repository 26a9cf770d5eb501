package workstatus

import (
	"bytes"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// manifestStatuses returns the status of each object that was observed. An object that
// was not keeps its status in before.
func manifestStatuses(objects []Object, before []workv1alpha1.ManifestStatus) []workv1alpha1.ManifestStatus {
	var out []workv1alpha1.ManifestStatus
	for i := range objects {
		o := &objects[i]
		id := workv1alpha1.ResourceIdentifier{
			Ordinal: i, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind,
			Namespace: o.Key.Namespace, Name: o.Key.Name,
		}
		old := statusOf(before, id)
		switch {
		case o.version == "" && old != nil:
			kept := *old
			kept.Identifier = id
			out = append(out, kept)
		case o.version != "":
			status := o.status
			if old != nil && sameRaw(old.Status, status) {
				status = old.Status
			}
			out = append(out, workv1alpha1.ManifestStatus{Identifier: id, Status: status, Health: o.health})
		}
	}
	return out
}

func statusOf(statuses []workv1alpha1.ManifestStatus, id workv1alpha1.ResourceIdentifier) *workv1alpha1.ManifestStatus {
	for i := range statuses {
		have := statuses[i].Identifier
		if have.Group == id.Group && have.Version == id.Version && have.Kind == id.Kind && have.Namespace == id.Namespace && have.Name == id.Name {
			return &statuses[i]
		}
	}
	return nil
}

// sameRaw reports whether two JSON values are equal. A field that is null is absent.
func sameRaw(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil || len(a.Raw) == 0 || len(b.Raw) == 0 {
		return (a == nil || len(a.Raw) == 0) == (b == nil || len(b.Raw) == 0)
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	return utiljson.Unmarshal(a.Raw, &x) == nil && utiljson.Unmarshal(b.Raw, &y) == nil && equality.Semantic.DeepEqual(withoutNulls(x), withoutNulls(y))
}

// withoutNulls removes the fields that are null: the API server does not store them.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
				continue
			}
			withoutNulls(field)
		}
	case []any:
		for _, element := range v {
			withoutNulls(element)
		}
	}
	return value
}
