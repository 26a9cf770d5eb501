package workstatus

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
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
func (o Observed) UpToDate(s *member.Snapshot, revision uint64) bool {
	return o.version == s.Version && o.revision == revision
}

// Observe returns the value for a snapshot of an object and the events about it.
func Observe(in Interpreter, gvk schema.GroupVersionKind, key types.NamespacedName, old Observed, s *member.Snapshot, revision uint64) (Observed, []Event, error) {
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
		fail(ReasonReflectStatusFailed, "Reflect status for object(%s/%s) failed, err: %s.", gvk.Kind, key, member.Text(err.Error()))
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
			fail(ReasonInterpretHealthFailed, "Interpret health of object(%s/%s) failed, err: %s.", gvk.Kind, key, member.Text(err.Error()))
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

// Policy bounds the delay of writes of the status of Works. Each of them causes others.
type Policy struct {
	// Failure is the time that a failure must last. Default 250 ms.
	Failure time.Duration
	// Stable is the time that objects have to become healthy: at least 1 s, up to 10 s
	// where they often need longer, and 200 ms up to 15 s more for each Work of the
	// cluster that waits too.
	Stable controllers.Debounce
	// Interval is the least time between two writes. Default 250 ms.
	Interval time.Duration
}

func (p Policy) complete() Policy {
	p.Failure = cmp.Or(max(p.Failure, 0), 250*time.Millisecond)
	p.Interval = cmp.Or(max(p.Interval, 0), 250*time.Millisecond)
	if p.Stable == (controllers.Debounce{}) {
		p.Stable = controllers.Debounce{
			Stable: time.Second, StableMax: 10 * time.Second,
			PerWaiting: 200 * time.Millisecond, PerWaitingMax: 15 * time.Second,
		}
	}
	return p
}

// Change is what a status is going to be.
type Change int

// The changes.
const (
	Stable   Change = iota // no further change is expected
	Failed                 // an object was not applied; a retry may succeed
	Unstable               // objects are not healthy yet
)

// delay returns the time until a status is written that differs since dirty from what
// was written at written. stable is the time that objects have to become healthy.
func (p Policy) delay(c Change, now, dirty, written time.Time, stable time.Duration) time.Duration {
	due := dirty
	switch c {
	case Failed:
		due = dirty.Add(p.Failure)
	case Unstable:
		due = dirty.Add(stable)
	case Stable:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}

// Debouncer delays writes of the status of the Works of one cluster.
type Debouncer struct {
	policy  Policy
	backlog controllers.Backlog[string]
}

// NewDebouncer returns a Debouncer.
func NewDebouncer(p Policy) *Debouncer { return &Debouncer{policy: p.complete()} }

// Delay returns the time until the status of a Work is written that differs since dirty
// from what was written at written. 0 means that it is written now.
func (d *Debouncer) Delay(work string, c Change, now, dirty, written time.Time) time.Duration {
	var stable time.Duration
	switch c {
	case Unstable:
		stable = d.backlog.Wait(work, now, d.policy.Stable)
	case Stable:
		d.backlog.Done(work, now)
	case Failed:
		d.backlog.Forget(work)
	}
	return d.policy.delay(c, now, dirty, written, stable)
}

// Unchanged records that the status of a Work does not differ from what was written.
func (d *Debouncer) Unchanged(work string, c Change, now time.Time) {
	if c == Stable {
		d.backlog.Done(work, now)
	}
}

// Written records that the status of a Work was written.
func (d *Debouncer) Written(work string) { d.backlog.Publish(work) }

// Forget drops what is known of a Work.
func (d *Debouncer) Forget(work string) { d.backlog.Forget(work) }
