package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/metrics"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// Retainer returns the fields that members own.
type Retainer interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Retain(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// writer writes one object of a Work in a member.
type writer struct {
	cluster string
	// timeout bounds each request.
	timeout  time.Duration
	hasher   execution.Hasher
	clock    clock.PassiveClock
	metrics  *writeMetrics
	retainer Retainer
	// written is called with each object that was created or changed.
	written func(desired *unstructured.Unstructured)
	// work is the key of the Work.
	work types.NamespacedName
	gvk  schema.GroupVersionKind
	key  types.NamespacedName
	// statusIsField reports that the kind has no status subresource: controllers in the member write ordinary fields of the object.
	statusIsField bool
	// member has the object. It may have an older version than it returned for the last write.
	member interface{ WentBack(from, to string) }
	// resource is the client of the namespace of the object.
	resource dynamic.ResourceInterface
	// current returns an error if the Work is not the one whose manifest is applied. It is called after a conflict: what wrote the object may
	// be another leader with a later manifest.
	current func(ctx context.Context) error
}

// apply does the action for an object that Decide returned for the value and the
// snapshot.
func (w *writer) apply(ctx context.Context, a execution.Applied, raw []byte, action execution.Action, s *execution.Snapshot) (execution.Applied, error) {
	desired := &unstructured.Unstructured{}
	if err := desired.UnmarshalJSON(raw); err != nil {
		return a, fmt.Errorf("decoding the manifest: %w", err)
	}
	if !manifest.Owned(desired) { // somebody wrote the Work by hand
		manifest.Annotate(desired, manifest.Origin{WorkNamespace: w.work.Namespace, WorkName: w.work.Name})
	}
	if w.statusIsField {
		manifest.RecordFields(desired)
	}
	var observed *unstructured.Unstructured
	var err error
	if action == execution.ActionCompare {
		if observed, err = s.Object(); err != nil {
			return a, err
		}
	}
	for range maxAttempts {
		if action == execution.ActionRead {
			if a, observed, err = w.read(ctx, a); err != nil {
				return a, err
			}
		}
		var stored *unstructured.Unstructured
		if observed == nil {
			stored, observed, err = w.createOrGet(ctx, desired)
			a = a.Existing(observed != nil || apierrors.IsAlreadyExists(err))
		}
		if observed != nil {
			stored, err = w.update(ctx, &a, desired, observed)
		}
		if err == nil {
			return w.record(a, desired, stored)
		}
		if !outdated(err, observed) {
			return a, err
		}
		if err := w.current(ctx); err != nil {
			return a, err
		}
		action = execution.ActionRead
	}
	return a, err
}

// read returns the object in the member. An older version than that of the last write is reported.
func (w *writer) read(ctx context.Context, a execution.Applied) (execution.Applied, *unstructured.Unstructured, error) {
	observed, err := w.get(ctx)
	if err == nil && observed != nil && a.Newer(observed.GetResourceVersion()) {
		w.member.WentBack(a.Version(), observed.GetResourceVersion())
		a = execution.Unknown(true)
	}
	return a, observed, err
}

// outdated reports whether a write failed because the object is another one than was observed.
func outdated(err error, observed *unstructured.Unstructured) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || observed != nil && apierrors.IsNotFound(err)
}

// createOrGet creates the object. If the member refuses that although the object exists, it
// returns the object as observed: members check ports, quotas and webhooks before names.
func (w *writer) createOrGet(ctx context.Context, desired *unstructured.Unstructured) (stored, observed *unstructured.Unstructured, err error) {
	stored, err = w.create(ctx, desired)
	var refused apierrors.APIStatus
	if err == nil || !errors.As(err, &refused) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return stored, nil, err
	}
	observed, getErr := w.get(ctx)
	if getErr != nil || observed == nil {
		return nil, nil, err
	}
	return nil, observed, nil
}

