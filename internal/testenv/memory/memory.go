// Package memory provides a control plane in memory, for tests of controllers.
package memory

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

// Env is a control plane in memory. Each kind that has a status has the status subresource. The clock begins with 2026.
type Env struct {
	*testing.T
	// Client is for the controller. Its writes are recorded, those of Stored are not.
	Client, Stored client.WithWatch
	Clock          *clocktesting.FakeClock
	Recorder       *record.FakeRecorder
	// Before is called before a write of Client, such as "patch Cluster m1" or "status Work karmada-es-m1/nginx" (a patch of the
	// status), which fails with its error. Default: nil.
	Before func(write string) error

	mu     sync.Mutex
	writes []string
}

// New returns a control plane with objects.
func New(t *testing.T, objs ...client.Object) *Env {
	t.Helper()
	scheme := kube.NewScheme()
	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithObjects(objs...)
	for _, typ := range scheme.AllKnownTypes() {
		_, status := typ.FieldByName("Status")
		if obj, ok := reflect.TypeAssert[client.Object](reflect.New(typ)); ok && status {
			b = b.WithStatusSubresource(obj)
		}
	}
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	e := &Env{T: t, Stored: b.Build(), Clock: clock, Recorder: record.NewFakeRecorder(1000)}
	e.Client = interceptor.NewClient(e.Stored, e.funcs())
	return e
}

// Index adds an index of the objects of a type.
func (e *Env) Index(obj client.Object, name string, values client.IndexerFunc) {
	e.Must(fake.AddIndex(e.Stored, obj, name, values))
}

// FailOn makes writes with a prefix fail, by means of Before.
func (e *Env) FailOn(prefix string, err error) {
	e.Before = func(write string) error {
		if strings.HasPrefix(write, prefix) {
			return err
		}
		return nil
	}
}

// FailOnce makes the next write with a prefix fail.
func (e *Env) FailOnce(prefix string, err error) {
	e.Before = func(write string) error {
		if !strings.HasPrefix(write, prefix) {
			return nil
		}
		e.Before = nil
		return err
	}
}

// Writes returns the writes since the last call, those that failed as well.
func (e *Env) Writes() (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out, e.writes = e.writes, nil
	return out
}

// Events returns the events since the last call.
func (e *Env) Events() (out []string) {
	for len(e.Recorder.Events) > 0 {
		out = append(out, <-e.Recorder.Events)
	}
	return out
}

// Must fails the test if there is an error.
func (e *Env) Must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// MustReconcile reconciles an object, and returns after which duration it is enqueued again.
func (e *Env) MustReconcile(r reconcile.Reconciler, key types.NamespacedName) time.Duration {
	e.Helper()
	result, err := r.Reconcile(e.Context(), reconcile.Request{NamespacedName: key})
	e.Must(err)
	return result.RequeueAfter
}

// Stable fails the test if another reconciliation writes or records an event.
func (e *Env) Stable(reconcile func()) {
	e.Helper()
	_, _ = e.Writes(), e.Events()
	reconcile()
	if writes, events := e.Writes(), e.Events(); len(writes)+len(events) > 0 {
		e.Errorf("another reconciliation writes %q and records %q", writes, events)
	}
}

// Key returns the key of an object, whose namespace is empty if it is cluster-scoped.
func Key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Refresh reads an object again.
func (e *Env) Refresh(obj client.Object) {
	e.Helper()
	e.Must(e.Stored.Get(e.Context(), client.ObjectKeyFromObject(obj), obj))
}

func zero[T any]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// Get returns an object.
func Get[T client.Object](e *Env, key types.NamespacedName) T {
	e.Helper()
	obj := zero[T]()
	e.Must(e.Stored.Get(e.Context(), key, obj))
	return obj
}

// List returns a list of objects.
func List[T client.ObjectList](e *Env, opts ...client.ListOption) T {
	e.Helper()
	list := zero[T]()
	e.Must(e.Stored.List(e.Context(), list, opts...))
	return list
}

// Change changes an object and its status.
func Change[T client.Object](e *Env, key types.NamespacedName, change func(T)) {
	e.Helper()
	obj := Get[T](e, key)
	change(obj)
	updated := obj.DeepCopyObject().(T)
	e.Must(e.Stored.Update(e.Context(), updated))
	obj.SetResourceVersion(updated.GetResourceVersion())
	e.Must(client.IgnoreNotFound(e.Stored.Status().Update(e.Context(), obj)))
}

func (e *Env) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return e.send("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return e.send("update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return e.send("patch", obj, func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return e.send("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return e.send("update "+sub, obj, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return e.send(sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	}
}

func (e *Env) send(verb string, obj client.Object, send func() error) error {
	gvk, err := apiutil.GVKForObject(obj, e.Stored.Scheme())
	write := verb + " " + gvk.Kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
	e.mu.Lock()
	e.writes = append(e.writes, write)
	e.mu.Unlock()
	if err == nil && e.Before != nil {
		err = e.Before(write)
	}
	if err != nil {
		return err
	}
	return send()
}
