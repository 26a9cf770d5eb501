package components

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// proxyAdmin is the user that may do anything in every member through the proxy.
const proxyAdmin = "system:admin"

// FederationRBAC are the roles of users of the federation: the default roles view
// and edit know its kinds, and the administrator reaches the members. Neither role
// reads Works, which hold every propagated object, Secrets included; neither writes
// bindings, which only controllers do.
func FederationRBAC() []client.Object {
	const proxyRole = "cluster-proxy-admin"
	return []client.Object{
		aggregatedRole("view", "get", "list", "watch"),
		aggregatedRole("edit", "create", "update", "patch", "delete", "deletecollection"),
		insightRole(),
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: proxyRole, Labels: names.SystemLabels()},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusters/proxy"}, Verbs: []string{"*"},
			}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: proxyRole, Labels: names.SystemLabels()},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: proxyRole},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: proxyAdmin}},
		},
	}
}

// insightRole lets users of one namespace read what decides about their objects beside what is in it: clusters, and policies and
// bindings of the cluster scope. It is bound to nobody. Works stay closed: they have the objects of all namespaces.
func insightRole() *rbacv1.ClusterRole {
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
	}
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: names.InsightRole, Labels: names.SystemLabels()},
		Rules: []rbacv1.PolicyRule{
			read(clusterv1alpha1.GroupName, "clusters"),
			read("policy.karmada.io", "clusterpropagationpolicies", "clusteroverridepolicies", "clustertaintpolicies"),
			read("work.karmada.io", "clusterresourcebindings"),
			read("config.karmada.io", "resourceinterpretercustomizations"),
		},
	}
}

// aggregatedRole adds the kinds of the federation to a default role.
func aggregatedRole(to string, verbs ...string) *rbacv1.ClusterRole {
	withStatus := func(resources ...string) []string {
		var out []string
		for _, r := range resources {
			out = append(out, r, r+"/status")
		}
		return out
	}
	rule := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	labels := names.SystemLabels()
	labels["kubernetes.io/bootstrapping"] = "rbac-defaults"
	labels["rbac.authorization.k8s.io/aggregate-to-"+to] = "true"
	rules := []rbacv1.PolicyRule{
		rule("autoscaling.karmada.io", withStatus("cronfederatedhpas", "federatedhpas")...),
		rule("multicluster.x-k8s.io", withStatus("serviceexports", "serviceimports")...),
		rule("networking.karmada.io", withStatus("multiclusteringresses", "multiclusterservices")...),
		rule("policy.karmada.io", "overridepolicies", "propagationpolicies"),
	}
	if to == "view" {
		rules = append(rules, rule("work.karmada.io", withStatus("resourcebindings")...))
	}
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: "karmada-" + to, Labels: labels,
			Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
		},
		Rules: rules,
	}
}

// SystemNamespaces are the namespaces of the control plane's own objects: the usual
// ones, and those given beside them.
func SystemNamespaces(more ...string) []client.Object {
	var out []client.Object
	for _, name := range names.SystemNamespaces(more...) {
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()}})
	}
	return out
}

// CRDs are the definitions of the control plane's kinds. The kinds with several
// versions are converted by the webhook server at webhookURL.
func CRDs(webhookURL string, caBundle []byte) ([]client.Object, error) {
	all, err := crds.WithConversion(webhookURL, caBundle)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded CRDs: %w", err)
	}
	out := make([]client.Object, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out, nil
}
