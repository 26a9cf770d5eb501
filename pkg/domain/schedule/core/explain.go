package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// passRecord is what a decision remembers of a pass.
type passRecord struct {
	term     *policyv1alpha1.ClusterAffinityTerm
	strategy strategy
	records  []record
	reasons  []framework.Verdict
	scores   []uint8
	sets     bool
	demand   replicas.Demand
	set      replicas.SetDemand
	err      error
}

// Explanation explains, for every cluster, why it is in or out of a decision. Its
// size is bounded by the number of clusters and affinity terms.
type Explanation struct {
	// Passes are the passes in order: one for each affinity term tried.
	Passes []PassExplanation `json:"passes"`
}

// PassExplanation explains one pass.
type PassExplanation struct {
	// Affinity names the affinity term.
	Affinity string `json:"affinity,omitempty"`
	// Error is the reason why the pass did not succeed.
	Error string `json:"error,omitempty"`
	// Clusters are sorted by name.
	Clusters []ClusterExplanation `json:"clusters"`
}

// ClusterExplanation explains what became of one cluster.
type ClusterExplanation struct {
	Name string `json:"name"`
	// RejectedBy names the filter that kept the cluster out.
	RejectedBy string `json:"rejectedBy,omitempty"`
	// Reason is why it is out.
	Reason string `json:"reason,omitempty"`
	// Detail is what the filter compared with what.
	Detail string `json:"detail,omitempty"`
	// Group is the region, where the binding is spread by region.
	Group string `json:"group,omitempty"`
	// Tier is the place of the overflow affinity that selects it; 0 for the
	// affinity itself.
	Tier int32 `json:"tier,omitempty"`
	// Score is the sum of Scores.
	Score int64 `json:"score,omitempty"`
	// Scores are the scores that are not 0, by plugin.
	Scores []PluginScore `json:"scores,omitempty"`
	// Capacity is the number of replicas, or of sets of components, that still
	// fit; nil where it does not matter.
	Capacity *int64 `json:"capacity,omitempty"`
	// BoundBy names the resource that keeps Capacity from being larger.
	BoundBy string `json:"boundBy,omitempty"`
	// EstimatorError is the reason why its accurate estimator did not answer.
	EstimatorError string `json:"estimatorError,omitempty"`
	// Selected reports whether the cluster passed the spread constraints.
	Selected bool `json:"selected,omitempty"`
	// Target reports whether it is in the result, with Replicas given by Rule.
	Target   bool   `json:"target,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
	Rule     string `json:"rule,omitempty"`
}

// PluginScore is the score that a plugin gave.
type PluginScore struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"`
}

// Words for clusters that no filter rejected.
const (
	reasonTerminating = "cluster is being deleted"
	reasonNotSelected = "not selected by the spread constraints"
	reasonNoReplicas  = "got no replicas"
)

// maxReason bounds the text that a plugin can put into an explanation.
const maxReason = 256

// Explain puts what the decision remembers into words.
func (d *Decision) Explain() Explanation {
	e := Explanation{Passes: make([]PassExplanation, len(d.passes))}
	if len(d.passes) == 0 {
		return e
	}
	var pass framework.Pass
	binding := d.request.binding()
	pass.Start(&binding, d.snapshot)
	for i := range d.passes {
		pass.Use(d.passes[i].term)
		e.Passes[i] = d.explainPass(&d.passes[i], &pass)
	}
	return e
}

func (d *Decision) explainPass(p *passRecord, pass *framework.Pass) PassExplanation {
	out := PassExplanation{Clusters: make([]ClusterExplanation, len(p.records))}
	if p.term != nil {
		out.Affinity = p.term.AffinityName
	}
	if p.err != nil {
		out.Error = p.err.Error()
	}
	reasons := make([]string, len(p.reasons))
	for i := range reasons {
		reasons[i] = bounded(p.reasons[i].String())
	}
	capacities := make([]int64, len(p.records))
	grouped := constraint(d.request.Spec.Placement, policyv1alpha1.SpreadByFieldRegion) != nil
	for i := range p.records {
		r, c := &p.records[i], &out.Clusters[i]
		c.Name = d.snapshot.At(i).Name()
		switch r.state {
		case terminating:
			c.Reason = reasonTerminating
			continue
		case rejected:
			filter := d.request.Profile.filters[r.plugin]
			c.RejectedBy, c.Reason = filter.Name(), reasons[r.rejected-1]
			if detailer, ok := filter.(framework.Detailer); ok {
				c.Detail = bounded(detailer.Detail(pass, d.snapshot.At(i)))
			}
			continue
		}
		if grouped {
			c.Group = d.snapshot.At(i).Object.Spec.Region
		}
		capacities[i] = r.capacity
		d.explainFeasible(p, r, c, &capacities[i])
	}
	d.explainScores(p, &out)
	return out
}

