// Package override applies OverridePolicies and ClusterOverridePolicies to an
// object on its way to one cluster. It is pure.
package override
