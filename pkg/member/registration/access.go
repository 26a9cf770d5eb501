package registration

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// AgentAccess identifies an agent and the objects that it has access to.
type AgentAccess struct {
	// Cluster whose agent it is.
	Cluster string
	// Namespace of the credentials of the cluster in the control plane.
	Namespace string
	// Requests are the names of the certificate requests that the agent has created.
	Requests []string
}

// AgentRBAC returns the roles and bindings of the agent of one cluster in the control
// plane. They give access to the objects of that cluster only. The agent cannot create
// Secrets and Leases, because a role cannot restrict the names of created objects; the
// control plane creates AgentObjects for it. The admission policy of Limits restricts
// the events that it may write.
func AgentRBAC(a AgentAccess) []client.Object {
	events := rbacv1.PolicyRule{APIGroups: []string{"", eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "update", "patch"}}
	objects := a.clusterRole()
	objects = append(objects, a.role(a.Namespace, names.AgentSecretRole(a.Cluster), a.secretRules())...)
	objects = append(objects, a.role(names.ExecutionNamespace(a.Cluster), names.AgentWorkRole(a.Cluster), []rbacv1.PolicyRule{
		rule(workv1alpha1.GroupName, []string{"works"}, nil, "get", "create", "list", "watch", "update", "patch", "delete"),
		rule(workv1alpha1.GroupName, []string{"works/status"}, nil, "patch", "update"),
		events,
	})...)
	objects = append(objects, a.role(metav1.NamespaceDefault, names.AgentEventRole(a.Cluster), []rbacv1.PolicyRule{events})...)
	objects = append(objects, a.role(clusterv1alpha1.NamespaceKarmadaSystem, names.AgentLeaseRole(a.Cluster), leaseRules(names.AgentLease(a.Cluster)))...)
	if a.Namespace != clusterv1alpha1.NamespaceKarmadaCluster {
		// The lease of a cluster is at home here whatever the namespace of its credentials is.
		objects = append(objects, a.role(clusterv1alpha1.NamespaceKarmadaCluster, names.AgentLeaseRole(a.Cluster), a.homeRules())...)
	}
	return objects
}

// AgentObjects returns the objects that the agent of one cluster may update: its two
// Secrets and its two Leases, without contents.
func AgentObjects(a AgentAccess) []client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: names.SystemLabels()}
	}
	return []client.Object{
		&corev1.Secret{ObjectMeta: meta(a.Namespace, names.CredentialsSecret(a.Cluster)), Type: corev1.SecretTypeOpaque},
		&corev1.Secret{ObjectMeta: meta(a.Namespace, names.ImpersonatorSecret(a.Cluster)), Type: corev1.SecretTypeOpaque},
		&coordinationv1.Lease{ObjectMeta: meta(clusterv1alpha1.NamespaceKarmadaCluster, a.Cluster)},
		&coordinationv1.Lease{ObjectMeta: meta(clusterv1alpha1.NamespaceKarmadaSystem, names.AgentLease(a.Cluster))},
	}
}

// TombstoneRBAC returns the role and binding of the agent of an abandoned cluster: it may
// read the tombstone, which lists the objects to clean up, and record that it did.
func TombstoneRBAC(cluster string) []client.Object {
	a := AgentAccess{Cluster: cluster}
	return a.role(clusterv1alpha1.NamespaceKarmadaCluster, names.Tombstone(cluster), []rbacv1.PolicyRule{
		rule("", []string{"configmaps"}, []string{names.Tombstone(cluster)}, "get", "patch"),
	})
}

func (a AgentAccess) clusterRole() []client.Object {
	own := []string{a.Cluster}
	rules := []rbacv1.PolicyRule{
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, own, "get", "update", "patch", "delete"),
		// The server shows an agent its own cluster only.
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, nil, "list", "watch"),
		rule(clusterv1alpha1.GroupName, []string{"clusters/status"}, own, "get", "update", "patch"),
		rule(configv1alpha1.GroupName, []string{"resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"}, nil, "get", "list", "watch"),
		rule("", []string{"namespaces"}, []string{names.ExecutionNamespace(a.Cluster), a.Namespace}, "get"),
		rule(certificatesv1.GroupName, []string{"certificatesigningrequests"}, nil, "create"),
	}
	if len(a.Requests) > 0 {
		requests := slices.Sorted(slices.Values(a.Requests))
		rules = append(rules, rule(certificatesv1.GroupName, []string{"certificatesigningrequests"}, requests, "get"))
	}
	name := names.AgentRole(a.Cluster)
	meta := metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: a.subjects(),
		},
	}
}

// secretRules are for the namespace of credentials.
func (a AgentAccess) secretRules() []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		rule("", []string{"secrets"}, []string{names.CredentialsSecret(a.Cluster), names.ImpersonatorSecret(a.Cluster)}, "get", "update", "patch"),
	}
	if a.Namespace == clusterv1alpha1.NamespaceKarmadaCluster {
		rules = append(rules, a.homeRules()...)
	}
	return rules
}

// homeRules are for the namespace of the lease, where the tombstone would be, too.
func (a AgentAccess) homeRules() []rbacv1.PolicyRule {
	return append(leaseRules(a.Cluster), rule("", []string{"configmaps"}, []string{names.Tombstone(a.Cluster)}, "get", "patch"))
}

func leaseRules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(coordinationv1.GroupName, []string{"leases"}, []string{name}, "get", "update", "patch"),
	}
}

// role is a role with its binding.
func (a AgentAccess) role(namespace, name string, rules []rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: names.SystemLabels()}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: a.subjects(),
		},
	}
}

func (a AgentAccess) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: names.AgentUser(a.Cluster)}}
}
