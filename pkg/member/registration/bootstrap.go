// Package registration defines how clusters in Pull mode register at a control plane:
// bootstrap tokens, the public cluster-info, and the objects and access rights that
// the control plane grants to agents.
package registration

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const (
	// ClusterInfoName is the ConfigMap where clusters that register find the control
	// plane.
	ClusterInfoName = "cluster-info"
	// ClusterInfoKey is its key.
	ClusterInfoKey = "kubeconfig"

	autoapprover     = "system:karmada:certificatesigningrequest:autoapprover"
	selfautoapprover = "system:karmada:certificatesigningrequest:selfautoapprover"
)

// Bootstrap returns the objects that let clusters register in Pull mode, given the URL and
// CA bundle of the control plane: cluster-info, and the right to request agent certificates.
//
// There is no shared user: the control plane creates the roles of each agent, see
// AgentRBAC.
func Bootstrap(server string, caBundle []byte) ([]client.Object, error) {
	info, err := clusterInfo(server, caBundle)
	if err != nil {
		return nil, err
	}
	return append(info,
		groupBinding("system:karmada:agent-bootstrap", "system:node-bootstrapper", names.BootstrapGroup),
		approvalRole(autoapprover, "certificatesigningrequests/clusteragent"),
		groupBinding("system:karmada:agent-autoapprove-bootstrap", autoapprover, names.BootstrapGroup),
		approvalRole(selfautoapprover, "certificatesigningrequests/selfclusteragent"),
		groupBinding("system:karmada:agent-autoapprove-certificate-rotation", selfautoapprover, names.AgentGroup),
	), nil
}

// Limits returns what limits agents beyond their roles: an admission policy and flow schemas. users are those of the roles of the
// control plane, whose flow schemas it returns too.
func Limits(users []string) []client.Object {
	return slices.Concat(agentPolicy(), rolesFlow(users), agentFlow())
}

// clusterInfo returns the ConfigMap with the URL and CA bundle of the control plane, which
// anonymous users may read.
func clusterInfo(server string, caBundle []byte) ([]client.Object, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caBundle}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s: %w", ClusterInfoName, err)
	}
	const reader = "system:karmada:bootstrap-signer-clusterinfo"
	meta := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: reader, Labels: names.SystemLabels()}
	return []client.Object{
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: ClusterInfoName},
			Data:       map[string]string{ClusterInfoKey: string(kubeconfig)},
		},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			rule("", []string{"configmaps"}, []string{ClusterInfoName}, "get"),
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reader},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
		},
	}, nil
}

func approvalRole(name, resource string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()},
		Rules:      []rbacv1.PolicyRule{rule(certificatesv1.GroupName, []string{resource}, nil, "create")},
	}
}

func groupBinding(name, role, group string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
}

// rule returns a rule for all objects, or for those named.
func rule(group string, resources, resourceNames []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, ResourceNames: resourceNames, Verbs: verbs}
}
