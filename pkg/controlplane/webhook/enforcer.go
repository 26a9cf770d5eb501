package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/metrics"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/ledgers"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

const (
	// chargeAttempts limits the writes of a ledger that conflict with those of others.
	chargeAttempts = 10
	// chargeTimeout bounds the work on the charges that arrived together. It is less than
	// what the API server waits for the webhook.
	chargeTimeout = 2500 * time.Millisecond
	// maxReservations is the number of reservations at which admission counts the
	// bindings itself: no controller does.
	maxReservations = 500
	// maxNamespaces is the number of namespaces whose ledgers are known.
	maxNamespaces = 1000
)

// enforcer keeps the usage of namespaces within their quotas. The charges of a
// namespace that arrive while its ledger is written are written together, so that the
// number of writes does not grow with the number of bindings or quotas.
type enforcer struct {
	// cached reads quotas.
	cached  client.Reader
	ledgers ledgers.Ledgers
	clock   clock.PassiveClock
	results *prometheus.CounterVec

	mu         sync.Mutex
	namespaces map[string]*queue
}

// charge is a write of a binding that waits for a decision.
type charge struct {
	write  *quota.Write
	quotas []policyv1alpha1.FederatedResourceQuota
	done   chan error
}

// queue holds the charges of a namespace.
type queue struct {
	pending []*charge
	running bool
	// last is the ledger as it was written last, nil if that is not known. Only the
	// goroutine that runs uses it.
	last *ledgers.Stored
}

func newEnforcer(d Deps) *enforcer {
	return &enforcer{
		cached: d.Reader, clock: cmp.Or[clock.PassiveClock](d.Clock, clock.RealClock{}), namespaces: map[string]*queue{},
		ledgers: ledgers.Ledgers{Live: d.LiveReader, Writer: d.Writer},
		results: metrics.Counter(d.Metrics, "karmada_webhook_federated_quota_admissions_total",
			"Writes of bindings that add to the usage of a federated quota, by result.", "result"),
	}
}

// count counts a decision.
func (e *enforcer) count(err error) {
	result := metrics.Result(err)
	if _, refused := errors.AsType[*quota.Exceeded](err); refused {
		result = "refused"
	}
	e.results.WithLabelValues(result).Inc()
}

// charge reserves what a write adds, or returns why that is not possible.
func (e *enforcer) charge(ctx context.Context, namespace string, c *charge) error {
	e.mu.Lock()
	q := e.namespaces[namespace]
	if q == nil {
		e.forgetIdle()
		q = &queue{}
		e.namespaces[namespace] = q
	}
	q.pending = append(q.pending, c)
	start := !q.running
	q.running = true
	e.mu.Unlock()
	if start {
		go e.run(context.WithoutCancel(ctx), namespace, q)
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the ledger of namespace %s: %w", namespace, ctx.Err())
	}
}

// forgetIdle removes the queues without charges once there are many: namespaces are deleted. The ledger of one that is
// not is read again.
func (e *enforcer) forgetIdle() {
	if len(e.namespaces) >= maxNamespaces {
		maps.DeleteFunc(e.namespaces, func(_ string, q *queue) bool { return !q.running })
	}
}

// run decides on charges until there are none.
func (e *enforcer) run(ctx context.Context, namespace string, q *queue) {
	for {
		e.mu.Lock()
		charges := q.pending
		q.pending = nil
		if q.running = len(charges) > 0; !q.running {
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		results, err := e.decide(ctx, namespace, q, charges)
		for i, c := range charges {
			if err != nil {
				c.done <- err
				continue
			}
			c.done <- results[i]
		}
	}
}

// decide returns a result for each charge: nil, or an *quota.Exceeded. With an error nothing is reserved.
func (e *enforcer) decide(ctx context.Context, namespace string, q *queue, charges []*charge) ([]error, error) {
	ctx, cancel := context.WithTimeout(ctx, chargeTimeout)
	defer cancel()
	var err error
	for range chargeAttempts {
		live := q.last == nil
		if live {
			if q.last, err = e.load(ctx, namespace); err != nil {
				return nil, err
			}
		}
		next := q.last.Copy()
		results, granted, refused := apply(next, charges, e.clock.Now())
		if refused && !live {
			q.last = nil // others may have left room
			continue
		}
		if !granted {
			return results, nil
		}
		if err = e.ledgers.Put(ctx, namespace, next); err == nil {
			q.last = next
			return results, nil
		}
		if q.last = nil; !ledgers.Conflict(err) {
			return nil, err
		}
	}
	return nil, err
}

// apply reserves what fits, in the order of the charges.
func apply(s *ledgers.Stored, charges []*charge, now time.Time) (results []error, granted, refused bool) {
	results = make([]error, len(charges))
	for i, c := range charges {
		if exceeded := s.Exceeds(c.write, c.quotas); exceeded != nil {
			results[i], refused = exceeded, true
			continue
		}
		s.Reserve(c.write, now)
		granted = true
	}
	return results, granted, refused
}

// load reads the ledger. Without one, or if no controller removes what is stored, the bindings are counted.
func (e *enforcer) load(ctx context.Context, namespace string) (*ledgers.Stored, error) {
	s, err := e.ledgers.Get(ctx, namespace)
	if err != nil || s.Counted && len(s.Reservations) < maxReservations {
		return s, err
	}
	stored, err := ledgers.Bindings(ctx, e.ledgers.Live, namespace)
	if err != nil {
		return nil, err
	}
	s.Recount(stored, func(string) bool { return true }, e.clock.Now())
	return s, nil
}

// check decides on a write without reserving anything.
func (e *enforcer) check(ctx context.Context, namespace string, c *charge) error {
	s, err := e.load(ctx, namespace)
	if err != nil {
		return err
	}
	if exceeded := s.Exceeds(c.write, c.quotas); exceeded != nil {
		return exceeded
	}
	return nil
}