// remove deletes the object if it belongs to the Work. It reads the object first, unless it still is as observed: s, which
// may be nil. It returns what the object waits for that is being deleted, such as finalizers; nothing if it is gone, or will be by itself.
func (w *writer) remove(ctx context.Context, s *execution.Snapshot) (waits []string, err error) {
	if observed := w.observed(s); observed != nil {
		err := client.IgnoreNotFound(w.delete(ctx, metav1.Preconditions{UID: new(observed.GetUID()), ResourceVersion: new(observed.GetResourceVersion())}))
		if err == nil {
			return waitsFor(observed), nil
		}
		if !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("deleting %s %s in cluster %s: %w", w.gvk.Kind, w.key, w.cluster, err)
		}
	}
	err = w.eachOwned(ctx, "deleting", func(obj *unstructured.Unstructured) error {
		waits = waitsFor(obj)
		if obj.GetDeletionTimestamp() != nil {
			return nil
		}
		// With the version: a user may take the label away after it was read, which keeps the object.
		return w.delete(ctx, metav1.Preconditions{UID: new(obj.GetUID()), ResourceVersion: new(obj.GetResourceVersion())})
	})
	return waits, err
}

// waitsFor returns what the deletion of an object waits for: its finalizers, and what a namespace reports of those in it.
func waitsFor(obj *unstructured.Unstructured) []string {
	waits := obj.GetFinalizers()
	if obj.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}) {
		return waits
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["status"] == "True" {
			waits = append(waits, fmt.Sprint(c["message"]))
		}
	}
	return append(waits, "what is in it")
}

// observed returns the object of a snapshot if it belongs to the Work and is not being deleted, or nil.
func (w *writer) observed(s *execution.Snapshot) *unstructured.Unstructured {
	if s == nil {
		return nil
	}
	obj, err := s.Object()
	if err != nil || obj == nil || obj.GetResourceVersion() == "" || obj.GetDeletionTimestamp() != nil || !w.owned(obj) {
		return nil
	}
	return obj
}

func (w *writer) delete(ctx context.Context, only metav1.Preconditions) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	err := w.resource.Delete(ctx, w.key.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &only})
	if !apierrors.IsConflict(err) {
		w.metrics.deleted(w.gvk, w.cluster, client.IgnoreNotFound(err))
	}
	return err
}

// release removes the labels and annotations of the control plane from the object,
// which remains in the member.
func (w *writer) release(ctx context.Context) error {
	return w.eachOwned(ctx, "releasing", func(obj *unstructured.Unstructured) error {
		if !manifest.StripOwnership(obj) {
			return nil
		}
		_, err := w.put(ctx, obj)
		return err
	})
}

// eachOwned calls write with the object, if it belongs to the Work, until that does not
// end in a conflict.
func (w *writer) eachOwned(ctx context.Context, doing string, write func(*unstructured.Unstructured) error) error {
	for range maxAttempts {
		obj, err := w.get(ctx)
		if err != nil {
			return fmt.Errorf("reading %s %s in cluster %s: %w", w.gvk.Kind, w.key, w.cluster, err)
		}
		if obj == nil || !w.owned(obj) {
			return nil
		}
		err = write(obj)
		if apierrors.IsConflict(err) {
			continue
		}
		if err = client.IgnoreNotFound(err); err != nil {
			return fmt.Errorf("%s %s %s in cluster %s: %w", doing, w.gvk.Kind, w.key, w.cluster, err)
		}
		return nil
	}
	return fmt.Errorf("%s %s %s in cluster %s: it keeps changing", doing, w.gvk.Kind, w.key, w.cluster)
}

