// Package patch computes patches that have only the fields that differ.
package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Diff returns the JSON merge patch from before to after, and whether they differ.
func Diff(before, after runtime.Object) (client.Patch, bool, error) {
	old, err := json.Marshal(before)
	if err != nil {
		return nil, false, fmt.Errorf("encoding the object before the change: %w", err)
	}
	wanted, err := json.Marshal(after)
	if err != nil {
		return nil, false, fmt.Errorf("encoding the object after the change: %w", err)
	}
	data, err := jsonpatch.CreateMergePatch(old, wanted)
	if err != nil {
		return nil, false, fmt.Errorf("comparing two versions of an object: %w", err)
	}
	if string(data) == "{}" {
		return nil, false, nil
	}
	return client.RawPatch(types.MergePatchType, data), true, nil
}

// DiffLocked is Diff with a patch that requires the resource version of after, for
// changes of lists: a merge patch replaces the whole list, also what another client
// added to it meanwhile.
func DiffLocked(before, after client.Object) (client.Patch, bool, error) {
	if _, differs, err := Diff(before, after); err != nil || !differs {
		return nil, false, err
	}
	unversioned := before.DeepCopyObject().(client.Object)
	unversioned.SetResourceVersion("")
	return Diff(unversioned, after)
}

// Metadata returns a JSON merge patch of metadata alone. It applies only to the
// object with this uid, and, unless resourceVersion is empty, to this version.
func Metadata(change map[string]any, uid types.UID, resourceVersion string) ([]byte, error) {
	metadata := map[string]any{}
	maps.Copy(metadata, change)
	if uid != "" {
		metadata["uid"] = uid
	}
	if resourceVersion != "" {
		metadata["resourceVersion"] = resourceVersion
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encoding a change of metadata: %w", err)
	}
	return data, nil
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

// RemoveFinalizer returns the JSON patch that removes one finalizer of an object, and
// whether the object has it. The API server rejects the patch when the finalizers
// changed meanwhile.
func RemoveFinalizer(obj metav1.Object, finalizer string) (client.Patch, bool, error) {
	for i, have := range obj.GetFinalizers() {
		if have != finalizer {
			continue
		}
		path := "/metadata/finalizers/" + strconv.Itoa(i)
		data, err := json.Marshal([]operation{{Op: "test", Path: path, Value: finalizer}, {Op: "remove", Path: path}})
		if err != nil {
			return nil, false, fmt.Errorf("encoding a change of finalizers: %w", err)
		}
		return client.RawPatch(types.JSONPatchType, data), true, nil
	}
	return nil, false, nil
}
