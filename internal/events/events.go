// Package events publishes Kubernetes events once per transition.
package events

import (
	"fmt"
	"maps"
	"sync"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
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

// Mode selects which successes are recorded as events. The zero value is
// Transitions. Failures are recorded in every mode.
type Mode string

// The values of Mode.
const (
	// Transitions records a success once per change, on the template.
	Transitions Mode = "transitions"
	// Contract also records every other success that Karmada records, on Works,
	// bindings and templates. It takes many more writes.
	Contract Mode = "contract"
)

// FlagName is the name of the flag that sets a Mode.
const FlagName = "events"

var _ pflag.Value = new(Mode)

// All reports whether every success is recorded.
func (m *Mode) All() bool { return *m == Contract }

// AddFlag adds the flag --events.
func (m *Mode) AddFlag(fs *pflag.FlagSet) {
	if *m == "" {
		*m = Transitions
	}
	fs.Var(m, FlagName, `Successes that are recorded as events: "transitions" records one per change, on the template; "contract" records all that Karmada does, also on Works and bindings.`)
}

// String implements pflag.Value.
func (m *Mode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *Mode) Type() string { return "mode" }

// Set implements pflag.Value. It fails for anything but the values of Mode.
func (m *Mode) Set(value string) error {
	switch mode := Mode(value); mode {
	case Transitions, Contract:
		*m = mode
		return nil
	}
	return fmt.Errorf("unknown value %q, must be %s or %s", value, Transitions, Contract)
}

// plain is a recorder whose messages are one line without control characters.
type plain struct{ record.EventRecorder }

// Plain returns a recorder for messages with text of member clusters: control
// characters are escaped, so that a terminal shows them, and line feeds become spaces.
func Plain(recorder record.EventRecorder) record.EventRecorder { return plain{recorder} }

// Event implements record.EventRecorder.
func (p plain) Event(object runtime.Object, eventtype, reason, message string) {
	p.EventRecorder.Event(object, eventtype, reason, plaintext.EscapeLine(message))
}

// Eventf implements record.EventRecorder.
func (p plain) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	p.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (p plain) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	p.EventRecorder.AnnotatedEventf(object, annotations, eventtype, reason, "%s", plaintext.EscapeLine(fmt.Sprintf(messageFmt, args...)))
}