// get reads the object from the member. It returns nil if it does not exist.
func (w *writer) get(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	obj, err := w.resource.Get(ctx, w.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

func (w *writer) create(ctx context.Context, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	stored, err := withNodePorts(desired, func(desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return w.resource.Create(ctx, desired, metav1.CreateOptions{})
	})
	if !apierrors.IsAlreadyExists(err) {
		w.metrics.created(w.gvk, w.cluster, err)
	}
	if err == nil {
		w.written(desired)
	}
	return stored, err
}

// update updates the observed object if that is allowed and it differs from what is
// desired.
func (w *writer) update(ctx context.Context, a *execution.Applied, manifested, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if observed.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("resource(kind=%s, %s) in the cluster %s is being deleted, it is created again when it is gone", w.gvk.Kind, w.key, w.cluster)
	}
	overwrite := manifested.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite
	if !overwrite && !w.owned(observed) {
		return nil, fmt.Errorf("resource(kind=%s, %s) already exists in the cluster %s and the %s strategy value is %s, Karmada will not manage this resource; "+
			"to take it over, set the annotation \"%[4]s: %[6]s\" on the template, or \"conflictResolution: Overwrite\" in the policy",
			w.gvk.Kind, w.key, w.cluster, workv1alpha2.ResourceConflictResolutionAnnotation, workv1alpha2.ResourceConflictResolutionAbort, workv1alpha2.ResourceConflictResolutionOverwrite)
	}
	desired, err := w.retain(manifested, observed)
	if err != nil {
		return nil, err
	}
	if a.Hold(w.gvk.GroupKind(), desired, observed, w.clock.Now()) {
		if current, err := w.get(ctx); err == nil && current != nil { // what is observed has no managed fields
			a.RecordManagers(current)
		}
	}
	if manifest.Equal(desired, observed) {
		w.metrics.updated(w.gvk, w.cluster, operationNone, nil)
		return observed, nil
	}
	stored, err := w.put(ctx, desired)
	if !apierrors.IsConflict(err) {
		w.metrics.updated(w.gvk, w.cluster, operationOf(observed, stored), err)
	}
	if field, immutable := immutableField(err); immutable {
		err = &immutableError{Field: field, Object: w.gvk.Kind + " " + strings.TrimPrefix(w.key.String(), "/"), Cluster: w.cluster, Err: err}
	}
	if err == nil && stored.GetResourceVersion() != observed.GetResourceVersion() {
		w.written(desired)
	}
	return stored, err
}

// retain returns the manifest as an update of the observed object.
func (w *writer) retain(manifested, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	desired := manifested.DeepCopy()
	manifest.RetainMetadata(desired, observed)
	if w.retainer.HookEnabled(w.gvk, configv1alpha1.InterpreterOperationRetain) {
		var err error
		if desired, err = w.retainer.Retain(desired, observed); err != nil {
			return nil, fmt.Errorf("retaining fields: %w", err)
		}
	}
	interpreter.RetainUnset(desired, observed)
	if w.statusIsField {
		manifest.RetainFields(desired, observed)
	}
	manifest.KeepNodePorts(desired, observed)
	return desired, nil
}

func (w *writer) put(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return withNodePorts(obj, func(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return w.resource.Update(ctx, obj, metav1.UpdateOptions{})
	})
}

// withNodePorts writes an object. Node ports that the control plane allocated and the member refuses are left out, in the end all
// of them: it names one at a time.
func withNodePorts(obj *unstructured.Unstructured, write func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	stored, err := write(obj)
	for n := 1; n < maxAttempts && err != nil; n++ {
		refused := refusedNodePort(err)
		without := manifest.DropNodePorts(obj, func(path string) bool { return refused(path) || n == maxAttempts-1 && refused("") })
		if without == nil {
			break
		}
		obj = without
		stored, err = write(obj)
	}
	return stored, err
}

// refusedNodePort reports whether an API server refuses the node port at a path, or any node port for "", because it is taken or
// outside of its range. These are the words of its allocator.
func refusedNodePort(err error) func(path string) bool {
	var refused []string
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && apierrors.IsInvalid(err) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if strings.HasPrefix(cause.Field, "spec.ports[") && strings.Contains(cause.Message, "provided port is ") {
				refused = append(refused, cause.Field)
			}
		}
	}
	if strings.Contains(err.Error(), "HealthCheck NodePort") {
		refused = append(refused, "spec.healthCheckNodePort")
	}
	return func(path string) bool { return slices.Contains(refused, path) || path == "" && len(refused) > 0 }
}

// owned reports whether an object belongs to the Work: it is managed by Karmada, and its
// annotations do not name another Work.
func (w *writer) owned(obj *unstructured.Unstructured) bool {
	if !manifest.Owned(obj) {
		return false
	}
	annotations := obj.GetAnnotations()
	work := types.NamespacedName{Namespace: annotations[workv1alpha2.WorkNamespaceAnnotation], Name: annotations[workv1alpha2.WorkNameAnnotation]}
	return work == types.NamespacedName{} || work == w.work
}