// Estimates returns what the estimators answered, by cluster.
func (d *Decision) Estimates() map[string]Estimate {
	if d.request == nil {
		return nil
	}
	return d.request.Estimates
}

// namedEstimators is the number of clusters that Unestimated names.
const namedEstimators = 3

// Room returns, if the first pass failed for lack of room, how many more replicas fit each cluster that it could choose and what
// keeps it from being more: such as "member1 2 (cpu), member2 0 (memory)". It names few of many, first those that get no more
// whatever their room.
func (d *Decision) Room() string {
	if len(d.passes) == 0 {
		return ""
	}
	p := &d.passes[0] // of several that fail, the error of the first decides
	spread, _ := errors.AsType[*SpreadError](p.err)
	unselected := spread != nil && spread.Capacity
	if !unselected && ClassOf(p.err) != Unschedulable {
		return ""
	}
	var parts []string
	more := 0
	for _, full := range []bool{true, false} {
		for i := range p.records {
			r := &p.records[i]
			switch {
			case r.full != full || r.state != feasible || !r.selected && !unselected || r.bound == replicas.BoundNone:
			case len(parts) == namedPerReason:
				more++
			default:
				parts = append(parts, fmt.Sprintf("%s %d (%s)", d.snapshot.At(i).Name(), r.capacity, p.boundName(r.bound)))
			}
		}
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more clusters", more))
	}
	return strings.Join(parts, ", ")
}

// boundName names what bounds the capacity of a cluster.
func (p *passRecord) boundName(bound replicas.Bound) string {
	if p.sets {
		return p.set.BoundName(bound)
	}
	return p.demand.BoundName(bound)
}

// Unestimated returns a sentence about the clusters whose estimators did not answer, for which only their resource
// summaries counted; empty if there are none.
func (d *Decision) Unestimated() string {
	estimates := d.Estimates()
	var parts []string
	failed := 0
	for _, cluster := range slices.Sorted(maps.Keys(estimates)) {
		if e := estimates[cluster]; e.Err != "" {
			if failed++; failed <= namedEstimators {
				parts = append(parts, cluster+" ("+bounded(e.Err)+")")
			}
		}
	}
	if failed == 0 {
		return ""
	}
	if more := failed - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "No estimate from the scheduler-estimator of " + strings.Join(parts, ", ") + "; the resource summary was used."
}

func bounded(s string) string {
	if len(s) > maxReason {
		return strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return s
}

func (d *Decision) explainFeasible(p *passRecord, r *record, c *ClusterExplanation, capacity *int64) {
	c.Tier, c.Score, c.Selected = r.tier, r.score, r.selected
	if r.bound != replicas.BoundNone {
		c.Capacity, c.BoundBy = capacity, p.boundName(r.bound)
	}
	if len(d.request.Estimates) > 0 {
		c.EstimatorError = bounded(d.request.Estimates[c.Name].Err)
	}
	c.Target, c.Replicas, c.Rule = r.rule != RuleNone, r.replicas, r.rule.String()
	if p.err != nil {
		c.Target, c.Replicas, c.Rule = false, 0, ""
		return
	}
	switch {
	case !r.selected:
		c.Reason = reasonNotSelected
	case r.rule == RuleNone:
		c.Reason = reasonNoReplicas
	}
}

// explainScores spreads the scores, which are kept plugin after plugin, over the
// clusters.
func (d *Decision) explainScores(p *passRecord, out *PassExplanation) {
	n := len(p.records)
	count := 0
	for _, s := range p.scores {
		if s != 0 {
			count++
		}
	}
	if count == 0 {
		return
	}
	slab := make([]PluginScore, 0, count)
	for i := range out.Clusters {
		first := len(slab)
		for j, plugin := range d.request.Profile.scores {
			if s := p.scores[j*n+i]; s != 0 {
				slab = append(slab, PluginScore{Plugin: plugin.Name(), Score: int64(s)})
			}
		}
		if len(slab) > first {
			out.Clusters[i].Scores = slab[first:len(slab):len(slab)]
		}
	}
}
