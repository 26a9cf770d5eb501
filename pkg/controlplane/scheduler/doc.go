// Package scheduler is the role that decides which clusters get what. It keeps a
// snapshot of the clusters, queues the bindings that may need a decision, has the
// core decide, and commits the result: one patch of the binding and one of its
// status, and nothing at all when nothing has changed. Both scopes share one
// body. Several workers decide and write at the same time; a binding is never
// handled twice at once.
package scheduler
