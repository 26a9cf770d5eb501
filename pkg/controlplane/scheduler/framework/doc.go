// Package framework is what scheduler plugins are written against: the
// interfaces of filters and scores, the facts about each cluster that they
// may read, the registry that turns the value of --plugins into a list of
// plugins. It is pure: no client, clock or feature gate.
package framework
