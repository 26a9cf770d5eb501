// Package webhook is the layer of interpreter webhooks: it calls HTTPS servers of
// users to interpret their kinds.
//
// Every operation of a kind is answered by one webhook: of all that have a rule
// for it the one whose configuration and name come first. Its failure is the
// failure of the operation.
package webhook

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// Config is what the layer needs.
type Config struct {
	// Services finds a Service of the control plane; it returns a NotFound error
	// when there is none. Nil means that there are no Services.
	Services func(ctx context.Context, namespace, name string) (*corev1.Service, error)
	// Observe is called after every call. Optional.
	Observe func(Call)
	// Clock is the clock; nil means the real one.
	Clock clock.PassiveClock
}

// Call is the result of a call.
type Call struct {
	// Webhook is <configuration>/<name>.
	Webhook   string
	Operation configv1alpha1.InterpreterOperation
	// Duration is how long the caller waited.
	Duration time.Duration
	// Err is nil when the webhook answered.
	Err error
}

// Layer is the layer of ResourceInterpreterWebhookConfigurations. Without any it
// has no rules.
type Layer struct {
	ctx     context.Context //nolint:containedctx // the life of the layer: rules get no context
	config  Config
	current atomic.Pointer[snapshot]

	// mu guards endpoints, what the current hooks call.
	mu        sync.Mutex
	endpoints map[string]*endpoint
}

var _ interpreter.Layer = &Layer{}

// New returns a layer whose calls end with ctx.
func New(ctx context.Context, config Config) *Layer {
	config.Clock = cmp.Or[clock.PassiveClock](config.Clock, clock.RealClock{})
	return &Layer{ctx: ctx, config: config, endpoints: map[string]*endpoint{}}
}

// snapshot is a set of hooks and the rules they make.
type snapshot struct {
	hooks []*hook
	// kinds holds the *interpreter.Rules of the kinds that were interpreted.
	kinds sync.Map
}

// Load replaces all webhooks at once. Connections to those that stay are kept. It
// returns a function that reports whether the rules of a kind may have changed, or
// nil if none did.
func (l *Layer) Load(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration) func(schema.GroupVersionKind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	next := &snapshot{}
	endpoints := map[string]*endpoint{}
	for _, c := range configurations {
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			key := endpointKey(&w.ClientConfig)
			e, ok := endpoints[key]
			if !ok {
				if e, ok = l.endpoints[key]; !ok {
					e = newEndpoint(&w.ClientConfig, l.config)
				}
				endpoints[key] = e
			}
			next.hooks = append(next.hooks, newHook(l, c.Name+"/"+w.Name, w, e))
		}
	}
	slices.SortStableFunc(next.hooks, func(a, b *hook) int { return cmp.Compare(a.id, b.id) })
	for key, e := range l.endpoints {
		if endpoints[key] == nil {
			e.close()
		}
	}
	l.endpoints = endpoints
	return affected(l.current.Swap(next), next)
}

// affected returns which kinds are covered by a hook that only one of the
// snapshots has.
func affected(before, after *snapshot) func(schema.GroupVersionKind) bool {
	var had []*hook
	if before != nil {
		had = before.hooks
	}
	var changed []*hook
	changed = append(changed, missing(had, after.hooks)...)
	changed = append(changed, missing(after.hooks, had)...)
	if len(changed) == 0 {
		return nil
	}
	return func(gvk schema.GroupVersionKind) bool {
		return slices.ContainsFunc(changed, func(h *hook) bool { return h.rules.kind(gvk) })
	}
}

// missing returns the hooks of one list that the other has not.
func missing(these, those []*hook) []*hook {
	var out []*hook
	for _, h := range these {
		if !slices.ContainsFunc(those, h.equal) {
			out = append(out, h)
		}
	}
	return out
}

func (h *hook) equal(other *hook) bool {
	return h.id == other.id && h.endpoint == other.endpoint && h.timeout == other.timeout &&
		slices.Equal(h.versions, other.versions) && equality.Semantic.DeepEqual(h.rules, other.rules)
}

// Close ends idle connections.
func (l *Layer) Close() { l.Load(nil) }

// Rules returns the rules of the webhooks for a kind, or nil.
func (l *Layer) Rules(gvk schema.GroupVersionKind) *interpreter.Rules {
	s := l.current.Load()
	if s == nil || len(s.hooks) == 0 {
		return nil
	}
	if known, ok := s.kinds.Load(gvk); ok {
		rules, _ := known.(*interpreter.Rules)
		return rules
	}
	rules := s.rules(gvk)
	s.kinds.Store(gvk, rules)
	return rules
}

// For returns the webhook, as <configuration>/<name>, that answers an operation
// for a kind, or "".
func (l *Layer) For(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) string {
	if s := l.current.Load(); s != nil {
		if h := s.find(gvk, op); h != nil {
			return h.id
		}
	}
	return ""
}

// find returns the first hook that has a rule for the operation.
func (s *snapshot) find(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) *hook {
	for _, h := range s.hooks {
		if h.rules.operation(gvk, op) {
			return h
		}
	}
	return nil
}

func (s *snapshot) rules(gvk schema.GroupVersionKind) *interpreter.Rules {
	r := &interpreter.Rules{}
	found := false
	find := func(op configv1alpha1.InterpreterOperation) *hook {
		h := s.find(gvk, op)
		found = found || h != nil
		return h
	}
	if h := find(configv1alpha1.InterpreterOperationInterpretReplica); h != nil {
		r.Replicas = h.getReplicas
	}
	if h := find(configv1alpha1.InterpreterOperationInterpretComponent); h != nil {
		r.Components = h.getComponents
	}
	if h := find(configv1alpha1.InterpreterOperationReviseReplica); h != nil {
		r.Revise = h.reviseReplica
	}
	if h := find(configv1alpha1.InterpreterOperationRetain); h != nil {
		r.Retain = h.retain
	}
	if h := find(configv1alpha1.InterpreterOperationAggregateStatus); h != nil {
		r.Aggregate = h.aggregateStatus
	}
	if h := find(configv1alpha1.InterpreterOperationInterpretDependency); h != nil {
		r.Dependencies = h.getDependencies
	}
	if h := find(configv1alpha1.InterpreterOperationInterpretStatus); h != nil {
		r.Reflect = h.reflectStatus
	}
	if h := find(configv1alpha1.InterpreterOperationInterpretHealth); h != nil {
		r.Health = h.interpretHealth
	}
	if !found {
		return nil
	}
	return r
}

// coverage is the kinds and operations that a webhook has rules for.
type coverage []configv1alpha1.RuleWithOperations

// kind reports whether a rule covers the kind, for some operation.
func (c coverage) kind(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(c, func(r configv1alpha1.RuleWithOperations) bool { return r.Covers(gvk) })
}

// operation reports whether a rule covers the operation for the kind.
func (c coverage) operation(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return slices.ContainsFunc(c, func(r configv1alpha1.RuleWithOperations) bool {
		return r.Performs(op) && r.Covers(gvk)
	})
}
