package names

import "strings"

// The identity of the agents of clusters in Pull mode: a client certificate with
// this organization and AgentUser as common name.
const (
	// AgentGroup is the group of all agents.
	AgentGroup = "system:karmada:agents"
	// BootstrapGroup is the group of the bootstrap tokens that may request the
	// certificate of an agent.
	BootstrapGroup = "system:bootstrappers:karmada:default-cluster-token"

	agentUserPrefix = "system:karmada:agent:"
	agentRolePrefix = "system:karmada:"
	agentRoleSuffix = ":agent"
	// impersonatorSuffix ends the name of the second Secret of a cluster.
	impersonatorSuffix = "-impersonator"
	// rbacGenerator is a user with all rights that other implementations share.
	rbacGenerator = "rbac-generator"
)

// AgentUser returns the user that the agent of a cluster is.
func AgentUser(cluster string) string { return agentUserPrefix + cluster }

// ClusterOfAgentUser returns the cluster whose agent a user is, and whether it is
// an agent at all.
func ClusterOfAgentUser(user string) (string, bool) {
	cluster, ok := strings.CutPrefix(user, agentUserPrefix)
	return cluster, ok && cluster != ""
}

// CredentialsSecret returns the Secret, in the control plane, with the credentials
// of a cluster.
func CredentialsSecret(cluster string) string { return cluster }

// ImpersonatorSecret returns the Secret, in the control plane, with the token
// that impersonates users in a cluster.
func ImpersonatorSecret(cluster string) string { return cluster + impersonatorSuffix }

// AgentLease returns the Lease by which the replicas of an agent choose a leader.
func AgentLease(cluster string) string { return "karmada-agent-" + cluster }

// AgentRole returns the cluster role, and binding, of an agent.
func AgentRole(cluster string) string { return agentRolePrefix + cluster + agentRoleSuffix }

// ClusterOfAgentRole returns the cluster whose agent's cluster role has a name, and
// whether it is the name of one at all.
func ClusterOfAgentRole(role string) (string, bool) {
	cluster, ok1 := strings.CutPrefix(role, agentRolePrefix)
	cluster, ok2 := strings.CutSuffix(cluster, agentRoleSuffix)
	return cluster, ok1 && ok2 && cluster != "" && !strings.Contains(cluster, ":")
}

// AgentSecretRole returns the role, and binding, of an agent in the namespace of
// credentials.
func AgentSecretRole(cluster string) string { return AgentRole(cluster) + "-secret" }

// AgentWorkRole returns the role, and binding, of an agent in its execution
// namespace.
func AgentWorkRole(cluster string) string { return AgentRole(cluster) + "-work" }

// AgentEventRole returns the role, and binding, of an agent for events about its
// cluster.
func AgentEventRole(cluster string) string { return AgentRole(cluster) + "-event" }

// AgentLeaseRole returns the role, and binding, of an agent for its leases.
func AgentLeaseRole(cluster string) string { return AgentRole(cluster) + "-lease" }

// Tombstone returns the ConfigMap that records that a cluster was abandoned.
func Tombstone(cluster string) string { return cluster + "-abandoned" }

// ReservedForAgents returns why no agent may have a cluster name that is valid
// otherwise, or "".
func ReservedForAgents(cluster string) string {
	if cluster == rbacGenerator {
		return "it is the name of a user of other implementations that may do anything"
	}
	return SharesSecret(cluster)
}

// SharesSecret returns why no cluster may have a name that is valid otherwise, or
// "": the Secret with the credentials of such a cluster is that of another
// cluster.
func SharesSecret(cluster string) string {
	if strings.HasSuffix(cluster, impersonatorSuffix) {
		return "a name that ends with " + impersonatorSuffix + " would share a Secret with another cluster"
	}
	return ""
}
