package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

const (
	// probeInterval is the time between two calls of the estimators for a binding that lacks room.
	probeInterval = 10 * time.Second
	// probesPerPass limits the bindings that a pass calls estimators for. Those that wait longest since the last call come
	// first.
	probesPerPass = 50
)

// prober calls the estimators for the bindings that lacked room, and enqueues those for which there is more now: an estimator
// reports room when it is called only. New room by the status of a Cluster comes with the event of its change.
type prober struct {
	decider  *decider
	queue    *queue
	bindings *bindings
	clock    clock.PassiveClock

	mu      sync.Mutex
	lacking map[key]lack
}

// lack is what estimators answered when a binding lacked room, and when they were called last.
type lack struct {
	answers map[string]core.Estimate
	called  time.Time
}

// record stores what the estimators answered about a binding that lacks room.
func (p *prober) record(k key, answers map[string]core.Estimate) {
	if len(answers) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lacking == nil {
		p.lacking = map[key]lack{}
	}
	p.lacking[k] = lack{answers, p.clock.Now()}
}

// pass calls the estimators for some of the bindings that lack room.
func (p *prober) pass(ctx context.Context) {
	for _, k := range p.due() {
		b, ok := p.bindings.get(k)
		if !ok || ctx.Err() != nil {
			continue
		}
		answers := p.decider.request(ctx, b, p.decider.clusters.Snapshot()).Estimates
		if p.called(k, answers) {
			p.queue.Wake(func(other key) bool { return other == k })
		}
	}
}

// due returns the bindings whose turn it is, and forgets those that wait no longer.
func (p *prober) due() []key {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []key
	for k, l := range p.lacking {
		switch {
		case p.clock.Since(l.called) < probeInterval:
		case p.queue.Waits(k):
			out = append(out, k)
		default:
			delete(p.lacking, k)
		}
	}
	slices.SortFunc(out, func(a, b key) int { return p.lacking[a].called.Compare(p.lacking[b].called) })
	return out[:min(len(out), probesPerPass)]
}

// called takes the answers of a call, and reports whether there is more room than the binding lacked.
func (p *prober) called(k key, answers map[string]core.Estimate) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.lacking[k]
	if !ok {
		return false
	}
	for cluster, answer := range answers {
		before, answered := l.answers[cluster]
		if answered && before.Err == "" && answer.Err == "" && answer.Replicas > before.Replicas {
			delete(p.lacking, k)
			return true
		}
	}
	l.called = p.clock.Now()
	p.lacking[k] = l
	return false
}
