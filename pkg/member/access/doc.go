// Package access opens member clusters: it makes the settings of a connection
// from a Cluster and its Secret, and keeps one set of clients per cluster for as
// long as those settings hold.
package access
