package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Family is a set of objects that one program alone writes.
type Family struct {
	// List is the type of a list of them.
	List client.ObjectList
	// Labels are on each of them, and each name begins with Prefix.
	Labels map[string]string
	Prefix string
}

// Prune deletes the objects of the families that are not among those to keep, such as those that an earlier version
// wrote. Every family is tried; the errors are joined.
func (a *Applier) Prune(ctx context.Context, keep []client.Object, families ...Family) (ChangeSet, error) {
	var changes ChangeSet
	var errs []error
	for _, f := range families {
		deleted, err := a.prune(ctx, keep, f)
		changes, errs = append(changes, deleted...), append(errs, err)
	}
	return changes, errors.Join(errs...)
}

func (a *Applier) prune(ctx context.Context, keep []client.Object, f Family) (ChangeSet, error) {
	list, ok := f.List.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("listing obsolete objects: %T is no list", f.List)
	}
	gvk, err := apiutil.GVKForObject(list, a.Client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("listing obsolete objects: %w", err)
	}
	kind := strings.TrimSuffix(gvk.Kind, "List")
	if err := a.Client.List(ctx, list, client.MatchingLabels(f.Labels)); err != nil {
		return nil, fmt.Errorf("listing obsolete objects of kind %s: %w", kind, err)
	}
	var changes ChangeSet
	var errs []error
	err = meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok || !strings.HasPrefix(o.GetName(), f.Prefix) || o.GetDeletionTimestamp() != nil || a.keeps(keep, o) {
			return nil
		}
		if err := client.IgnoreNotFound(a.Client.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())})); err != nil {
			errs = append(errs, fmt.Errorf("deleting %s %q, which is not wanted any more: %w", kind, client.ObjectKeyFromObject(o), err))
		} else {
			changes = append(changes, Change{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Action: Deleted})
		}
		return nil
	})
	return changes, errors.Join(append(errs, err)...)
}

// keeps reports whether an object is among those to keep.
func (a *Applier) keeps(keep []client.Object, o client.Object) bool {
	kind := func(o client.Object) string {
		gvk, err := apiutil.GVKForObject(o, a.Client.Scheme())
		if err != nil {
			return ""
		}
		return gvk.Kind
	}
	return slices.ContainsFunc(keep, func(k client.Object) bool {
		return k.GetName() == o.GetName() && k.GetNamespace() == o.GetNamespace() && kind(k) == kind(o)
	})
}
