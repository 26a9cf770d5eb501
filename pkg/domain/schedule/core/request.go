package core

import (
	"fmt"
	"sync"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// Profile is a set of plugins. It may be used by many decisions at the same
// time; it keeps their working space for reuse.
type Profile struct {
	filters []framework.Filter
	scores  []framework.Score
	spaces  sync.Pool
}

// NewProfile makes a profile of plugins; they run in the order given.
func NewProfile(plugins ...framework.Plugin) (*Profile, error) {
	p := &Profile{}
	for _, plugin := range plugins {
		filter, isFilter := plugin.(framework.Filter)
		if isFilter {
			p.filters = append(p.filters, filter)
		}
		score, isScore := plugin.(framework.Score)
		if isScore {
			p.scores = append(p.scores, score)
		}
		if !isFilter && !isScore {
			return nil, fmt.Errorf("scheduler plugin %q neither filters nor scores", plugin.Name())
		}
	}
	return p, nil
}

// Request is a binding and what else a decision about it depends on.
type Request struct {
	framework.Binding

	// Profile holds the plugins; required.
	Profile *Profile
	// EmptyWorkloadPropagation adds the selected clusters that get no replicas to
	// the targets of a workload.
	EmptyWorkloadPropagation bool
	// MultiplePodTemplates takes the components of a workload into account.
	MultiplePodTemplates bool
	// Estimates are what accurate estimators answered, by cluster.
	Estimates map[string]Estimate
	// Assumed is what earlier decisions placed on each cluster that its resource
	// summary may not show yet.
	Assumed map[string][]replicas.Workload
	// Observe, if set, is called at the end of each step of each pass.
	Observe func(Step)
}

// binding returns the binding, with an empty status if it has none.
func (r *Request) binding() framework.Binding {
	binding := r.Binding
	if binding.Status == nil {
		binding.Status = &workv1alpha2.ResourceBindingStatus{}
	}
	return binding
}

// Estimate is what the accurate estimator of a cluster answered.
type Estimate struct {
	// Replicas, or sets of components, that fit; Unauthentic for no answer.
	Replicas int32
	// Err is the reason why there is no answer; the estimate is not used then.
	Err string
}

// Unauthentic is the estimate that is ignored.
const Unauthentic int32 = -1

// Step is a part of a pass.
type Step string

// The steps of a pass, in order.
const (
	StepFilter Step = "Filter"
	StepScore  Step = "Score"
	StepSelect Step = "Select"
	StepAssign Step = "AssignReplicas"
)

// Decision is the result of Schedule.
type Decision struct {
	// Clusters are the targets, in the order in which they go into the binding.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName names the affinity term in use; empty unless the placement has
	// clusterAffinities.
	AffinityName string
	// Failed are the affinity terms that were tried before, or all of them.
	Failed []TermFailure

	request  *Request
	snapshot *framework.Snapshot
	passes   []passRecord
}

// TermFailure is the reason why an affinity term could not be used.
type TermFailure struct {
	Index int
	Name  string
	Err   error
}

// Rescheduling reports whether a fresh scheduling was triggered after the last
// one.
func Rescheduling(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return spec.RescheduleTriggeredAt != nil && status.LastScheduledTime != nil &&
		status.LastScheduledTime.Before(spec.RescheduleTriggeredAt)
}
