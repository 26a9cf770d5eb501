// Package apply writes desired objects by server-side apply and returns what
// changed.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Action is what applying or pruning did to an object.
type Action string

// The values of Action.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Deleted    Action = "deleted"
)

// Change is what happened to one object.
type Change struct {
	Kind, Namespace, Name string
	Action                Action
}

// ChangeSet is what happened to all of them, in the order they were given.
type ChangeSet []Change

// Changed reports whether any object was created, configured or deleted.
func (s ChangeSet) Changed() bool {
	return slices.ContainsFunc(s, func(c Change) bool { return c.Action != Unchanged })
}

// defaultParallel is the default of Applier.Parallel.
const defaultParallel = 8

// Applier writes objects as one field manager.
type Applier struct {
	// Client of the API server. It must not read from a cache.
	Client client.Client
	// Manager is the name of the field manager.
	Manager string
	// Parallel is how many objects are written at the same time. Default 8; values below 1 mean the default.
	Parallel int
	// Keep reports whether an object that exists is left as it is. With it, no version is replaced but the one that Keep
	// was called with: an object that was written in between causes a conflict. Nil: every object is written.
	Keep func(have client.Object) bool
}

// Apply writes the objects that differ from their desired state. Every object is tried; the errors are joined, each
// with the name of its object.
func (a *Applier) Apply(ctx context.Context, objects ...client.Object) (ChangeSet, error) {
	parallel := a.Parallel
	if parallel < 1 {
		parallel = defaultParallel
	}
	limit := make(chan struct{}, parallel)
	changes := make(ChangeSet, len(objects))
	errs := make([]error, len(objects))
	var wg sync.WaitGroup
	for i, obj := range objects {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			changes[i], errs[i] = a.one(ctx, obj)
		})
	}
	wg.Wait()
	return changes, errors.Join(errs...)
}

func (a *Applier) one(ctx context.Context, obj client.Object) (Change, error) {
	gvk, err := apiutil.GVKForObject(obj, a.Client.Scheme())
	if err != nil {
		return Change{}, fmt.Errorf("applying %T %q: %w", obj, obj.GetName(), err)
	}
	change := Change{Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	fail := func(err error) (Change, error) {
		return change, fmt.Errorf("applying %s %q: %w", gvk.Kind, strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/"), err)
	}
	desired, err := toUnstructured(obj, gvk)
	if err != nil {
		return fail(err)
	}
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(gvk)
	err = a.Client.Get(ctx, client.ObjectKeyFromObject(obj), before)
	if client.IgnoreNotFound(err) != nil {
		return fail(err)
	}
	missing := apierrors.IsNotFound(err)
	if before.Object["type"] == string(corev1.SecretTypeTLS) && desired.Object["type"] == string(corev1.SecretTypeOpaque) {
		delete(desired.Object, "type") // others made the Secret, and its type cannot be changed
	}
	if !missing && (a.Keep != nil && a.Keep(before) || includes(before.Object, desired.Object)) {
		change.Action = Unchanged
		return change, nil
	}
	if a.Keep != nil {
		desired.SetResourceVersion(before.GetResourceVersion())
	}
	err = a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), client.FieldOwner(a.Manager), client.ForceOwnership)
	if err != nil {
		return fail(err)
	}
	switch {
	case missing:
		change.Action = Created
	case before.GetResourceVersion() != desired.GetResourceVersion():
		change.Action = Configured
	default:
		change.Action = Unchanged
	}
	return change, nil
}

// includes reports whether have holds everything that want specifies. The server adds
// defaults, and others may own further fields.
func includes(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for key, value := range w {
			if !includes(h[key], value) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		return slices.EqualFunc(h, w, includes)
	default:
		return equality.Semantic.DeepEqual(have, want)
	}
}

// toUnstructured returns what the object specifies: no status and nothing the
// server sets.
func toUnstructured(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	return u, nil
}
