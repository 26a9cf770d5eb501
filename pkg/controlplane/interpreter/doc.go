// Package interpreter returns what the control plane needs of an object of any
// kind: its replicas and what a replica needs, how to set them, what to keep of
// a member's object, its status and health, how the statuses of members add up,
// and what it depends on.
//
// An Interpreter tries its layers in order; the first that has a rule for the
// kind and the operation answers, also when it fails. The built-in rules for
// Kubernetes' own kinds are the last layer.
//
// No function changes its arguments. ReviseReplica and Retain return objects
// that the caller owns. AggregateStatus returns an object whose top level,
// metadata and status are new and whose other parts may be shared with the
// template.
package interpreter
