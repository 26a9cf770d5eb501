// Package patch computes patches that have only the fields that differ.
package patch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Write patches what differs between two versions of an object, which it only reads. It returns what the API server stored,
// or after and false if nothing differs. A patch that changes the finalizers requires the resource version of after.
func Write[T client.Object](ctx context.Context, c client.Writer, before, after T) (stored T, wrote bool, err error) {
	if !slices.Equal(before.GetFinalizers(), after.GetFinalizers()) {
		return WriteLocked(ctx, c, before, after)
	}
	change, differs, err := Diff(before, after)
	return send(ctx, c, after, change, differs, err)
}

// WriteLocked is Write with a patch that requires the resource version of after.
func WriteLocked[T client.Object](ctx context.Context, c client.Writer, before, after T) (stored T, wrote bool, err error) {
	change, differs, err := DiffLocked(before, after)
	return send(ctx, c, after, change, differs, err)
}

func send[T client.Object](ctx context.Context, c client.Writer, after T, change client.Patch, differs bool, err error) (T, bool, error) {
	if err != nil || !differs {
		return after, false, err
	}
	out := Named(after)
	if err := c.Patch(ctx, out, change); err != nil {
		return after, false, fmt.Errorf("patching %T %s: %w", out, client.ObjectKeyFromObject(out), err)
	}
	return out, true, nil
}

// Named returns an object with the type and the name of another one alone, for the response to a patch: obj may be shared
// with the cache.
func Named[T client.Object](obj T) T {
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
	out.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	out.SetNamespace(obj.GetNamespace())
	out.SetName(obj.GetName())
	return out
}

// Locked returns the JSON merge patch of the changes that are made to obj after this call. It requires the resource version
// of obj.
func Locked(obj client.Object) client.Patch {
	return client.MergeFromWithOptions(obj.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
}

// Change changes an object and patches what differs.
func Change(ctx context.Context, c client.Writer, obj client.Object, change func()) error {
	merge := client.MergeFrom(obj.DeepCopyObject().(client.Object))
	change()
	return c.Patch(ctx, obj, merge)
}

// ChangeLocked is Change with a patch that requires the resource version of the object.
func ChangeLocked(ctx context.Context, c client.Writer, obj client.Object, change func()) error {
	merge := Locked(obj)
	change()
	return c.Patch(ctx, obj, merge)
}

// body is a patch that is encoded when it is sent.
type body struct {
	kind  types.PatchType
	value any
}

// Type implements client.Patch.
func (b body) Type() types.PatchType { return b.kind }

// Data implements client.Patch.
func (b body) Data(client.Object) ([]byte, error) { return json.Marshal(b.value) }

// Merge returns the JSON merge patch that has the JSON of value.
func Merge(value any) client.Patch { return body{types.MergePatchType, value} }

// Strategic returns the strategic merge patch that has the JSON of value.
func Strategic(value any) client.Patch { return body{types.StrategicMergePatchType, value} }

// Metadata returns a JSON merge patch of metadata alone. It applies only to the
// object with this uid, and, unless resourceVersion is empty, to this version.
func Metadata(change map[string]any, uid types.UID, resourceVersion string) client.Patch {
	metadata := map[string]any{}
	maps.Copy(metadata, change)
	if uid != "" {
		metadata["uid"] = uid
	}
	if resourceVersion != "" {
		metadata["resourceVersion"] = resourceVersion
	}
	return Merge(map[string]any{"metadata": metadata})
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

// RemoveFinalizer removes one finalizer of an object that a cache holds. An object that does not have it, or is deleted, needs
// no request. The error is a conflict if the stored object is another one or its finalizers changed meanwhile.
func RemoveFinalizer(ctx context.Context, c client.Writer, obj client.Object, finalizer string) error {
	i := slices.Index(obj.GetFinalizers(), finalizer)
	if i < 0 {
		return nil
	}
	path := "/metadata/finalizers/" + strconv.Itoa(i)
	steps := []operation{{Op: "test", Path: path, Value: finalizer}, {Op: "remove", Path: path}}
	if uid := obj.GetUID(); uid != "" {
		steps = slices.Insert(steps, 0, operation{Op: "test", Path: "/metadata/uid", Value: string(uid)})
	}
	err := c.Patch(ctx, Named(obj), body{types.JSONPatchType, steps})
	if testFailed(err) {
		err = apierrors.NewConflict(schema.GroupResource{Resource: "finalizers"}, obj.GetName(), err)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing finalizer %s of %T %s: %w", finalizer, obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// testFailed reports whether the API server refused a JSON patch, and not the object that it makes: only an invalid object is
// named.
func testFailed(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Kind == ""
}
