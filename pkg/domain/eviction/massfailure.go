package eviction

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	// MassFailureWindow is the time within which the clusters of a mass failure become not Ready.
	MassFailureWindow = time.Minute
	// RecoveryGrace is how long a cluster of a mass failure is not evicted after it is Ready again, so that the taints
	// that follow from its conditions are removed first.
	RecoveryGrace = 10 * time.Second
	// fewClusters is the number of clusters below which only the failure of all is a mass failure.
	fewClusters = 3
)

// ClusterHealth is what is known about the health of a cluster that was Ready before.
type ClusterHealth struct {
	Name string
	// Ready reports whether the condition Ready is True, and ReadyChanged when it became so, or ceased to be.
	Ready        bool
	ReadyChanged time.Time
	// FailingSince is when probes began to fail or reports to be overdue; zero if they do not, or if it is not known.
	FailingSince time.Time
	// Confirmed is when a probe or report last showed that the cluster is healthy; zero if it is not known.
	Confirmed time.Time
	// Unobserved reports that there are neither probes nor reports, so that the condition is all that is known.
	Unobserved bool
}

// failing reports whether a cluster is not Ready or about to be, and since when.
func (c *ClusterHealth) failing() (since time.Time, ok bool) {
	switch {
	case c.Ready:
		return c.FailingSince, !c.FailingSince.IsZero()
	case c.FailingSince.IsZero() || c.ReadyChanged.Before(c.FailingSince):
		// The probes of a process that was started later began to fail later.
		return c.ReadyChanged, true
	}
	return c.FailingSince, true
}

// unconfirmed reports whether a cluster that is Ready may have failed before or at a time.
func (c *ClusterHealth) unconfirmed(at time.Time) bool {
	return c.Ready && c.FailingSince.IsZero() && !c.Unobserved && !c.Confirmed.After(at)
}

// MassFailureState is what is known about a mass failure. It is stored, so that it survives a restart. The zero value
// means that there is none.
type MassFailureState struct {
	// Since is when evictions were stopped; zero if they are not.
	Since time.Time `json:"since,omitzero"`
	// Failed is the largest number of clusters that had failed at the same time, and Total the number of all that counted.
	Failed int `json:"failed,omitempty"`
	Total  int `json:"total,omitempty"`
	// Clusters are those that have failed since then, those that recovered included, by name.
	Clusters []string `json:"clusters,omitempty"`
	// BelowSince is since when too few clusters are not Ready for a mass failure; zero if there are enough.
	BelowSince time.Time `json:"belowSince,omitzero"`
	// Released are clusters that do not count until they are Ready again, because a user resumed evictions, by name.
	Released []string `json:"released,omitempty"`
}

// Stopped reports whether evictions are stopped.
func (s *MassFailureState) Stopped() bool { return !s.Since.IsZero() }

// Equal reports whether two states are the same.
func (s *MassFailureState) Equal(o *MassFailureState) bool {
	return s.Since.Equal(o.Since) && s.Failed == o.Failed && s.Total == o.Total && s.BelowSince.Equal(o.BelowSince) &&
		slices.Equal(s.Clusters, o.Clusters) && slices.Equal(s.Released, o.Released)
}

// MassFailureFacts are what decides whether so many clusters failed at once that the cause is likely the control plane.
type MassFailureFacts struct {
	// Now is the current time.
	Now time.Time
	// Threshold is the share of the clusters that is a mass failure, from 0 to 1. 0 turns the decision off.
	Threshold float64
	// Clusters are all clusters that have a Ready condition and are not being deleted.
	Clusters []ClusterHealth
	// State is the one of the decision before. It is not changed.
	State MassFailureState
	// Resume reports whether a user requested that clusters are evicted in spite of the mass failure.
	Resume bool
}

// MassFailureVerdict is which clusters are not evicted.
type MassFailureVerdict struct {
	// State replaces that of the facts.
	State MassFailureState
	// Held are clusters that are not evicted because of a mass failure, by name.
	Held []string
	// Undecided are clusters that are not Ready, and not evicted until the health of others is known, by name.
	Undecided []string
}

