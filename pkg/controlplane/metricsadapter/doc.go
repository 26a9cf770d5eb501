// Package metricsadapter is the role that serves the metrics of all members in the control plane: the usage of pods and
// nodes (metrics.k8s.io) and the metrics of objects (custom.metrics.k8s.io). Each request is sent to the members at
// once. A member that does not answer is named in a warning of the response.
package metricsadapter
