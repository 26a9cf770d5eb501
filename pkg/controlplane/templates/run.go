package templates

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
)

// watchedType is a type with its objects.
type watchedType struct {
	apiType
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// settle is when discovery is looked at after a hint: a new type appears there a
// moment after its definition.
func settle() []time.Duration {
	return []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second}
}

// NeedLeaderElection says that one instance at a time watches.
func (s *Store) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (s *Store) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	for {
		err := s.refresh(ctx)
		if err == nil {
			break
		}
		log.FromContext(ctx).Error(err, "Failed to discover API types")
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
	s.waitForFirstSync(ctx)
	close(s.ready)
	s.loop(ctx)
	return nil
}

func (s *Store) loop(ctx context.Context) {
	wait := s.cfg.Period
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var pending []time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.hint:
			// Hints that keep coming do not put off the look that is due.
			soon := settle()
			pending = soon[1:]
			if wait > soon[0] {
				wait = soon[0]
				timer.Reset(wait)
			}
		case <-timer.C:
			if err := s.refresh(ctx); err != nil {
				log.FromContext(ctx).Error(err, "Failed to discover API types")
			}
			wait = s.cfg.Period
			if len(pending) > 0 {
				wait, pending = pending[0], pending[1:]
			}
			timer.Reset(wait)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (s *Store) waitForFirstSync(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SyncWait)
	defer cancel()
	s.mu.RLock()
	synced := make([]cache.InformerSynced, 0, len(s.types))
	for _, t := range s.types {
		synced = append(synced, t.informer.HasSynced)
	}
	s.mu.RUnlock()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		log.FromContext(ctx).Info("Some API types cannot be listed and are read live")
	}
}

// refresh looks for types that appeared or disappeared.
func (s *Store) refresh(ctx context.Context) error {
	found, err := discover(s.cfg.Discovery, s.cfg.SkippedAPIs)
	if err != nil {
		return err
	}
	if len(found.failed) > 0 {
		log.FromContext(ctx).V(2).Info("Some API groups cannot be discovered", "groups", found.failed.UnsortedList())
	}
	s.mu.Lock()
	start, stop := found.diff(s.types)
	var gone []*watchedType
	for _, gvr := range stop {
		gone = append(gone, s.types[gvr])
		s.remove(gvr)
	}
	for _, t := range start {
		if err := s.add(t); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	s.mu.Unlock()
	for _, t := range gone {
		s.forget(t)
	}
	return nil
}

// claimIndex finds objects by the permanent ids of the policies that hold them.
const claimIndex = "claim"

func claims(obj any) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("indexing an object: %w", err)
	}
	return policy.IDs(accessor), nil
}

// add starts to watch a type; s.mu is held.
func (s *Store) add(t apiType) error {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, claimIndex: claims}
	informer := dynamicinformer.NewFilteredDynamicInformer(s.cfg.Dynamic, t.gvr, metav1.NamespaceAll, 0, indexers, nil).Informer()
	if err := informer.SetTransform(StripManagedFields); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	w := &watchedType{apiType: t, informer: informer, stop: cancel}
	for _, sub := range s.subs {
		if err := s.connect(sub, w); err != nil {
			cancel()
			return err
		}
	}
	if definesTypes(t.gvk) {
		if _, err := informer.AddEventHandler(s.hinter()); err != nil {
			cancel()
			return err
		}
	}
	s.types[t.gvr], s.byKind[t.gvk] = w, w
	go informer.RunWithContext(ctx)
	return nil
}

// remove stops watching a type; s.mu is held.
func (s *Store) remove(gvr schema.GroupVersionResource) {
	t := s.types[gvr]
	t.stop()
	delete(s.types, gvr)
	if s.byKind[t.gvk] == t {
		delete(s.byKind, t.gvk)
	}
}

// forget tells that the objects of a type that is no longer watched are gone.
func (s *Store) forget(t *watchedType) {
	s.mu.RLock()
	subs := s.subs
	s.mu.RUnlock()
	for _, obj := range t.informer.GetStore().List() {
		for _, sub := range subs {
			if sub.wants(t.gvk) {
				sub.handler(Event{Old: obj.(*unstructured.Unstructured)})
			}
		}
	}
}

// definesTypes says whether objects of the kind bring new types.
func definesTypes(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "apiextensions.k8s.io" && gvk.Kind == "CustomResourceDefinition" ||
		gvk.Group == "apiregistration.k8s.io" && gvk.Kind == "APIService"
}

func (s *Store) hinter() cache.ResourceEventHandler {
	hint := func() {
		select {
		case s.hint <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				hint()
			}
		},
		UpdateFunc: func(_, _ any) { hint() },
		DeleteFunc: func(any) { hint() },
	}
}

func (sub subscription) wants(gvk schema.GroupVersionKind) bool {
	return len(sub.kinds) == 0 || sub.kinds[gvk.GroupKind()]
}

func (s *Store) connect(sub subscription, t *watchedType) error {
	if !sub.wants(t.gvk) {
		return nil
	}
	_, err := t.informer.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: s.told,
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, initial bool) {
				sub.handler(Event{New: obj.(*unstructured.Unstructured), Initial: initial})
			},
			UpdateFunc: func(before, after any) {
				o, n := before.(*unstructured.Unstructured), after.(*unstructured.Unstructured)
				if !SameContent(o, n) {
					sub.handler(Event{Old: o, New: n})
				}
			},
			DeleteFunc: func(obj any) {
				if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = last.Obj
				}
				sub.handler(Event{Old: obj.(*unstructured.Unstructured)})
			},
		},
	})
	return err
}

// told says whether handlers hear of an object.
func (s *Store) told(obj any) bool {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	if s.cfg.SkippedNamespaces.Contains(u.GetNamespace()) {
		return false
	}
	return u.GetNamespace() != metav1.NamespaceSystem || u.GetKind() != "ConfigMap" ||
		u.GetName() != "extension-apiserver-authentication"
}
