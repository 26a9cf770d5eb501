package templates

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
)

// apiType is a type that can be watched.
type apiType struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool
}

// discovered is what one look at the API server found.
type discovered struct {
	types []apiType
	// failed are the groups that could not be looked at.
	failed sets.Set[string]
}

func discover(d discovery.DiscoveryInterface, skip *APIs) (discovered, error) {
	lists, err := discovery.ServerPreferredResources(d)
	failed := sets.New[string]()
	if err != nil {
		var groups *discovery.ErrGroupDiscoveryFailed
		if !errors.As(err, &groups) {
			return discovered{}, fmt.Errorf("discovering API types: %w", err)
		}
		for gv := range groups.Groups {
			failed.Insert(gv.Group)
		}
	}
	return discovered{types: watchable(lists, skip), failed: failed}, nil
}

// watchable returns the types that can be deleted, listed and watched and are not
// skipped.
func watchable(lists []*metav1.APIResourceList, skip *APIs) []apiType {
	var out []apiType
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !supports(r.Verbs, "delete", "list", "watch") {
				continue
			}
			gvk := gv.WithKind(r.Kind)
			if skip.Contains(gvk) {
				continue
			}
			out = append(out, apiType{gvk: gvk, gvr: gv.WithResource(r.Name), namespaced: r.Namespaced})
		}
	}
	return out
}

func supports(verbs metav1.Verbs, wanted ...string) bool {
	for _, verb := range wanted {
		if !slices.Contains(verbs, verb) {
			return false
		}
	}
	return true
}

// diff returns the types to start and to stop watching. Types of groups that
// could not be looked at stay as they are.
func (found discovered) diff(watched map[schema.GroupVersionResource]*watchedType) (start []apiType, stop []schema.GroupVersionResource) {
	have := sets.New[schema.GroupResource]()
	for gvr := range watched {
		have.Insert(gvr.GroupResource())
	}
	there := sets.New[schema.GroupVersionResource]()
	for _, t := range found.types {
		there.Insert(t.gvr)
		if watched[t.gvr] != nil {
			continue
		}
		if found.failed.Has(t.gvr.Group) && have.Has(t.gvr.GroupResource()) {
			continue
		}
		start = append(start, t)
	}
	for gvr := range watched {
		if !there.Has(gvr) && !found.failed.Has(gvr.Group) {
			stop = append(stop, gvr)
		}
	}
	return start, stop
}
