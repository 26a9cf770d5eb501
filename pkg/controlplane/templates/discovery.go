package templates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// apiType is a type that can be watched.
type apiType struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool
}

// discovered is the result of a discovery.
type discovered struct {
	types []apiType
	// failed are the groups that could not be discovered.
	failed sets.Set[string]
}

// discoverer finds the types that can be watched: periodically, and soon after a
// trigger.
type discoverer struct {
	client  discovery.DiscoveryInterface
	skipped *APIs
	period  time.Duration
	// found is called with the result of each discovery.
	found func(discovered) error
	// triggered holds an element after a trigger.
	triggered chan struct{}
}

// afterTrigger returns the delays between the discoveries after a trigger: a new
// type is served some time after it is defined.
func afterTrigger() []time.Duration {
	return []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second}
}

// run refreshes until the context ends.
func (d *discoverer) run(ctx context.Context) {
	wait := d.period
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var pending []time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.triggered:
			// Triggers that keep coming do not delay the discovery that is due.
			delays := afterTrigger()
			pending = delays[1:]
			if wait > delays[0] {
				wait = delays[0]
				timer.Reset(wait)
			}
		case <-timer.C:
			if err := d.refresh(ctx); err != nil {
				log.FromContext(ctx).Error(err, "Failed to discover API types")
			}
			wait = d.period
			if len(pending) > 0 {
				wait, pending = pending[0], pending[1:]
			}
			timer.Reset(wait)
		}
	}
}

// handler returns a handler for objects that define types; their events trigger
// discoveries.
func (d *discoverer) handler() cache.ResourceEventHandler {
	trigger := func() {
		select {
		case d.triggered <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				trigger()
			}
		},
		UpdateFunc: func(_, _ any) { trigger() },
		DeleteFunc: func(any) { trigger() },
	}
}

// definesTypes reports whether objects of the kind define types.
func definesTypes(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "apiextensions.k8s.io" && gvk.Kind == "CustomResourceDefinition" ||
		gvk.Group == "apiregistration.k8s.io" && gvk.Kind == "APIService"
}

// refresh makes one discovery.
func (d *discoverer) refresh(ctx context.Context) error {
	result, err := d.discover()
	if err != nil {
		return err
	}
	if len(result.failed) > 0 {
		log.FromContext(ctx).V(2).Info("Some API groups cannot be discovered", "groups", result.failed.UnsortedList())
	}
	return d.found(result)
}

func (d *discoverer) discover() (discovered, error) {
	lists, err := discovery.ServerPreferredResources(d.client)
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
	return discovered{types: watchable(lists, d.skipped), failed: failed}, nil
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
// could not be discovered stay watched.
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
