package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Class is what an error of Schedule means for the binding, and the reason
// of its Scheduled condition.
type Class string

// The values of Class.
const (
	// NoClusterFit: every cluster was filtered out. The targets are cleared.
	NoClusterFit Class = "NoClusterFit"
	// Unschedulable: the clusters lack room. The targets stay.
	Unschedulable Class = "Unschedulable"
	// SchedulerError: anything else. The targets stay.
	SchedulerError Class = "SchedulerError"
)

// ClassOf returns the class of an error of Schedule.
func ClassOf(err error) Class {
	if _, ok := errors.AsType[*FitError](err); ok {
		return NoClusterFit
	}
	if _, ok := errors.AsType[*UnschedulableError](err); ok {
		return Unschedulable
	}
	return SchedulerError
}

// UnschedulableError is returned if the clusters cannot take all replicas.
type UnschedulableError struct{ Message string }

// Error returns the message.
func (e *UnschedulableError) Error() string { return e.Message }

// SpreadError is returned if no selection of the feasible clusters satisfies the
// spread constraints. Capacity is set if they lacked room.
type SpreadError struct {
	Message  string
	Capacity bool
}

// Error returns the message.
func (e *SpreadError) Error() string { return e.Message }

// TermsError is returned if none of several affinity terms could be used. The first
// one tried decides what it means.
type TermsError struct {
	// Failed are the terms in the order in which they were tried.
	Failed []TermFailure
}

// Error returns a sentence for each term.
func (e *TermsError) Error() string {
	sentences := make([]string, len(e.Failed))
	for i, f := range e.Failed {
		sentences[i] = fmt.Sprintf("In affinity group %q: %s.", f.Name, strings.TrimSuffix(f.Err.Error(), "."))
	}
	return strings.Join(sentences, " ")
}

// Unwrap returns the error of the first term that was tried.
func (e *TermsError) Unwrap() error { return e.Failed[0].Err }

// FitError is returned if every cluster was filtered out, with the reasons.
type FitError struct {
	// Clusters is the number of clusters there are.
	Clusters int
	// Reasons are the reasons, with the clusters that each kept out.
	Reasons []FitReason
}

// FitReason is a reason and the clusters that it kept out.
type FitReason struct {
	Reason   string
	Count    int
	Clusters []string
}

// namedPerReason is the number of clusters that a message names for a reason.
const namedPerReason = 3

// Error returns the message, which names some clusters for each reason.
func (e *FitError) Error() string {
	body := "no cluster exists"
	if len(e.Reasons) > 0 {
		parts := make([]string, len(e.Reasons))
		for i, r := range e.Reasons {
			parts[i] = fmt.Sprintf("%d %s (%s)", r.Count, r.Reason, strings.Join(r.Clusters, ", "))
		}
		slices.Sort(parts)
		body = strings.Join(parts, ", ")
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Clusters, body)
}
