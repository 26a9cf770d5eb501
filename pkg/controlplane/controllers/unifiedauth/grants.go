package unifiedauth

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// impersonator is the name of the objects in the members.
const impersonator = "karmada-impersonator"

// grants reports whether a rule lets its subjects use the proxy to a cluster.
func grants(rule *rbacv1.PolicyRule, cluster string) bool {
	if !requests(rule.Verbs) {
		return false
	}
	if covers(rule, "cluster.karmada.io", "clusters/proxy") {
		return len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, cluster)
	}
	return covers(rule, "search.karmada.io", "proxying/proxy")
}

// proxies reports whether a rule lets its subjects use the proxy to any cluster.
func proxies(rule *rbacv1.PolicyRule) bool {
	return requests(rule.Verbs) &&
		(covers(rule, "cluster.karmada.io", "clusters/proxy") || covers(rule, "search.karmada.io", "proxying/proxy"))
}

// requests reports whether any of the verbs is one of requests through a proxy.
func requests(verbs []string) bool {
	return slices.ContainsFunc(verbs, func(verb string) bool {
		switch verb {
		case rbacv1.VerbAll, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection":
			return true
		default:
			return false
		}
	})
}

func covers(rule *rbacv1.PolicyRule, group, resource string) bool {
	return (slices.Contains(rule.APIGroups, group) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)) &&
		(slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, rbacv1.ResourceAll))
}

// subjects returns the subjects that may use the proxy to a cluster.
func subjects(cluster string, roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) []rbacv1.Subject {
	granting := sets.New[string]()
	for i := range roles {
		if slices.ContainsFunc(roles[i].Rules, func(rule rbacv1.PolicyRule) bool { return grants(&rule, cluster) }) {
			granting.Insert(roles[i].Name)
		}
	}
	var out []rbacv1.Subject
	for i := range bindings {
		if ref := &bindings[i].RoleRef; ref.Kind == "ClusterRole" && granting.Has(ref.Name) {
			out = append(out, bindings[i].Subjects...)
		}
	}
	return slices.DeleteFunc(out, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.GroupKind && s.Name == names.ReadersGroup })
}

// rules returns the rules that let the control plane impersonate the subjects and no
// others.
func rules(subjects []rbacv1.Subject) []rbacv1.PolicyRule {
	named := map[string]sets.Set[string]{}
	for _, s := range subjects {
		if named[s.Kind] == nil {
			named[s.Kind] = sets.New[string]()
		}
		named[s.Kind].Insert(s.Name)
	}
	var out []rbacv1.PolicyRule
	for _, kind := range []struct{ kind, resource string }{
		{rbacv1.UserKind, "users"}, {rbacv1.ServiceAccountKind, "serviceaccounts"}, {rbacv1.GroupKind, "groups"},
	} {
		if named[kind.kind].Len() == 0 {
			continue
		}
		out = append(out, rbacv1.PolicyRule{
			Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{kind.resource},
			ResourceNames: sets.List(named[kind.kind]),
		})
	}
	return out
}

func systemMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:   impersonator,
		Labels: map[string]string{workv1alpha2.SystemLabel: workv1alpha2.SystemLabelValue},
	}
}

// role returns the ClusterRole for a cluster.
func role(rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: systemMeta(), Rules: rules,
	}
}

// roleBinding returns the ClusterRoleBinding for a cluster.
func roleBinding(cluster *clusterv1alpha1.Cluster) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: systemMeta(),
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Name: impersonator,
			Namespace: cluster.Spec.ImpersonatorSecretRef.Namespace,
		}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: impersonator},
	}
}
