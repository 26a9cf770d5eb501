// Package access opens member clusters: it derives the settings of a connection from a
// Cluster and its Secret, and keeps one set of clients per cluster until those settings
// change.
package access
