// Package estimate computes how many replicas of a workload, or sets of its components, fit on the nodes of one
// cluster and into its resource quotas, and how many replicas no node accepts.
//
// A Model keeps the free resources of every node and is updated by the changes of nodes and pods. A Snapshot of it
// is immutable; every estimate is a function of a Snapshot, of quotas and of requirements.
package estimate
