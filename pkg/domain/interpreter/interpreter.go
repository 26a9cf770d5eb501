// Package interpreter returns what the control plane needs of an object of any
// kind: its replicas and what a replica needs, how to set them, what to keep of
// a member's object, its status and health, how the statuses of members add up,
// and what it depends on.
//
// An Interpreter tries its layers in order; the first that has a rule for the
// kind and the operation answers, also when it fails. The built-in rules for
// Kubernetes' own kinds are the last layer.
//
// No function changes its arguments. ReviseReplica and Retain return objects
// that the caller owns. AggregateStatus returns an object whose top level,
// metadata and status are new and whose other parts may be shared with the
// template.
package interpreter

import (
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ErrNoRule is what an operation returns, wrapped, for a kind that no layer has
// a rule for. HookEnabled reports it beforehand.
var ErrNoRule = errors.New("no rule")

// Layer is a source of rules. It must be safe for concurrent use.
type Layer interface {
	// Rules returns the rules for a kind, or nil.
	Rules(gvk schema.GroupVersionKind) *Rules
}

// Rules are what a layer knows about one kind. A nil function is no rule. The
// functions must not change their arguments and must be safe for concurrent use.
type Rules struct {
	Replicas     func(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	Components   func(obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)
	Revise       func(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
	Retain       func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Aggregate    func(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
	Dependencies func(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
	Reflect      func(obj *unstructured.Unstructured) (*runtime.RawExtension, error)
	Health       func(obj *unstructured.Unstructured) (bool, error)
	// ForCluster returns the rules for objects that a member cluster has: what those
	// objects cost falls on that cluster alone. Optional.
	ForCluster func(cluster string) *Rules
}

// Has reports whether there is a rule for the operation. Rules may be nil.
func (r *Rules) Has(op configv1alpha1.InterpreterOperation) bool {
	if r == nil {
		return false
	}
	switch op {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		return r.Replicas != nil
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return r.Components != nil
	case configv1alpha1.InterpreterOperationReviseReplica:
		return r.Revise != nil
	case configv1alpha1.InterpreterOperationRetain:
		return r.Retain != nil
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return r.Aggregate != nil
	case configv1alpha1.InterpreterOperationInterpretDependency:
		return r.Dependencies != nil
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return r.Reflect != nil
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return r.Health != nil
	}
	return false
}

// Interpreter interprets objects. It is safe for concurrent use.
type Interpreter struct {
	layers layers
	// cluster is where the objects are, if they are a member's.
	cluster  string
	notifier Notifier
}

// ForCluster returns the interpreter for objects that a member cluster has. A script
// that is slow on such objects is paused for that cluster only.
func (i *Interpreter) ForCluster(cluster string) *Interpreter {
	return &Interpreter{layers: i.layers, cluster: cluster}
}

type settings struct {
	layers        []Layer
	now           func() metav1.Time
	lenient       bool
	priorityClass bool
}

// Option changes an Interpreter.
type Option func(*settings)

// WithLayer adds a layer before the built-in rules and after the layers added
// earlier.
func WithLayer(layer Layer) Option {
	return func(s *settings) { s.layers = append(s.layers, layer) }
}

// WithLenientStatus makes the built-in rules more forgiving than the reference's:
// an object without the generation annotation, as in a Work that a user wrote,
// has its status collected with template generation 0, and the observed
// generation of StatefulSets is collected and aggregated.
func WithLenientStatus() Option {
	return func(s *settings) { s.lenient = true }
}

// WithPriorityClassName sets whether the built-in rules report the priority class
// of a replica. Default: false.
func WithPriorityClassName(enabled bool) Option {
	return func(s *settings) { s.priorityClass = enabled }
}

// New returns an Interpreter that knows Kubernetes' own kinds and what the
// options add.
func New(opts ...Option) *Interpreter {
	s := settings{now: metav1.Now}
	for _, opt := range opts {
		opt(&s)
	}
	return &Interpreter{layers: append(s.layers, newNative(s))}
}

// HookEnabled reports whether some layer has a rule for the kind and the operation.
func (i *Interpreter) HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return i.layers.rules(gvk, op) != nil
}

// layers are the sources of rules, the first to be used before the others.
type layers []Layer

// rules returns the rules of the first layer that has one for the operation. For what must not be customized it is the last
// one, which has the built-in rules.
func (l layers) rules(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) *Rules {
	if validation.CheckCustomizable(gvk.GroupKind(), op) != nil {
		l = l[len(l)-1:]
	}
	for _, layer := range l {
		if r := layer.Rules(gvk); r.Has(op) {
			return r
		}
	}
	return nil
}

func (i *Interpreter) find(obj *unstructured.Unstructured, op configv1alpha1.InterpreterOperation) (*Rules, error) {
	gvk := obj.GroupVersionKind()
	if r := i.layers.rules(gvk, op); r != nil {
		if i.cluster != "" && r.ForCluster != nil {
			return r.ForCluster(i.cluster), nil
		}
		return r, nil
	}
	switch op {
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return nil, unsupported("interface GetComponents not implemented yet")
	case configv1alpha1.InterpreterOperationInterpretDependency:
		return nil, unsupported("default interpreter for operation InterpretDependency not found")
	}
	return nil, unsupported(fmt.Sprintf("default %s interpreter for %q not found", op, gvk))
}

// unsupported is the text of an ErrNoRule.
type unsupported string

// Error returns the text.
func (e unsupported) Error() string { return string(e) }

// Is makes every unsupported an ErrNoRule.
func (e unsupported) Is(target error) bool { return target == ErrNoRule }

// GetReplicas returns how many replicas the object wants and what one needs.
func (i *Interpreter) GetReplicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	r, err := i.find(obj, configv1alpha1.InterpreterOperationInterpretReplica)
	if err != nil {
		return 0, nil, err
	}
	return r.Replicas(obj)
}

// GetComponents returns the pod templates of an object that has several.
func (i *Interpreter) GetComponents(obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	r, err := i.find(obj, configv1alpha1.InterpreterOperationInterpretComponent)
	if err != nil {
		return nil, err
	}
	return r.Components(obj)
}

// ReviseReplica returns the object with the given number of replicas.
func (i *Interpreter) ReviseReplica(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
	r, err := i.find(obj, configv1alpha1.InterpreterOperationReviseReplica)
	if err != nil {
		return nil, err
	}
	return r.Revise(obj, replicas)
}

// Retain returns the desired object with what the member owns of the observed
// one.
func (i *Interpreter) Retain(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, err := i.find(desired, configv1alpha1.InterpreterOperationRetain)
	if err != nil {
		return nil, err
	}
	retained, err := r.Retain(desired, observed)
	if err != nil || !validation.RetainsCertificates(desired.GroupVersionKind().GroupKind()) {
		return retained, err
	}
	return confine(desired, retained, observed), nil
}

// AggregateStatus returns the template with the status that the members'
// statuses add up to. When that changes nothing it returns the template itself.
func (i *Interpreter) AggregateStatus(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	r, err := i.find(obj, configv1alpha1.InterpreterOperationAggregateStatus)
	if err != nil {
		return nil, err
	}
	return r.Aggregate(obj, items)
}

// GetDependencies returns what the object needs to run, sorted.
func (i *Interpreter) GetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	r, err := i.find(obj, configv1alpha1.InterpreterOperationInterpretDependency)
	if err != nil {
		return nil, err
	}
	dependencies, err := r.Dependencies(obj)
	if err != nil {
		return nil, err
	}
	if err := VerifyDependencies(dependencies); err != nil {
		return nil, err
	}
	return dependencies, nil
}

// ReflectStatus returns what is worth collecting of the status of a member's
// object, or nil.
func (i *Interpreter) ReflectStatus(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	r, err := i.find(obj, configv1alpha1.InterpreterOperationInterpretStatus)
	if err != nil {
		return nil, err
	}
	return r.Reflect(obj)
}

// InterpretHealth reports whether a member's object is healthy.
func (i *Interpreter) InterpretHealth(obj *unstructured.Unstructured) (bool, error) {
	r, err := i.find(obj, configv1alpha1.InterpreterOperationInterpretHealth)
	if err != nil {
		return false, err
	}
	return r.Health(obj)
}

// Notifier notifies its subscribers of changed rules. It is safe for concurrent
// use.
type Notifier struct {
	mu          sync.Mutex
	subscribers []func(affects func(schema.GroupVersionKind) bool)
}

// Notifier returns the notifier of the rules.
func (i *Interpreter) Notifier() *Notifier { return &i.notifier }

// Subscribe has f called after every change, with a function that reports whether
// the rules of a kind may have changed. f must not block.
func (n *Notifier) Subscribe(f func(affects func(schema.GroupVersionKind) bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribers = append(n.subscribers, f)
}

// Publish notifies the subscribers that the rules of the affected kinds changed.
func (n *Notifier) Publish(affects func(schema.GroupVersionKind) bool) {
	n.mu.Lock()
	subscribers := n.subscribers
	n.mu.Unlock()
	for _, f := range subscribers {
		f(affects)
	}
}
