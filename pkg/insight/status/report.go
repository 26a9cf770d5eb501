// Package status reports whether a federation is healthy: its control plane, clusters and bindings in numbers, and its problems in the
// order of how many workloads they affect. It is computed from facts, and reads nothing.
package status

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// SchemaVersion is the version of the fields of a Report. It changes when a field is removed or gets another meaning.
const SchemaVersion = "v1"

// maxProblems is the number of problems that a report has.
const maxProblems = 10

// Report is the state of a federation.
type Report struct {
	SchemaVersion string `json:"schemaVersion"`
	// Healthy reports whether there is no problem in what could be read.
	Healthy bool `json:"healthy"`
	// Answer is the state in a line.
	Answer       string       `json:"answer"`
	ControlPlane ControlPlane `json:"controlPlane"`
	// Clusters are absent if they could not be read.
	Clusters *Clusters `json:"clusters,omitempty"`
	Work     Work      `json:"work"`
	// Problems are the ten that affect most, in that order.
	Problems []Problem `json:"problems"`
	// ProblemCount is the number of all problems.
	ProblemCount int `json:"problemCount"`
	// Gaps are what could not be read.
	Gaps []string `json:"gaps,omitempty"`
	// OfBindings are the problems of bindings, by namespace and name: not only those that affect most.
	OfBindings map[client.ObjectKey]*Problem `json:"-"`
}

// Problem is something that is wrong.
type Problem struct {
	// Reason is a word, such as the reason of a condition.
	Reason string `json:"reason"`
	// Object has the problem.
	Object why.Object `json:"object"`
	// Text is the problem, in a line.
	Text string `json:"text"`
	// Workloads is the number of bindings that it affects.
	Workloads int `json:"workloads"`
	// Next is a command that shows more.
	Next string `json:"next"`

	rank     rank
	replicas int64
}

// rank orders problems that affect the same number of workloads. Those of the control plane come before all others.
type rank int

const (
	rankControlPlane rank = iota
	rankCluster
	rankClusterProblem
	rankQuota
	rankScheduled
	rankApplied
	rankHealth
	rankRegistry
)

// Reasons of problems that no condition has.
const (
	ReasonNotServing    = "NotServing"
	ReasonNotReady      = "NotReady"
	ReasonNoLeader      = "NoLeader"
	ReasonQuotaExceeded = "QuotaExceeded"
)

// reporter makes a report.
type reporter struct {
	*snapshot.Federation
	program  string
	out      *Report
	problems []Problem
	// targets is the number of bindings by target cluster.
	targets map[string]int
	// unready are the clusters that are not Ready.
	unready map[string]bool
}

// Federation returns the state of a federation. Commands in it begin with the name of the program.
func Federation(f *snapshot.Federation, program string) *Report {
	r := &reporter{Federation: f, program: program, out: &Report{SchemaVersion: SchemaVersion}, targets: map[string]int{}, unready: map[string]bool{}}
	for _, c := range f.Clusters {
		r.unready[c.Name] = !c.Ready()
	}
	r.controlPlane()
	r.work()
	r.clusters()
	r.quotas()
	r.registries()
	r.out.Gaps = why.Gaps(f.Gaps)
	r.finish()
	return r.out
}

// add adds a problem with the words of a command that shows more, and returns it.
func (r *reporter) add(p Problem, next ...string) *Problem {
	p.Text, p.Next = why.Line(p.Text), strings.Join(next, " ")
	r.problems = append(r.problems, p)
	return &p
}
