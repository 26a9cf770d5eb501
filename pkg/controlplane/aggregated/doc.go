// Package aggregated is the API server of the member clusters: it stores Cluster
// objects in etcd and carries requests to the clusters' own API servers. It
// stands behind the control plane's API server as an aggregated API.
package aggregated
