// Package works writes Works: one object for one cluster. A Work that has the wanted
// content already is not written.
package works

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Want is the wanted state of a Work.
type Want struct {
	Namespace, Name string
	// Labels and Annotations are added to what the Work has.
	Labels, Annotations map[string]string
	// Owner, if any, is the controller of a Work that is created.
	Owner *metav1.OwnerReference
	// Object is the manifest, with overrides applied. Write changes it.
	Object *unstructured.Unstructured
	// Binding is nil for Works that come from none.
	Binding *manifest.BindingRef
	// UID and Generation are those of the template.
	UID        types.UID
	Generation int64
	// ConflictResolution is empty for Works without one.
	ConflictResolution string
	// Suspend and Preserve are the fields of the spec.
	Suspend, Preserve *bool
}

// Result is what Write did.
type Result string

// The values of Result.
const (
	Unchanged Result = "unchanged"
	Created   Result = "created"
	Updated   Result = "updated"
)

// ErrForeign is returned for a Work of another binding or with another object.
var ErrForeign = errors.New("the work belongs to something else")

// ErrTooLarge is returned for a Work that the control plane does not store because of its
// size. It stays that large until its template or an override changes.
var ErrTooLarge = errors.New("the object is too large for a work")

// sized returns an error that wraps ErrTooLarge if a write was refused because of its size:
// by the API server, by the client of etcd, or by etcd, whose errors have no type.
func sized(err error) error {
	if err == nil || !apierrors.IsRequestEntityTooLargeError(err) && !strings.Contains(err.Error(), "etcdserver: request is too large") &&
		!strings.Contains(err.Error(), "trying to send message larger than max") {
		return err
	}
	return fmt.Errorf("%w: %w", ErrTooLarge, err)
}

// remembered is the number of Works whose last write is known.
const remembered = 4096

// Writer writes Works.
type Writer struct {
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	// recent holds the generation of the last Works written, to notice when the cache
	// does not show them yet.
	recent *status.Memory[client.ObjectKey, int64]
}

// NewWriter returns a Writer. The client reads from the cache, live from the API
// server.
func NewWriter(c client.Client, live client.Reader) *Writer {
	return &Writer{client: c, live: live, recent: status.NewMemory[client.ObjectKey, int64](remembered)}
}

// Wrote reports whether the Writer wrote this generation of a Work, as far as is
// known.
func (w *Writer) Wrote(work client.Object) bool {
	generation, ok := w.recent.Get(client.ObjectKeyFromObject(work))
	return ok && work.GetGeneration() <= generation
}

// ChangedByOthers passes Works that were deleted, or whose spec another client changed.
func (w *Writer) ChangedByOthers() predicate.Predicate {
	return controllers.Filter[client.Object]{Created: controllers.Never[client.Object], Updated: func(before, now client.Object) bool {
		return now.GetDeletionTimestamp() == nil && now.GetGeneration() != before.GetGeneration() && !w.Wrote(now)
	}}
}

// Write creates a Work or updates one that differs.
func (w *Writer) Write(ctx context.Context, want *Want) (Result, error) {
	key := client.ObjectKey{Namespace: want.Namespace, Name: want.Name}
	existing, err := w.get(ctx, key)
	if apierrors.IsNotFound(err) {
		err = w.create(ctx, want)
		if !apierrors.IsAlreadyExists(err) {
			return Created, err
		}
		// The cache does not show it yet.
		existing = &workv1alpha1.Work{}
		err = w.live.Get(ctx, key, existing)
	}
	if err != nil {
		return Unchanged, fmt.Errorf("getting work %s: %w", key, err)
	}
	return w.update(ctx, existing, want)
}

// get returns a Work from the cache, or from the API server if the cache does not show
// the last write.
func (w *Writer) get(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, error) {
	existing := &workv1alpha1.Work{}
	err := w.client.Get(ctx, key, existing, client.UnsafeDisableDeepCopy)
	generation, wrote := w.recent.Get(key)
	if !wrote || err == nil && existing.Generation >= generation {
		return existing, err
	}
	existing = &workv1alpha1.Work{}
	switch err = w.live.Get(ctx, key, existing); {
	case apierrors.IsNotFound(err):
		w.recent.Delete(key)
	case err == nil:
		w.recent.Set(key, existing.Generation)
	}
	return existing, err
}

func (w *Writer) create(ctx context.Context, want *Want) error {
	id := uuid.NewString()
	raw, err := want.manifest(id)
	if err != nil {
		return err
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: want.Namespace, Name: want.Name,
		Labels:      with(want.Labels, workv1alpha2.WorkPermanentIDLabel, id),
		Annotations: want.annotations(nil),
		Finalizers:  []string{workv1alpha2.ExecutionControllerFinalizer},
	}}
	if want.Owner != nil {
		work.OwnerReferences = []metav1.OwnerReference{*want.Owner}
	}
	work.Spec = want.spec(raw)
	if err := w.client.Create(ctx, work); err != nil {
		return fmt.Errorf("creating work %s/%s: %w", want.Namespace, want.Name, sized(err))
	}
	w.recent.Set(client.ObjectKeyFromObject(work), work.Generation)
	return nil
}

