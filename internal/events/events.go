// Package events publishes Kubernetes events once per transition.
package events

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// remembered is the number of objects whose last failures are known.
const remembered = 4096

// Recorder publishes the events of one component. A failure is published once
// until its text changes or the object recovers.
type Recorder struct {
	recorder record.EventRecorder
	mode     Mode

	mu       sync.Mutex
	failures *lru.Cache // types.UID to map[failure]message
}

// failure identifies what failed of an object.
type failure struct{ part, reason string }

// New returns a Recorder that publishes through another one.
func New(recorder record.EventRecorder) *Recorder {
	return &Recorder{recorder: Plain(recorder), failures: lru.New(remembered)}
}

// ForManager returns a Recorder for a component of a manager.
func ForManager(mgr manager.Manager, component string, mode Mode) *Recorder {
	// Events of the core group are part of the contract.
	return New(mgr.GetEventRecorderFor(component)).WithMode(mode)
}

// WithMode sets which successes are recorded, before the first event, and returns
// the Recorder.
func (r *Recorder) WithMode(mode Mode) *Recorder {
	r.mode = mode
	return r
}

// All reports whether every success is recorded.
func (r *Recorder) All() bool { return r.mode.All() }

// Detail records a success that only the mode Contract records. It does not make
// failures of the object be published again.
func (r *Recorder) Detail(obj runtime.Object, reason, message string) {
	if r.All() {
		r.recorder.Event(obj, corev1.EventTypeNormal, reason, message)
	}
}

// Normal publishes that something was done.
func (r *Recorder) Normal(obj runtime.Object, reason, message string) {
	r.Recovered(obj)
	r.recorder.Event(obj, corev1.EventTypeNormal, reason, message)
}

// Warning publishes that something failed, once.
func (r *Recorder) Warning(obj runtime.Object, reason, message string) {
	r.warn(obj, failure{reason: reason}, message)
}

// PartWarning publishes that something failed for one part of the object, such as
// a cluster, once for each part, whether or not the object recovers as a whole.
func (r *Recorder) PartWarning(obj runtime.Object, part, reason, message string) {
	r.warn(obj, failure{part, reason}, message)
}

func (r *Recorder) warn(obj runtime.Object, f failure, message string) {
	if r.changed(uidOf(obj), f, message) {
		r.recorder.Event(obj, corev1.EventTypeWarning, f.reason, message)
	}
}

// Recovered makes the next failure of the object be published again.
func (r *Recorder) Recovered(obj runtime.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := uidOf(obj)
	known, ok := r.failures.Get(uid)
	if !ok {
		return
	}
	messages := known.(map[failure]string)
	maps.DeleteFunc(messages, func(f failure, _ string) bool { return f.part == "" })
	if len(messages) == 0 {
		r.failures.Remove(uid)
	}
}

// changed stores the message of a failure and reports whether it is another one
// than before.
func (r *Recorder) changed(uid types.UID, f failure, message string) bool {
	if uid == "" {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.failures.Get(uid)
	if !ok {
		known = map[failure]string{}
		r.failures.Add(uid, known)
	}
	messages := known.(map[failure]string)
	if last, ok := messages[f]; ok && last == message {
		return false
	}
	messages[f] = message
	return true
}

func uidOf(obj runtime.Object) types.UID {
	if ref, ok := obj.(*corev1.ObjectReference); ok {
		return ref.UID
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}
