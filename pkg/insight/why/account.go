// Package why explains what became of an object: which policy has it, where it was scheduled and why not elsewhere, what was applied,
// and what its state is. It is computed from facts with the decisions that the roles make, and reads nothing.
package why

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// SchemaVersion is the version of the fields of an Account. It changes when a field is removed or gets another meaning.
const SchemaVersion = "v1"

// Account is the answer to a question.
type Account struct {
	SchemaVersion string `json:"schemaVersion"`
	Object        Object `json:"object"`
	// Cause is the first cause along the chain for which the object is not as wanted; Working if there is none.
	Cause Cause `json:"cause"`
	// Answer is the answer in a line.
	Answer string `json:"answer"`
	// Stages are the stages that the object passes, in order. Those after one that is not passed may be missing.
	Stages []Stage `json:"stages"`
	// Times are when the object passed the stages, the earliest first.
	Times []Time `json:"times,omitempty"`
	// Next is what to do, as a command where there is one.
	Next string `json:"next,omitempty"`
	// Gaps are what could not be read.
	Gaps []string `json:"gaps,omitempty"`
}

// Object names an object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String returns the kind and the name.
func (o Object) String() string {
	if o.Namespace != "" {
		return o.Kind + " " + o.Namespace + "/" + o.Name
	}
	return o.Kind + " " + o.Name
}

// Stage is a stage that the object passes.
type Stage struct {
	// Name is policy, schedule, overrides, work or status.
	Name string `json:"name"`
	// Text is what happened there.
	Text string `json:"text"`
	// Failed reports whether the object did not pass the stage as wanted.
	Failed bool `json:"failed,omitempty"`
	// Details are lines about parts, such as clusters.
	Details []Detail `json:"details,omitempty"`
}

// Detail is a line about a part of a stage.
type Detail struct {
	// Of is what it is about, such as a cluster.
	Of   string `json:"of"`
	Text string `json:"text"`
}

// Time is when something happened to the object, as its objects in the control plane have it: in whole seconds.
type Time struct {
	// What is created, bound, scheduled, not scheduled, delivered, applied or not applied.
	What string `json:"what"`
	// Cluster is where it happened; empty for the control plane.
	Cluster string      `json:"cluster,omitempty"`
	At      metav1.Time `json:"at"`
}

// Cause is why an object is not as wanted, in a word.
type Cause string

// The causes, in the order of the stages.
const (
	Working             Cause = "Working"
	NamespaceSkipped    Cause = "NamespaceSkipped"
	OwnObject           Cause = "OwnObject"
	NoPolicy            Cause = "NoPolicy"
	PolicyElsewhere     Cause = "PolicyInOtherNamespace"
	PolicyDeleted       Cause = "PolicyDeleted"
	NotSelectedAnyMore  Cause = "NotSelectedAnyMore"
	LazyActivation      Cause = "LazyActivation"
	NotYetClaimed       Cause = "NotYetClaimed"
	SchedulingSuspended Cause = "SchedulingSuspended"
	UnknownScheduler    Cause = "UnknownScheduler"
	NotYetScheduled     Cause = "NotYetScheduled"
	NoClusterFit        Cause = "NoClusterFit"
	Unschedulable       Cause = "Unschedulable"
	QuotaExceeded       Cause = "QuotaExceeded"
	SchedulerError      Cause = "SchedulerError"
	OverrideFailed      Cause = "OverrideFailed"
	NotDeliverable      Cause = "NotDeliverable"
	DispatchSuspended   Cause = "DispatchingSuspended"
	ClusterNotReady     Cause = "ClusterNotReady"
	ClusterGone         Cause = "ClusterGone"
	NotYetDelivered     Cause = "NotYetDelivered"
	ApplyFailed         Cause = "ApplyFailed"
	Contested           Cause = "Contested"
	NodePortTaken       Cause = "NodePortTaken"
	InterpreterFailed   Cause = "InterpreterFailed"
	NotYetReported      Cause = "NotYetReported"
	Unhealthy           Cause = "Unhealthy"
	MissingDependency   Cause = "MissingDependency"
	StatusOutdated      Cause = "StatusOutdated"
	Unreadable          Cause = "Unreadable"
)

// TypeName returns the name of a type for commands: with its group if another group may have a type of that name.
func TypeName(apiVersion, kind string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind) + "." + group
}

// finding is a cause with the text of its answer.
type finding struct {
	cause  Cause
	answer string
	next   string
}

func found(cause Cause, next, format string, args ...any) *finding {
	return &finding{cause: cause, next: next, answer: fmt.Sprintf(format, args...)}
}

// maxText is the limit of a text that users or members wrote, in bytes.
const maxText = 512

// Line returns a text of users or members on one line, at most 512 bytes of it.
func Line(text string) string { return plaintext.Line(strings.TrimSpace(text), maxText) }

// Count returns a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Gaps returns a line for each gap, without the addresses in it.
func Gaps(gaps snapshot.Gaps) []string {
	var out []string
	for _, gap := range gaps {
		out = append(out, Line(plaintext.WithoutURLs(gap.String())))
	}
	return out
}

// Item returns what a binding reports of a cluster, or nil.
func Item(b workv1alpha2.Binding, cluster string) *workv1alpha2.AggregatedStatusItem {
	items := b.GetStatus().AggregatedStatus
	for i := range items {
		if items[i].ClusterName == cluster {
			return &items[i]
		}
	}
	return nil
}

// several joins the first of many texts.
func several(texts []string, most int) string {
	if rest := len(texts) - most; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), rest)
	}
	return strings.Join(texts, ", ")
}
