package controllers

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestFilter(t *testing.T) {
	other := &corev1.ConfigMap{}
	for name, tc := range map[string]struct {
		filter                             Filter[*corev1.Secret]
		old, obj                           client.Object
		create, update, deleted, isGeneric bool
	}{
		"nothing set":   {Filter[*corev1.Secret]{}, secret("a"), secret("a"), true, true, true, false},
		"another type":  {Filter[*corev1.Secret]{}, other, other, false, false, false, false},
		"changed type":  {Filter[*corev1.Secret]{}, other, secret("a"), true, false, true, false},
		"no events":     {Filter[*corev1.Secret]{Created: Never[*corev1.Secret], Updated: NoUpdate[*corev1.Secret], Deleted: Never[*corev1.Secret]}, secret("a"), secret("a"), false, false, false, false},
		"another value": {Filter[*corev1.Secret]{Updated: func(before, after *corev1.Secret) bool { return before.Name != after.Name }}, secret("a"), secret("b"), true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.filter
			got := []bool{
				f.Create(event.CreateEvent{Object: tc.obj}), f.Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.obj}),
				f.Delete(event.DeleteEvent{Object: tc.obj}), f.Generic(event.GenericEvent{Object: tc.obj}),
			}
			if want := []bool{tc.create, tc.update, tc.deleted, tc.isGeneric}; !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestIndexKey(t *testing.T) {
	index := IndexKey(func(s *corev1.Secret) types.NamespacedName { return client.ObjectKeyFromObject(s) })
	for name, tc := range map[string]struct {
		obj  client.Object
		want []string
	}{
		"a key": {secret("a"), []string{"default/a"}}, "no name": {secret(""), nil}, "another type": {&corev1.ConfigMap{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := index(tc.obj); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEnqueueKey(t *testing.T) {
	h := EnqueueKey(func(s *corev1.Secret) types.NamespacedName { return client.ObjectKeyFromObject(s) })
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	for _, obj := range []client.Object{secret("a"), secret(""), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}} {
		h.Create(context.Background(), event.CreateEvent{Object: obj}, queue)
	}
	if got, _ := queue.Get(); queue.Len() != 0 || got.String() != "default/a" {
		t.Errorf("got %s and %d more", got, queue.Len())
	}
}

func TestHandler(t *testing.T) {
	var got []string
	h := Handler[*corev1.Secret]{
		Added:   func(s *corev1.Secret, _ bool) { got = append(got, "added "+s.Name) },
		Updated: func(before, after *corev1.Secret) { got = append(got, "updated "+before.Name+" "+after.Name) },
		Deleted: func(s *corev1.Secret) { got = append(got, "deleted "+s.Name) },
	}
	for _, h := range []toolscache.ResourceEventHandler{h, Handler[*corev1.Secret]{}} {
		h.OnAdd(secret("a"), true)
		h.OnAdd("text", false)
		h.OnUpdate(secret("a"), secret("b"))
		h.OnUpdate(nil, secret("b"))
		h.OnDelete(secret("b"))
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "c", Obj: secret("c")})
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "d"})
	}
	if want := []string{"added a", "updated a b", "deleted b", "deleted c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// unstarted are the informers of a manager that may not run yet.
type unstarted struct {
	cache.Informers
	informer toolscache.SharedIndexInformer
}

func (u unstarted) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return u.informer, nil
}

func TestHandle_WaitsForAnInformerThatDoesNotRunYet(t *testing.T) {
	for name, starts := range map[string]bool{"the manager starts": true, "the manager ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				objects := cachetesting.NewFakeControllerSource()
				defer objects.Shutdown()
				objects.Add(secret("a"))
				informers := unstarted{informer: toolscache.NewSharedIndexInformer(objects, &corev1.Secret{}, 0, nil)}
				var got []string
				returned := false
				go func() {
					_, err := Handle(ctx, informers, &corev1.Secret{}, Handler[*corev1.Secret]{Added: func(s *corev1.Secret, _ bool) { got = append(got, s.Name) }})
					returned = err == nil
				}()
				time.Sleep(time.Minute)
				if synctest.Wait(); returned || len(got) > 0 {
					t.Fatalf("returned %t with %q before the informer ran", returned, got)
				}
				if starts {
					go informers.informer.RunWithContext(ctx)
				} else {
					cancel()
				}
				time.Sleep(time.Second)
				if synctest.Wait(); !returned || len(got) > 0 != starts {
					t.Errorf("returned %t, handled %q", returned, got)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
