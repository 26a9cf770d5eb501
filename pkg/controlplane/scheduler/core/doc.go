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
