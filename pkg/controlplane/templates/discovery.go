package templates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
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
	triggered controllers.Trigger
	// served are the types of the last discovery, and those of groups that failed in it.
	served sets.Set[apiType]
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
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				d.triggered.Fire()
			}
		},
		UpdateFunc: func(_, _ any) { d.triggered.Fire() },
		DeleteFunc: func(any) { d.triggered.Fire() },
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
	found := discovered{types: watchable(lists, d.skipped), failed: failed}
	d.confirm(found)
	return found, nil
}

// confirm adds to the failed groups those of types that are missing, but served: an API server that has just started
// lists CRDs and aggregated APIs later than it serves them.
func (d *discoverer) confirm(found discovered) {
	served, resources := sets.New(found.types...), sets.New[schema.GroupResource]()
	for t := range served {
		resources.Insert(t.gvr.GroupResource())
	}
	for t := range d.served {
		if resources.Has(t.gvr.GroupResource()) {
			continue // perhaps in another version
		}
		if !found.failed.Has(t.gvr.Group) && !notServed(d.client, t.gvk, t.gvr.Resource) {
			found.failed.Insert(t.gvr.Group)
		}
		if found.failed.Has(t.gvr.Group) {
			served.Insert(t)
		}
	}
	d.served = served
}

// notServed reports whether the API server does not serve a kind, by the name of a resource if one is given. While it
// starts, it answers requests for an API that it does not know with an error other than NotFound; a CRD that it lists a
// moment later than that is found again by the next discovery.
func notServed(client discovery.ServerResourcesInterface, gvk schema.GroupVersionKind, resource string) bool {
	list, err := client.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == gvk.Kind && (resource == "" || r.Name == resource)
	})
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
	return !slices.ContainsFunc(wanted, func(verb string) bool { return !slices.Contains(verbs, verb) })
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
