package core

import (
	"errors"
	"fmt"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/replicas"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// Schedule decides about a binding. With an error the decision has no clusters,
// but says which affinity terms were tried and explains them; ClassOf says what
// the error means. The binding and the clusters must not change while the
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
	for i := w.firstTerm(terms); i < len(terms); i++ {
		clusters, err := w.try(&terms[i], &d)
		if err == nil {
			d.Clusters, d.AffinityName = clusters, terms[i].AffinityName
			return d, nil
		}
		d.Failed = append(d.Failed, TermFailure{Index: i, Name: terms[i].AffinityName, Err: err})
	}
	return d, d.Failed[0].Err
}

// firstTerm returns the index of the term in use; terms before it are tried again
// only when somebody asks for a fresh scheduling.
func (w *work) firstTerm(terms []policyv1alpha1.ClusterAffinityTerm) int {
	if w.fresh {
		return 0
	}
	return max(0, termIndex(terms, w.pass.Status.SchedulerObservedAffinityName))
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
	pass     framework.Pass
	snapshot *framework.Snapshot
	request  *Request
	fresh    bool
	strategy strategy
	// sets says that whole sets of components are placed.
	sets   bool
	demand replicas.Demand
	set    replicas.SetDemand

	records []record
	reasons []framework.Verdict
	// scores holds what each plugin gave each cluster, once one gave something.
	scores     []uint8
	candidates []candidate
	selected   []int32
	parties    []replicas.Party
	weights    weights
	regions    regions
}

func (p *Profile) space() *work {
	if w, ok := p.spaces.Get().(*work); ok {
		return w
	}
	return &work{}
}

func (p *Profile) done(w *work) {
	w.pass.End()
	w.snapshot, w.request, w.records, w.reasons, w.scores = nil, nil, nil, nil, nil
	w.demand, w.set = replicas.Demand{}, replicas.SetDemand{}
	clear(w.parties[:cap(w.parties)])
	w.weights.end()
	w.regions.end()
	p.spaces.Put(w)
}

func (w *work) begin(snapshot *framework.Snapshot, request *Request) {
	w.snapshot, w.request = snapshot, request
	binding := request.Binding
	if binding.Status == nil {
		binding.Status = &workv1alpha2.ResourceBindingStatus{}
	}
	w.pass.Start(&binding, snapshot)
	w.fresh = Rescheduling(binding.Spec, binding.Status)
	w.strategy = strategyOf(binding.Spec.Placement.ReplicaScheduling)
	w.sets = request.MultiplePodTemplates && wholeSets(binding.Spec)
	if w.sets {
		w.set = replicas.NewSetDemand(binding.Spec.Components)
		return
	}
	if requirements := binding.Spec.ReplicaRequirements; requirements != nil {
		w.demand = replicas.NewDemand(requirements.ResourceRequest)
	} else {
		w.demand = replicas.Demand{Nothing: true}
	}
}

// wholeSets says whether all components go to exactly one cluster, so that room
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
	w.pass.Use(term)
	w.records = make([]record, w.snapshot.Len())
	w.reasons, w.scores = nil, nil
	clusters, err := w.run()
	record := passRecord{strategy: w.strategy, records: w.records, reasons: w.reasons, scores: w.scores, err: err}
	record.demand, record.set, record.sets = w.demand, w.set, w.sets
	if term != nil {
		record.term = term.AffinityName
	}
	d.passes = append(d.passes, record)
	return clusters, err
}

func (w *work) run() ([]workv1alpha2.TargetCluster, error) {
	feasible := w.filter()
	w.observe(StepFilter)
	if feasible == 0 {
		return nil, w.fitError()
	}
	err := w.score()
	w.observe(StepScore)
	if err != nil {
		return nil, fmt.Errorf("failed to prioritize clusters: %w", err)
	}
	w.rank()
	err = w.choose()
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
