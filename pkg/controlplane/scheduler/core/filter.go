package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/replicas"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
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
	rule     Rule
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

// filter asks the filters about every cluster and returns how many passed.
func (w *work) filter() int {
	w.candidates = w.candidates[:0]
	for i := range w.records {
		cluster, r := w.snapshot.At(i), &w.records[i]
		if cluster.Terminating {
			r.state = terminating
			continue
		}
		for n, plugin := range w.request.Profile.filters {
			verdict := plugin.Filter(&w.pass, cluster)
			if !verdict.Fits() {
				r.state, r.plugin, r.rejected = rejected, int16(n), w.reason(verdict)
				break
			}
		}
		if r.state == feasible {
			r.held = w.pass.Held(cluster)
			w.candidates = append(w.candidates, candidate{at: int32(i)})
		}
	}
	return len(w.candidates)
}

// reason returns 1 + the index of a verdict among the different ones so far.
func (w *work) reason(verdict framework.Verdict) int32 {
	for i := range w.reasons {
		if w.reasons[i] == verdict {
			return int32(i) + 1
		}
	}
	w.reasons = append(w.reasons, verdict)
	return int32(len(w.reasons))
}

func (w *work) fitError() *FitError {
	e := &FitError{Clusters: len(w.records), Reasons: make([]FitReason, len(w.reasons))}
	for i := range w.reasons {
		e.Reasons[i].Reason = w.reasons[i].String()
	}
	for i := range w.records {
		if w.records[i].rejected == 0 {
			continue
		}
		reason := &e.Reasons[w.records[i].rejected-1]
		reason.Count++
		if len(reason.Clusters) < namedPerReason {
			reason.Clusters = append(reason.Clusters, w.snapshot.At(i).Name())
		}
	}
	return e
}

// score adds up the scores of every plugin.
func (w *work) score() error {
	for j, plugin := range w.request.Profile.scores {
		if normalizer, ok := plugin.(framework.Normalizer); ok {
			if err := w.normalized(j, normalizer); err != nil {
				return err
			}
			continue
		}
		for i := range w.candidates {
			at := w.candidates[i].at
			n, err := plugin.Score(&w.pass, w.snapshot.At(int(at)))
			if err != nil {
				return fmt.Errorf("plugin %q failed with: %w", plugin.Name(), err)
			}
			if err := w.give(j, at, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// give adds the score of a plugin to a cluster.
func (w *work) give(plugin int, at int32, n int64) error {
	if n < 0 || n > framework.MaxScore {
		name := w.request.Profile.scores[plugin].Name()
		return fmt.Errorf("plugin %q failed with: score %d is not in 0..%d", name, n, framework.MaxScore)
	}
	if n == 0 {
		return nil
	}
	if w.scores == nil {
		w.scores = make([]uint8, len(w.records)*len(w.request.Profile.scores))
	}
	w.scores[plugin*len(w.records)+int(at)] = uint8(n)
	w.records[at].score += n
	return nil
}

func (w *work) normalized(j int, plugin framework.Normalizer) error {
	scores := make([]int64, len(w.candidates))
	for i := range scores {
		n, err := plugin.Score(&w.pass, w.snapshot.At(int(w.candidates[i].at)))
		if err != nil {
			return fmt.Errorf("plugin %q failed with: %w", plugin.Name(), err)
		}
		scores[i] = n
	}
	if err := plugin.Normalize(&w.pass, scores); err != nil {
		return fmt.Errorf("plugin %q normalizeScore failed with: %w", plugin.Name(), err)
	}
	for i, n := range scores {
		if err := w.give(j, w.candidates[i].at, n); err != nil {
			return err
		}
	}
	return nil
}

// rank estimates the room in each feasible cluster and sorts the candidates: by
// tier, score, room and name.
func (w *work) rank() {
	tiered := w.pass.Term != nil
	for i := range w.candidates {
		c := &w.candidates[i]
		cluster, r := w.snapshot.At(int(c.at)), &w.records[c.at]
		if tiered {
			r.tier = w.pass.Tier(cluster)
		}
		r.capacity, r.bound = w.estimate(cluster)
		c.major = int64(r.tier)<<32 - r.score
		c.available = r.available()
	}
	slices.SortFunc(w.candidates, func(a, b candidate) int {
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

// estimate returns how many more replicas, or sets, fit the cluster.
func (w *work) estimate(cluster *framework.ClusterInfo) (int64, replicas.Bound) {
	if w.pass.Spec.Replicas == 0 && len(w.pass.Spec.Components) == 0 {
		return math.MaxInt32, replicas.BoundNone
	}
	capacity := cluster.Capacity
	if len(w.request.Assumed) > 0 {
		capacity = capacity.Without(w.request.Assumed[cluster.Name()])
	}
	var n int32
	var bound replicas.Bound
	if w.sets {
		n, bound = capacity.Sets(&w.set)
	} else {
		n, bound = capacity.Replicas(&w.demand)
	}
	if len(w.request.Estimates) > 0 {
		e, ok := w.request.Estimates[cluster.Name()]
		if ok && e.Err == "" && e.Replicas != Unauthentic && e.Replicas < n {
			n, bound = e.Replicas, replicas.BoundEstimator
		}
	}
	if n == math.MaxInt32 {
		n = w.pass.Spec.Replicas
	}
	return int64(n), bound
}
