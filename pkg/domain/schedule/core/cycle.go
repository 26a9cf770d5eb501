package core

import (
	"cmp"
	"slices"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// record is what a pass remembers of one cluster.
type record struct {
	// capacity is the number of replicas that still fit.
	capacity int64
	score    int64
	held     int32
	replicas int32
	tier     int32
	// rejected is 0 for a cluster that passed, else 1 + the index of the reason.
	rejected int32
	plugin   int16
	bound    replicas.Bound
	state    state
	selected bool
	// full is set if the cluster gets no more replicas than it holds.
	full bool
	rule Rule
}

// available is what the cluster can have in all: what it holds and what fits.
func (r *record) available() int64 { return r.capacity + int64(r.held) }

type state uint8

const (
	feasible state = iota
	rejected
	terminating
)

// candidate is a feasible cluster with its sort key.
type candidate struct {
	major     int64
	available int64
	at        int32
}

// cycle is the clusters of one scheduling cycle: a record of each, and the feasible ones as
// candidates.
type cycle struct {
	pass       framework.Pass
	snapshot   *framework.Snapshot
	records    []record
	reasons    []framework.Verdict
	candidates []candidate
}

func (s *cycle) begin(binding *framework.Binding, snapshot *framework.Snapshot) {
	s.snapshot = snapshot
	s.pass.Start(binding, snapshot)
}

// use starts a pass with an affinity term, or none.
func (s *cycle) use(term *policyv1alpha1.ClusterAffinityTerm) {
	s.pass.Use(term)
	s.records, s.reasons, s.candidates = make([]record, s.snapshot.Len()), nil, s.candidates[:0]
}

func (s *cycle) end() {
	s.pass.End()
	s.snapshot, s.records, s.reasons = nil, nil, nil
}

// filter runs the filters on every cluster and returns how many passed.
func (s *cycle) filter(filters []framework.Filter) int {
	for i := range s.records {
		cluster, r := s.snapshot.At(i), &s.records[i]
		if cluster.Terminating {
			r.state = terminating
			continue
		}
		for n, plugin := range filters {
			verdict := plugin.Filter(&s.pass, cluster)
			if !verdict.Fits() {
				r.state, r.plugin, r.rejected = rejected, int16(n), s.reason(verdict)
				break
			}
		}
		if r.state == feasible {
			r.held = s.pass.Held(cluster)
			s.candidates = append(s.candidates, candidate{at: int32(i)})
		}
	}
	return len(s.candidates)
}

// reason returns 1 + the index of a verdict among the different ones so far.
func (s *cycle) reason(verdict framework.Verdict) int32 {
	for i := range s.reasons {
		if s.reasons[i] == verdict {
			return int32(i) + 1
		}
	}
	s.reasons = append(s.reasons, verdict)
	return int32(len(s.reasons))
}

func (s *cycle) fitError() *FitError {
	e := &FitError{Clusters: len(s.records), Reasons: make([]FitReason, len(s.reasons))}
	for i := range s.reasons {
		e.Reasons[i].Reason = s.reasons[i].String()
	}
	for i := range s.records {
		if s.records[i].rejected == 0 {
			continue
		}
		reason := &e.Reasons[s.records[i].rejected-1]
		reason.Count++
		if len(reason.Clusters) < namedPerReason {
			reason.Clusters = append(reason.Clusters, s.snapshot.At(i).Name())
		}
	}
	return e
}

// rank estimates the room in each candidate and sorts the candidates: by tier,
// score, room and name.
func (s *cycle) rank(room *room) {
	tiered := s.pass.Term != nil
	for i := range s.candidates {
		c := &s.candidates[i]
		cluster, r := s.snapshot.At(int(c.at)), &s.records[c.at]
		if tiered {
			r.tier = s.pass.Tier(cluster)
		}
		r.capacity, r.bound = room.in(cluster)
		c.major = int64(r.tier)<<32 - r.score
		c.available = r.available()
		if room.sets && s.pass.IsTarget(cluster) {
			c.available++ // the set that is there, which has no replicas in the target list
		}
		if bound := s.pass.Full(cluster); bound != replicas.BoundNone {
			r.full, r.capacity, r.bound = true, 0, bound
			// Selection still counts the room of a target: otherwise it could replace the target by a roomier cluster.
			if !s.pass.IsTarget(cluster) {
				c.available = 0
			}
		}
	}
	slices.SortFunc(s.candidates, func(a, b candidate) int {
		if a.major != b.major {
			return cmp.Compare(a.major, b.major)
		}
		if a.available != b.available {
			return cmp.Compare(b.available, a.available)
		}
		// The snapshot is sorted by name.
		return cmp.Compare(a.at, b.at)
	})
}