// record returns the value for an object that is stored as desired.
func (w *writer) record(a execution.Applied, desired, stored *unstructured.Unstructured) (execution.Applied, error) {
	s, err := w.hasher.Snapshot(stored)
	if err != nil {
		return a, err
	}
	return a.Written(s, manifest.KeepNodePorts(desired.DeepCopy(), stored), w.clock.Now()), nil
}

// The results of an update.
const (
	operationNone      = "none"
	operationUnchanged = "unchanged"
	operationUpdated   = "updated"
)

// writeMetrics count the writes to members.
type writeMetrics struct {
	create, update, remove *prometheus.CounterVec
}

// newWriteMetrics returns registered metrics.
func newWriteMetrics(registry prometheus.Registerer) *writeMetrics {
	counter := func(name, help string, label ...string) *prometheus.CounterVec {
		labels := append([]string{"result", "apiversion", "kind", "member_cluster"}, label...)
		return metrics.Register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	}
	return &writeMetrics{
		create: counter("create_resource_to_cluster", "Objects created in a member cluster.", "recreate"),
		update: counter("update_resource_to_cluster", "Objects updated, or found to be as wanted, in a member cluster.", "operationResult"),
		remove: counter("delete_resource_from_cluster", "Objects deleted from a member cluster."),
	}
}

func (m *writeMetrics) created(gvk schema.GroupVersionKind, cluster string, err error) {
	m.create.WithLabelValues(metrics.Result(err), gvk.GroupVersion().String(), gvk.Kind, cluster, "false").Inc()
}

func (m *writeMetrics) updated(gvk schema.GroupVersionKind, cluster, operation string, err error) {
	m.update.WithLabelValues(metrics.Result(err), gvk.GroupVersion().String(), gvk.Kind, cluster, operation).Inc()
}

func (m *writeMetrics) deleted(gvk schema.GroupVersionKind, cluster string, err error) {
	m.remove.WithLabelValues(metrics.Result(err), gvk.GroupVersion().String(), gvk.Kind, cluster).Inc()
}

func operationOf(before, after *unstructured.Unstructured) string {
	switch {
	case after == nil:
		return operationNone
	case after.GetResourceVersion() == before.GetResourceVersion():
		return operationUnchanged
	}
	return operationUpdated
}

// immutableError is returned for an update that the member refuses because a field is immutable. No repetition helps.
type immutableError struct {
	// Field is the path of the field, as far as the member says.
	Field string
	// Object is the kind and the name of the object, and Cluster the name of the member.
	Object, Cluster string
	Err             error
}

// Error implements error.
func (e *immutableError) Error() string {
	return fmt.Sprintf("%s of %s cannot be changed in cluster %s. To have the object made anew, with what depends on it, delete it there; "+
		"else change the template back, or keep the member's value with a retention rule: %v", e.Field, e.Object, e.Cluster, e.Err)
}

// Unwrap returns the answer of the member.
func (e *immutableError) Unwrap() error { return e.Err }

// immutableField returns the field that an API server does not change, and false if an error says nothing about one. Kubernetes has
// no code for it: these are the words of its validation.
func immutableField(err error) (string, bool) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldValueInvalid && cause.Type != metav1.CauseType("FieldValueForbidden") {
			continue
		}
		for _, words := range []string{"immutable", "may not change", "may not be changed", "cannot change", "cannot be changed", "updates to "} {
			if strings.Contains(cause.Message, words) {
				return cause.Field, true
			}
		}
	}
	return "", false
}

// onlyImmutable reports whether an error consists of immutableErrors.
func onlyImmutable(err error) bool {
	if err == nil {
		return false
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			if !onlyImmutable(e) {
				return false
			}
		}
		return len(many.Unwrap()) > 0
	}
	if many, ok := err.(interface{ Errors() []error }); ok {
		for _, e := range many.Errors() {
			if !onlyImmutable(e) {
				return false
			}
		}
		return len(many.Errors()) > 0
	}
	var immutable *immutableError
	return errors.As(err, &immutable)
}
