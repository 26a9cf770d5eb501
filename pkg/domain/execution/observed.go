package execution

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/conditions"
)

// maxStatus is the limit of the status of an object in a Work, in bytes: the control
// plane stores the status of every object of every cluster.
const maxStatus = 512 << 10

// Interpreter interprets the status of objects.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	ReflectStatus(obj *unstructured.Unstructured) (*runtime.RawExtension, error)
	InterpretHealth(obj *unstructured.Unstructured) (bool, error)
}

// The reasons of the events about the status of objects.
const (
	ReasonReflectStatus         = "ReflectStatusSucceed"
	ReasonReflectStatusFailed   = "ReflectStatusFailed"
	ReasonInterpretHealth       = "InterpretHealthSucceed"
	ReasonInterpretHealthFailed = "InterpretHealthFailed"
)

// Event is an event about the status of an object, on its Work.
type Event struct{ Type, Reason, Message string }

// interpretError is a failure of the interpreter. The reason is that of its event.
type interpretError struct{ reason, message string }

// Observed is the status of an object as it was observed last. The zero value is that
// of an object that was never observed. Only this package changes it.
type Observed struct {
	// version is that of the snapshot, and revision that of the rules of the
	// interpreter, from which status and health were computed.
	version  string
	revision uint64
	status   *runtime.RawExtension
	health   workv1alpha1.ResourceHealth
	err      interpretError
}

// missing is the version of an object that does not exist, outdated that of one whose
// status has to be read again.
const missing, outdated = "missing", "outdated"

// Healthy reports whether the object was healthy.
func (o Observed) Healthy() bool { return o.health == workv1alpha1.ResourceHealthy }

// Missing returns the value of an object that does not exist and is not created, as
// dispatching is suspended. Otherwise an object that does not exist keeps its status,
// since it is created again.
func (o Observed) Missing() Observed {
	if o.version != "" {
		o.version, o.health = missing, workv1alpha1.ResourceUnknown
	}
	return o
}

// Outdated returns the value after the member was restored from an older copy, in which
// a version may belong to other content.
func (o Observed) Outdated() Observed {
	if o.version != "" {
		o.version = outdated
	}
	return o
}

// UpToDate reports whether the value was computed from a version of the object and a
// revision of the rules.
func (o Observed) UpToDate(s *Snapshot, revision uint64) bool {
	return o.version == s.Version && o.revision == revision
}

// Observe returns the value for a snapshot of an object and the events about it.
func Observe(in Interpreter, gvk schema.GroupVersionKind, key types.NamespacedName, old Observed, s *Snapshot, revision uint64) (Observed, []Event, error) {
	obj, err := s.Object()
	if err != nil {
		return old, nil, err
	}
	out := Observed{version: s.Version, revision: revision}
	var events []Event
	fail := func(reason, format string, args ...any) {
		out.err = interpretError{reason, fmt.Sprintf(format, args...)}
		events = append(events, Event{corev1.EventTypeWarning, reason, out.err.message})
	}
	first := old.version == ""
	out.status, err = in.ReflectStatus(obj)
	if err == nil {
		out.status, err = conditions.Report(obj, out.status)
	}
	if err != nil {
		fail(ReasonReflectStatusFailed, "Reflect status for object(%s/%s) failed, err: %s.", gvk.Kind, key, Text(err.Error()))
		old.err = out.err
		return old, events, fmt.Errorf("reflecting the status of %s %s: %w", gvk.Kind, key, err)
	}
	if out.status != nil && len(out.status.Raw) > maxStatus {
		fail(ReasonReflectStatusFailed, "Status of object(%s/%s) is left out: it has %d bytes, more than %d.", gvk.Kind, key, len(out.status.Raw), maxStatus)
		out.status = nil
	}
	out.health = workv1alpha1.ResourceHealthy
	if in.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretHealth) {
		healthy, err := in.InterpretHealth(obj)
		switch {
		case err != nil:
			out.health = workv1alpha1.ResourceUnknown
			fail(ReasonInterpretHealthFailed, "Interpret health of object(%s/%s) failed, err: %s.", gvk.Kind, key, Text(err.Error()))
		case !healthy:
			out.health = workv1alpha1.ResourceUnhealthy
		}
		if err == nil && (first || old.health != out.health) {
			events = append(events, Event{corev1.EventTypeNormal, ReasonInterpretHealth,
				fmt.Sprintf("Interpret health of object(%s/%s) as %s.", gvk.Kind, key, strings.ToLower(string(out.health)))})
		}
	}
	if !first && sameRaw(old.status, out.status) {
		out.status = old.status
	} else {
		events = append(events, Event{corev1.EventTypeNormal, ReasonReflectStatus, fmt.Sprintf("Reflect status for object(%s/%s) succeed.", gvk.Kind, key)})
	}
	return out, events, nil
}