// MassFailure decides which clusters are not evicted because many failed at once. Evictions are stopped when the share of
// clusters that failed within MassFailureWindow reaches the threshold and one of them is not Ready; then no cluster that
// is not Ready is evicted. They are resumed when all clusters are back, when fewer than the threshold have been failing
// for MassFailureWindow and none has recovered meanwhile, or when a user requests it.
func MassFailure(f MassFailureFacts) MassFailureVerdict {
	if f.Threshold <= 0 {
		return MassFailureVerdict{}
	}
	f.Clusters = f.plausible()
	state := f.State
	state.Released = f.released()
	if state.Since.After(f.Now) {
		state.Since = f.Now
	}
	if state.BelowSince.After(f.Now) {
		state.BelowSince = f.Now
	}
	if f.Resume {
		state = MassFailureState{Released: state.Released}
	}
	counted := slices.DeleteFunc(f.Clusters, func(c ClusterHealth) bool { return slices.Contains(state.Released, c.Name) })
	slices.SortFunc(counted, func(a, b ClusterHealth) int { return cmp.Compare(a.Name, b.Name) })
	f.Clusters = counted
	if state.Stopped() {
		return f.stopped(state)
	}
	for i := range counted {
		if !counted[i].Ready && f.enough(f.group(&counted[i], false)) {
			state.Since, state.Failed, state.Total = f.Now, f.group(&counted[i], false), len(counted)
			return f.stopped(state)
		}
	}
	v := MassFailureVerdict{State: state}
	for i := range counted {
		if !counted[i].Ready && f.enough(f.group(&counted[i], true)) {
			v.Undecided = append(v.Undecided, counted[i].Name)
		}
	}
	return v
}

// plausible returns the clusters without times to come. Agents write when their clusters became Ready, and must not keep
// evictions stopped by that; their clocks may be a little ahead.
func (f *MassFailureFacts) plausible() []ClusterHealth {
	out := slices.Clone(f.Clusters)
	for i := range out {
		c := &out[i]
		switch {
		case c.Ready && c.ReadyChanged.After(f.Now.Add(RecoveryGrace)):
			c.ReadyChanged = time.Time{}
		case !c.Ready && c.ReadyChanged.After(f.Now):
			c.ReadyChanged = f.Now
		}
	}
	return out
}

