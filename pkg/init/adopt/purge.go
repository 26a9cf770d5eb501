package adopt

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// current are the names of purge modes by those of v1.18 and before.
func current() map[string]string {
	return map[string]string{"Immediately": string(policyv1alpha1.PurgeModeDirectly), "Graciously": string(policyv1alpha1.PurgeModeGracefully)}
}

// former are the names of purge modes of v1.18 and before by the present ones.
func former() map[string]string {
	return map[string]string{string(policyv1alpha1.PurgeModeDirectly): "Immediately", string(policyv1alpha1.PurgeModeGracefully): "Graciously"}
}

// purgingKinds are those of objects with purge modes.
func purgingKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"), policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"),
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"),
	}
}

// RenamePurgeModes gives purge modes in a control plane of v1.17 or before, whose APIs are the present ones by now, their present names.
func RenamePurgeModes(ctx context.Context, plane client.Client) error {
	_, err := renamePurgeModes(ctx, plane, purgingKinds(), current(), false)
	return err
}

// renamePurgeModes renames purge modes in objects of some kinds, and returns those that have others. A dry run only returns them.
func renamePurgeModes(ctx context.Context, c client.Client, kinds []schema.GroupVersionKind, names map[string]string, dryRun bool) ([]string, error) {
	var found []string
	var errs []error
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the objects of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			if !rename(u.Object["spec"], names) {
				continue
			}
			found = append(found, kind.Kind+" "+client.ObjectKeyFromObject(u).String())
			if dryRun {
				continue
			}
			if err := c.Update(ctx, u); err != nil {
				errs = append(errs, fmt.Errorf("renaming the purge mode of %s %s: %w", kind.Kind, client.ObjectKeyFromObject(u), err))
			}
		}
	}
	return found, errors.Join(errs...)
}

// rename renames the purge modes in a value, and reports whether there were any.
func rename(value any, names map[string]string) bool {
	changed := false
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			text, _ := field.(string)
			if other, ok := names[text]; ok && key == "purgeMode" {
				v[key], changed = other, true
				continue
			}
			changed = rename(field, names) || changed
		}
	case []any:
		for _, item := range v {
			changed = rename(item, names) || changed
		}
	}
	return changed
}
