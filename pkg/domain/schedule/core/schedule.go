// Package core decides which clusters get a template and how many replicas each
// of them gets. Schedule is a pure function of a snapshot of the clusters and a
// request; NeedsScheduling reports whether a binding is due at all. Nothing here
// reads a clock, a client or a feature gate, and nothing that is passed in is
// changed.
//
// A pass over the clusters filters them, scores them, selects some by the spread
// constraints and assigns replicas. A placement with several affinity terms gets
// one pass for each term until one succeeds. A Decision remembers why each
// cluster is in or out; Explain puts that into a form that can be shown and
// stored.
package core

import (
	"errors"
	"fmt"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// Schedule decides about a binding. With an error the decision has no clusters,
// but lists the affinity terms that were tried and explains them; ClassOf returns
// what the error means. The binding and the clusters must not change while the
// decision or its explanation is in use.
func Schedule(snapshot *framework.Snapshot, request *Request) (Decision, error) {
	d := Decision{request: request, snapshot: snapshot}
	if request.Profile == nil {
		return d, errors.New("the request has no plugins")
	}
	if request.Spec == nil || request.Spec.Placement == nil {
		return d, errors.New("the request has no placement")
	}
	w := request.Profile.space()
	defer request.Profile.done(w)
	w.begin(snapshot, request)

	terms := request.Spec.Placement.ClusterAffinities
	if request.Spec.Placement.ClusterAffinity != nil || len(terms) == 0 {
		var err error
		d.Clusters, err = w.try(nil, &d)
		return d, err
	}
	first := 0
	// The term in use is left only if its clusters do not do. The terms before it come after the last one, from the first on.
	if !w.fresh {
		first = max(0, termIndex(terms, w.cycle.pass.Status.SchedulerObservedAffinityName))
	}
	for n := range terms {
		i := (first + n) % len(terms)
		clusters, err := w.try(&terms[i], &d)
		if err == nil {
			d.Clusters, d.AffinityName = clusters, terms[i].AffinityName
			return d, nil
		}
		d.Failed = append(d.Failed, TermFailure{Index: i, Name: terms[i].AffinityName, Err: err})
	}
	if len(d.Failed) == 1 {
		return d, d.Failed[0].Err
	}
	return d, &TermsError{Failed: d.Failed}
}

func termIndex(terms []policyv1alpha1.ClusterAffinityTerm, name string) int {
	for i := range terms {
		if terms[i].AffinityName == name {
			return i
		}
	}
	return -1
}

// work is the working space of decisions. It is reused.
type work struct {
	request *Request
	fresh   bool

	cycle     cycle
	room      room
	scores    scores
	selection selection
	division  division
}

func (p *Profile) space() *work {
	if w, ok := p.spaces.Get().(*work); ok {
		return w
	}
	w := &work{}
	w.scores.cycle, w.selection.cycle, w.division.cycle = &w.cycle, &w.cycle, &w.cycle
	return w
}

func (p *Profile) done(w *work) {
	w.request = nil
	w.cycle.end()
	w.room = room{}
	w.scores.given = nil
	w.selection.regions.end()
	w.division.end()
	p.spaces.Put(w)
}

func (w *work) begin(snapshot *framework.Snapshot, request *Request) {
	w.request = request
	binding := request.binding()
	w.cycle.begin(&binding, snapshot)
	w.fresh = Rescheduling(binding.Spec, binding.Status)
	w.room = newRoom(request)
	strategy := strategyOf(binding.Spec.Placement.ReplicaScheduling)
	w.selection.begin(strategy, &w.room)
	w.division.begin(strategy, w.fresh, binding.Spec)
}

// wholeSets reports whether all components go to exactly one cluster, so that room
// is counted in sets of them.
func wholeSets(spec *workv1alpha2.ResourceBindingSpec) bool {
	if len(spec.Components) == 0 {
		return false
	}
	c := constraint(spec.Placement, policyv1alpha1.SpreadByFieldCluster)
	return c != nil && c.MinGroups == 1 && c.MaxGroups == 1
}

func constraint(placement *policyv1alpha1.Placement, field policyv1alpha1.SpreadFieldValue) *policyv1alpha1.SpreadConstraint {
	for i := range placement.SpreadConstraints {
		if placement.SpreadConstraints[i].SpreadByField == field {
			return &placement.SpreadConstraints[i]
		}
	}
	return nil
}

// try makes one pass, with one affinity term or none, and records it.
func (w *work) try(term *policyv1alpha1.ClusterAffinityTerm, d *Decision) ([]workv1alpha2.TargetCluster, error) {
	w.cycle.use(term)
	w.scores.given = nil
	clusters, err := w.run()
	record := passRecord{term: term, strategy: w.selection.strategy, records: w.cycle.records, reasons: w.cycle.reasons, scores: w.scores.given, err: err}
	record.demand, record.set, record.sets = w.room.demand, w.room.set, w.room.sets
	d.passes = append(d.passes, record)
	return clusters, err
}

func (w *work) run() ([]workv1alpha2.TargetCluster, error) {
	feasible := w.cycle.filter(w.request.Profile.filters)
	w.observe(StepFilter)
	if feasible == 0 {
		return nil, w.cycle.fitError()
	}
	err := w.scores.add(w.request.Profile.scores)
	w.observe(StepScore)
	if err != nil {
		return nil, fmt.Errorf("failed to prioritize clusters: %w", err)
	}
	w.cycle.rank(&w.room)
	err = w.selection.choose()
	w.observe(StepSelect)
	if err != nil {
		return nil, fmt.Errorf("failed to select clusters: %w", err)
	}
	clusters, err := w.assign()
	w.observe(StepAssign)
	if err != nil {
		return nil, fmt.Errorf("failed to assign replicas: %w", err)
	}
	return clusters, nil
}

func (w *work) observe(step Step) {
	if w.request.Observe != nil {
		w.request.Observe(step)
	}
}

// assign gives the selected clusters their replicas.
func (w *work) assign() ([]workv1alpha2.TargetCluster, error) {
	selected := w.selection.selected
	if len(selected) == 0 {
		return nil, errors.New("no clusters available to schedule")
	}
	spec := w.cycle.pass.Spec
	if spec.Replicas <= 0 && spec.ReplicaRequirements == nil || len(spec.Components) > 1 {
		return w.whole(selected), nil
	}
	return w.division.assign(selected, w.request.EmptyWorkloadPropagation)
}

// whole sends the template as it is to every selected cluster.
func (w *work) whole(selected []int32) []workv1alpha2.TargetCluster {
	out := make([]workv1alpha2.TargetCluster, len(selected))
	var components []workv1alpha2.TargetComponent
	if all := w.cycle.pass.Spec.Components; w.room.sets && len(all) > 1 {
		for i := range all {
			components = append(components, workv1alpha2.TargetComponent{Name: all[i].Name, Replicas: all[i].Replicas})
		}
	}
	for i, at := range selected {
		out[i] = workv1alpha2.TargetCluster{Name: w.cycle.snapshot.At(int(at)).Name(), Components: components}
		w.cycle.records[at].rule = RuleWhole
	}
	return out
}
