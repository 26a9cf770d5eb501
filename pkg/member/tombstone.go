package member

// Keys of the ConfigMap that remembers a cluster that was abandoned.
const (
	// TombstoneID is the id of the cluster.
	TombstoneID = "clusterID"
	// TombstoneCleaned is when its agent had cleaned up, RFC 3339.
	TombstoneCleaned = "cleanedAt"
)
