// Package events publishes Kubernetes events without repeating itself.
package events

import (
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
	failures *lru.Cache // types.UID to map[reason]message
}

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
	if r.fresh(uidOf(obj), reason, message) {
		r.recorder.Event(obj, corev1.EventTypeWarning, reason, message)
	}
}

// Recovered makes the next failure of the object be published again.
func (r *Recorder) Recovered(obj runtime.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures.Remove(uidOf(obj))
}

func (r *Recorder) fresh(uid types.UID, reason, message string) bool {
	if uid == "" {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.failures.Get(uid)
	if !ok {
		known = map[string]string{}
		r.failures.Add(uid, known)
	}
	messages := known.(map[string]string)
	if last, ok := messages[reason]; ok && last == message {
		return false
	}
	messages[reason] = message
	return true
}

func uidOf(obj runtime.Object) types.UID {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}