// update patches a Work that exists. It only reads existing.
func (w *Writer) update(ctx context.Context, existing *workv1alpha1.Work, want *Want) (Result, error) {
	if existing.DeletionTimestamp != nil {
		return Unchanged, fmt.Errorf("work %s/%s is being deleted", want.Namespace, want.Name)
	}
	if err := want.mayAdopt(existing); err != nil {
		return Unchanged, err
	}
	id := existing.Labels[workv1alpha2.WorkPermanentIDLabel]
	if id == "" {
		id = uuid.NewString()
	}
	raw, err := want.manifest(id)
	if err != nil {
		return Unchanged, err
	}
	next := &workv1alpha1.Work{TypeMeta: existing.TypeMeta, ObjectMeta: *existing.ObjectMeta.DeepCopy(), Status: existing.Status}
	next.Labels = merge(next.Labels, with(want.Labels, workv1alpha2.WorkPermanentIDLabel, id))
	next.Annotations = want.annotations(next.Annotations)
	next.Spec = want.spec(raw)
	if want.Binding != nil { // a binding deletes its Works: the garbage collector would, with the namespace, while the binding wants it
		next.OwnerReferences = slices.DeleteFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Namespace" && r.APIVersion == "v1" })
	}
	if controllerutil.AddFinalizer(next, workv1alpha2.ExecutionControllerFinalizer) {
		slices.Sort(next.Finalizers)
	}
	return w.write(ctx, existing, next)
}

// mayAdopt returns an error when the Work carries another object or belongs to
// another binding.
func (want *Want) mayAdopt(existing *workv1alpha1.Work) error {
	if key := scope.ForeignAnnotation(existing, want.Annotations); key != "" {
		return fmt.Errorf("work %s/%s comes from %s %q: %w", want.Namespace, want.Name, key, existing.Annotations[key], ErrForeign)
	}
	return want.sameObject(existing)
}

// sameObject returns an error when a Work that no binding claims carries another
// object: names of Works have a short hash, and may be those of an administrator.
func (want *Want) sameObject(existing *workv1alpha1.Work) error {
	if claimant, _ := scope.BindingOf(existing); want.Binding == nil || claimant != nil {
		return nil
	}
	wanted := override.IdentityOf(want.Object)
	for i := range existing.Spec.Workload.Manifests {
		obj := map[string]any{}
		if json.Unmarshal(existing.Spec.Workload.Manifests[i].Raw, &obj) != nil || wanted.Check(obj) != nil {
			return fmt.Errorf("work %s/%s carries another object and comes from no binding: %w", want.Namespace, want.Name, ErrForeign)
		}
	}
	return nil
}

func (want *Want) manifest(id string) ([]byte, error) {
	err := manifest.Prepare(want.Object, manifest.Origin{
		Binding: want.Binding, UID: want.UID, Generation: want.Generation,
		WorkNamespace: want.Namespace, WorkName: want.Name, WorkPermanentID: id,
		ConflictResolution: want.ConflictResolution,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the manifest of work %s/%s: %w", want.Namespace, want.Name, err)
	}
	raw, err := want.Object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest of work %s/%s: %w", want.Namespace, want.Name, err)
	}
	return bytes.TrimSpace(raw), nil
}

func (want *Want) spec(raw []byte) workv1alpha1.WorkSpec {
	return workv1alpha1.WorkSpec{
		Workload:                    workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}},
		SuspendDispatching:          want.Suspend,
		PreserveResourcesOnDeletion: want.Preserve,
	}
}

// annotations returns the annotations of the Work. Overrides that are no longer applied
// are not kept.
func (want *Want) annotations(have map[string]string) map[string]string {
	out := merge(have, want.Annotations)
	if want.ConflictResolution != "" {
		out[workv1alpha2.ResourceConflictResolutionAnnotation] = want.ConflictResolution
	}
	for _, key := range []string{policyv1alpha1.AppliedOverridesAnnotation, policyv1alpha1.AppliedClusterOverridesAnnotation} {
		if _, ok := want.Annotations[key]; !ok {
			delete(out, key)
		}
	}
	return out
}

// same reports whether two Works have the same fields that the Writer writes.
func same(a, b *workv1alpha1.Work) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) && len(a.OwnerReferences) == len(b.OwnerReferences) &&
		equality.Semantic.DeepEqual(a.Spec.SuspendDispatching, b.Spec.SuspendDispatching) &&
		equality.Semantic.DeepEqual(a.Spec.PreserveResourcesOnDeletion, b.Spec.PreserveResourcesOnDeletion) &&
		sameManifests(a.Spec.Workload.Manifests, b.Spec.Workload.Manifests)
}

func sameManifests(a, b []workv1alpha1.Manifest) bool {
	return slices.EqualFunc(a, b, func(x, y workv1alpha1.Manifest) bool {
		if bytes.Equal(x.Raw, y.Raw) {
			return true
		}
		var xo, yo unstructured.Unstructured
		if xo.UnmarshalJSON(x.Raw) != nil || yo.UnmarshalJSON(y.Raw) != nil {
			return false
		}
		return equality.Semantic.DeepEqual(xo.Object, yo.Object)
	})
}

func with(m map[string]string, key, value string) map[string]string {
	out := merge(m, nil)
	out[key] = value
	return out
}

func merge(have, add map[string]string) map[string]string {
	out := make(map[string]string, len(have)+len(add))
	maps.Copy(out, have)
	maps.Copy(out, add)
	return out
}

// Tenant returns the function for queues of Works that returns the namespace of the template of a Work, or the one that the
// first of some labels names. It is empty for Works of objects without a namespace and for those that a cache does not have.
// ctx is that of the controller: queues have none.
func Tenant(ctx context.Context, cache client.Reader, labels ...string) func(reconcile.Request) string {
	return func(req reconcile.Request) string {
		work := &workv1alpha1.Work{}
		if cache.Get(ctx, req.NamespacedName, work, client.UnsafeDisableDeepCopy) != nil {
			return ""
		}
		if _, key := scope.BindingOf(work); key.Name != "" {
			return key.Namespace
		}
		for _, label := range labels {
			if namespace := work.Labels[label]; namespace != "" {
				return namespace
			}
		}
		return ""
	}
}
