package scheduler

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// Estimates returns what the accurate estimators of clusters answer about the
// binding of a request. A cluster whose estimator fails is in the result with the
// error; one without estimator is not in it.
type Estimates func(ctx context.Context, request *core.Request, clusters []*framework.Cluster) map[string]core.Estimate

// decider makes requests of bindings and has the core decide about them.
type decider struct {
	clusters *clusters
	peers    *peers
	assumed  *assumptions
	profiles *profiles
	// estimates is nil unless estimators are enabled.
	estimates Estimates
	clock     clock.PassiveClock
	metrics   *metrics

	emptyWorkloadPropagation bool
	multiplePodTemplates     bool
}

func (d *decider) decide(ctx context.Context, b known) (core.Decision, error) {
	watch := d.metrics.watch(d.clock)
	snapshot := d.clusters.Snapshot()
	request := d.request(ctx, b, snapshot)
	request.Observe = watch.step
	decision, err := core.Schedule(snapshot, request)
	watch.done(err)
	return decision, err
}

// request returns the request of a binding, with the answers of the estimators.
func (d *decider) request(ctx context.Context, b known, snapshot *framework.Snapshot) *core.Request {
	request := &core.Request{
		Binding: framework.Binding{
			Namespace: b.GetNamespace(), Name: b.GetName(), Spec: b.GetSpec(), Status: b.GetStatus(), Peers: d.peers.of(b),
			Now: d.clock.Now(),
		},
		Profile:                  d.profiles.next(),
		EmptyWorkloadPropagation: d.emptyWorkloadPropagation,
		MultiplePodTemplates:     d.multiplePodTemplates,
	}
	if b.scope.Assume {
		request.Assumed = d.assumed.others(keyOf(b))
	}
	if d.estimates != nil && core.UsesRoom(b.GetSpec()) {
		request.Estimates = d.estimates(ctx, request, estimated(b, snapshot))
	}
	return request
}

// estimated returns the clusters whose estimators are called: those that an affinity of the binding selects.
func estimated(b known, snapshot *framework.Snapshot) []*framework.Cluster {
	var out []*framework.Cluster
	for i := range snapshot.Len() {
		if c := snapshot.At(i); !c.Terminating && core.AffectedByAnyTerm(b, c.Cluster) {
			out = append(out, c.Cluster)
		}
	}
	return out
}