// released returns the clusters that do not count, by name.
func (f *MassFailureFacts) released() []string {
	var out []string
	for i := range f.Clusters {
		c := &f.Clusters[i]
		_, failing := c.failing()
		unknown := failing || c.unconfirmed(time.Time{})
		if unknown && slices.Contains(f.State.Released, c.Name) || failing && f.Resume {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out
}

// stopped returns the verdict while evictions are stopped, or that they are resumed.
func (f *MassFailureFacts) stopped(state MassFailureState) MassFailureVerdict {
	sum := f.sum(&state)
	changed := sum.changed
	state.Clusters = sum.clusters
	if sum.failed > state.Failed {
		state.Failed, state.Total = sum.failed, len(f.Clusters)
	}
	below := !f.enough(sum.failed)
	switch {
	case !below:
		state.BelowSince = time.Time{}
	case state.BelowSince.IsZero():
		state.BelowSince, changed = f.Now, f.Now
	}
	if sum.failed == 0 && sum.recovering == 0 || below && !f.Now.Before(changed.Add(MassFailureWindow)) {
		return MassFailureVerdict{State: MassFailureState{Released: state.Released}}
	}
	return MassFailureVerdict{State: state, Held: sum.held}
}

// summary is what all clusters are while evictions are stopped.
type summary struct {
	failed, recovering int
	// held are the clusters that are not evicted, clusters those that failed since the stop, by name.
	held, clusters []string
	// changed is when the last of them recovered, at least BelowSince.
	changed time.Time
}

func (f *MassFailureFacts) sum(state *MassFailureState) summary {
	out := summary{changed: state.BelowSince, clusters: slices.Clone(state.Clusters)}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		s := f.stand(c, state)
		if s.held {
			out.held = append(out.held, c.Name)
		}
		switch {
		case s.failed:
			out.failed++
		case s.recovering:
			out.recovering++
		}
		switch {
		case s.known && c.Ready && c.ReadyChanged.After(out.changed):
			out.changed = c.ReadyChanged
		case !s.known && s.failed:
			out.clusters = append(out.clusters, c.Name)
		}
	}
	slices.Sort(out.clusters)
	return out
}

// standing is what a cluster is while evictions are stopped.
type standing struct {
	// known reports whether it failed before, and failed whether it counts as failed now.
	known, failed bool
	// recovering reports whether it was Ready again just now.
	recovering, held bool
}

func (f *MassFailureFacts) stand(c *ClusterHealth, state *MassFailureState) standing {
	_, failed := c.failing()
	s := standing{known: slices.Contains(state.Clusters, c.Name)}
	unknown := s.known && c.unconfirmed(time.Time{})
	s.failed = failed || unknown
	s.recovering = s.known && c.Ready && f.Now.Before(c.ReadyChanged.Add(RecoveryGrace))
	// One that was back and fails again may still have the taint that it got when it was not Ready.
	relapsed := s.known && failed && c.ReadyChanged.After(state.Since)
	s.held = !c.Ready || unknown || s.recovering || relapsed
	return s
}

// enough reports whether so many failed clusters are a mass failure.
func (f *MassFailureFacts) enough(n int) bool {
	total := len(f.Clusters)
	if total < fewClusters {
		return n == total
	}
	const rounding = 1e-9
	return float64(n) >= f.Threshold*float64(total)-rounding
}

// group returns the largest number of clusters that failed within the window together with one that is not Ready. With
// unconfirmed it includes those that may have failed when it did.
func (f *MassFailureFacts) group(one *ClusterHealth, unconfirmed bool) int {
	at, _ := one.failing()
	var near []time.Time
	unknown := 0
	for i := range f.Clusters {
		c := &f.Clusters[i]
		since, failing := c.failing()
		switch {
		case failing && since.Sub(at).Abs() <= MassFailureWindow:
			near = append(near, since)
		case !failing && unconfirmed && c.unconfirmed(at):
			unknown++
		}
	}
	slices.SortFunc(near, time.Time.Compare)
	most := 0
	for i, begin := range near {
		end := begin.Add(MassFailureWindow)
		if begin.After(at) || end.Before(at) {
			continue
		}
		n, found := slices.BinarySearchFunc(near, end, time.Time.Compare)
		for ; found && n < len(near) && near[n].Equal(end); n++ {
			continue
		}
		most = max(most, n-i)
	}
	return most + unknown
}

// Keys of the ConfigMap names.FailoverState.
const (
	// StateKey is the key of the MassFailureState, as JSON.
	StateKey = "state"
	// ResumeKey is the key that requests that evictions are resumed. Its value is the ResumeValue of the mass failure, so
	// that a request never ends a later one. The controller removes it.
	ResumeKey = "resume"
)

// ResumeValue returns the value of ResumeKey for a mass failure that began at a time.
func ResumeValue(since time.Time) string { return since.UTC().Format(time.RFC3339Nano) }

// DecodeMassFailure returns the state in the data of the ConfigMap, the zero value if there is none.
func DecodeMassFailure(data map[string]string) (MassFailureState, error) {
	var state MassFailureState
	text := data[StateKey]
	if text == "" {
		return state, nil
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return MassFailureState{}, fmt.Errorf("decoding key %q: %w", StateKey, err)
	}
	return state, nil
}

// Encode returns the value of StateKey, nothing for the zero value.
func (s *MassFailureState) Encode() (string, error) {
	if s.Equal(&MassFailureState{}) {
		return "", nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encoding the state of a mass failure: %w", err)
	}
	return string(data), nil
}
