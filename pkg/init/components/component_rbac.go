package components

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const (
	authenticationGroup = "authentication.k8s.io"
	groupApps           = "apps.karmada.io"
	groupSearch         = "search.karmada.io"
	wildcard            = "*"
)

// UserOf returns the user as which a component authenticates to the control
// plane, such as "system:karmada:scheduler" for "karmada-scheduler".
func UserOf(component string) string {
	if component == KubeControllerManager {
		return "system:kube-controller-manager" // Kubernetes makes its role
	}
	return names.ComponentUser(strings.TrimPrefix(component, "karmada-"))
}

// Users are the users of the roles of a control plane, also of one that runs all of them in one process.
func Users() []string {
	var out []string
	for _, component := range append(kubeconfigUsers(), AllInOne) {
		if component != KubeControllerManager { // Kubernetes has a flow schema for it
			out = append(out, UserOf(component))
		}
	}
	return out
}

// ComponentRBAC returns what the components of a control plane may do in it: a
// ClusterRole for each, with exactly the requests that it makes, bound to the user
// of UserOf. leases is the namespace of the Leases of leader elections. allInOne are
// the components whose roles the process AllInOne has.
//
// The roles name no verb "*". Where a component works on objects of any kind, the
// verbs are listed; what it may do beside that is listed by resource:
//
//   - the controllers observe templates of any kind and patch them (labels,
//     annotations and status); they create, update and delete only the kinds of the
//     federation and what it makes for agents;
//   - they patch RBAC templates as well, and write the roles of agents. The API
//     server accepts that only from who has all their rights, or may escalate and
//     bind: whoever holds the controllers' credentials can make itself
//     administrator by that, but is subject to authorization and admission, and
//     can be taken the right;
//   - the other components write nothing but the status and the bindings that are
//     theirs.
func ComponentRBAC(leases string, allInOne ...string) []client.Object {
	var out []client.Object
	for _, r := range componentRoles() {
		users := []string{UserOf(r.component)}
		if slices.Contains(allInOne, r.component) {
			users = append(users, UserOf(AllInOne))
		}
		out = append(out, r.objects(leases, users)...)
	}
	return out
}

// RBACOf returns what one component may do in the control plane; nothing for a component that has no rights there.
func RBACOf(leases, component string) []client.Object {
	for _, r := range componentRoles() {
		if r.component == component {
			return r.objects(leases, []string{UserOf(component)})
		}
	}
	return nil
}

// componentRole is what one component may do.
type componentRole struct {
	component string
	rules     []rbacv1.PolicyRule
	// cluster and system are what it may do in the namespaces karmada-cluster and karmada-system beside that.
	cluster, system []rbacv1.PolicyRule
	// elects reports whether its replicas elect a leader.
	elects bool
	// readers makes the members of names.ReadersGroup, as whom it may read, able to read everything.
	readers bool
	// serves reports whether it is an aggregated API server, which reviews who its
	// clients are and what they may do.
	serves bool
}

func componentRoles() []componentRole {
	return []componentRole{
		{
			component: ControllerManager, rules: controllerManagerRules(), elects: true,
			cluster: configMapRules("create", "update", "delete"), system: configMapRules("create", "update", "delete"),
		},
		{component: Scheduler, rules: schedulerRules(), elects: true},
		{component: Webhook, rules: webhookRules(), system: configMapRules("get", "create", "update")},
		{component: AggregatedAPIServer, rules: aggregatedRules(), serves: true},
		{component: Descheduler, rules: deschedulerRules(), elects: true},
		{component: MetricsAdapter, rules: metricsAdapterRules(), serves: true},
		{component: Search, rules: searchRules(), system: searchLeaseRules(), readers: true, serves: true},
	}
}

// objects returns the roles and bindings of a component.
func (r componentRole) objects(leases string, users []string) []client.Object {
	name := UserOf(r.component)
	var subjects []rbacv1.Subject
	for _, user := range users {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}
	meta := metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()}
	out := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: append(r.rules, reviewRules()...)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: roleRef("ClusterRole", name), Subjects: subjects},
	}
	within := func(namespace, name string, rules []rbacv1.PolicyRule) {
		in := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: names.SystemLabels()}
		out = append(out,
			&rbacv1.Role{ObjectMeta: in, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: in, RoleRef: roleRef("Role", name), Subjects: subjects},
		)
	}
	if len(r.cluster) > 0 {
		within(clusterv1alpha1.NamespaceKarmadaCluster, name, r.cluster)
	}
	if len(r.system) > 0 {
		// The Role of the leader election may be in the same namespace.
		within(clusterv1alpha1.NamespaceKarmadaSystem, name+":state", r.system)
	}
	if r.elects {
		within(leases, name, []rbacv1.PolicyRule{
			rule(coordinationv1.GroupName, []string{"leases"}, nil, "get", "create", "update", "patch"),
		})
	}
	if r.readers {
		in := metav1.ObjectMeta{Name: names.ReadersGroup, Labels: names.SystemLabels()}
		out = append(out,
			&rbacv1.ClusterRole{ObjectMeta: in, Rules: []rbacv1.PolicyRule{rule(wildcard, []string{wildcard}, nil, "get", "list", "watch")}},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: in, RoleRef: roleRef("ClusterRole", in.Name),
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: names.ReadersGroup}},
			},
		)
	}
	if r.serves {
		in := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: names.SystemLabels()}
		out = append(out, &rbacv1.RoleBinding{ObjectMeta: in, RoleRef: roleRef("Role", "extension-apiserver-authentication-reader"), Subjects: subjects})
	}
	return out
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// reviewRules let a component review who a client of its own endpoints is and what
// the client may do: aggregated API servers for every request, the others for
// metrics with --secure-metrics.
func reviewRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(authenticationGroup, []string{"tokenreviews"}, nil, "create"),
		rule(authorizationv1.GroupName, []string{"subjectaccessreviews"}, nil, "create"),
	}
}

// eventRules let a component record events about objects anywhere.
func eventRules() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"", eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}}
}

func controllerManagerRules() []rbacv1.PolicyRule {
	write := []string{"create", "update", "delete"}
	return []rbacv1.PolicyRule{
		// Templates are of any kind, subresources such as status included.
		rule(wildcard, []string{wildcard}, nil, "get", "list", "watch", "patch"),
		eventRules(),
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, nil, write...),
		rule(clusterv1alpha1.GroupName, []string{"clusters/status", "clusters/finalizers"}, nil, "update"),
		rule(groupWork, []string{"works", "resourcebindings", "clusterresourcebindings"}, nil, append(write, "deletecollection")...),
		rule(groupWork, []string{"works/status", "resourcebindings/status", "clusterresourcebindings/status"}, nil, "update"),
		rule(groupPolicy, []string{"propagationpolicies", "clusterpropagationpolicies"}, nil, "update"),
		rule(groupPolicy, []string{"propagationpolicies/status", "clusterpropagationpolicies/status", "federatedresourcequotas/status"}, nil, "update"),
		rule(groupApps, []string{"workloadrebalancers"}, nil, "delete"),
		// Services of ServiceImports, and the slices of exported Services.
		rule("", []string{"services"}, nil, "create", "delete"),
		rule(discoveryv1.GroupName, []string{"endpointslices"}, nil, "create", "delete"),
		// Execution namespaces, and what is made for agents.
		rule("", []string{"namespaces"}, nil, "create", "delete"),
		rule("", []string{"secrets"}, nil, write...),
		rule(coordinationv1.GroupName, []string{"leases"}, nil, write...),
		rule(rbacv1.GroupName, []string{"clusterroles", "roles"}, nil, append(write, "escalate", "bind")...),
		rule(rbacv1.GroupName, []string{"clusterrolebindings", "rolebindings"}, nil, write...),
		rule(certificatesv1.GroupName, []string{"certificatesigningrequests"}, nil, "delete"),
		rule(certificatesv1.GroupName, []string{"certificatesigningrequests/approval"}, nil, "update"),
		rule(certificatesv1.GroupName, []string{"signers"}, []string{"kubernetes.io/kube-apiserver-client"}, "approve"),
	}
}

// configMapRules are for ConfigMaps: those that remain of abandoned clusters, and in the namespace of the system the state of
// failover and, for each namespace, the ledger of its quotas.
func configMapRules(verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", []string{"configmaps"}, nil, verbs...)}
}

func schedulerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		eventRules(),
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, nil, "get", "list", "watch"),
		rule(groupWork, []string{"resourcebindings", "clusterresourcebindings"}, nil, "get", "list", "watch", "patch"),
		rule(groupWork, []string{"resourcebindings/status", "clusterresourcebindings/status"}, nil, "patch"),
		rule(groupPolicy, []string{"federatedresourcequotas"}, nil, "get", "list", "watch"),
		// How estimators are reached.
		rule("", []string{"services"}, nil, "get"),
	}
}

func webhookRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, nil, "get", "list", "watch"),
		rule(groupConfig, []string{"resourceinterpretercustomizations"}, nil, "get", "list", "watch"),
		rule(groupPolicy, []string{"federatedresourcequotas"}, nil, "get", "list", "watch"),
		rule(groupWork, []string{"resourcebindings"}, nil, "get", "list", "watch"),
		rule(groupWork, []string{"clusterresourcebindings"}, nil, "get"),
	}
}

func aggregatedRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		// Credentials of members, which a Cluster may keep in any namespace.
		rule("", []string{"secrets"}, nil, "get", "list", "watch"),
		// Paths of clusters/*/proxy that are no resources, such as /version, are read in the control plane in the name of the
		// requester, and nothing else is.
		rule(authenticationGroup, []string{"users", "groups", "uids", "userextras"}, nil, "impersonate:user-info"),
		rule(authenticationGroup, []string{"serviceaccounts"}, nil, "impersonate:serviceaccount"),
		{NonResourceURLs: []string{wildcard}, Verbs: impersonated("get")},
	}
}

func deschedulerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		eventRules(),
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, nil, "get", "list", "watch"),
		rule(groupWork, []string{"resourcebindings"}, nil, "get", "list", "watch", "update", "patch"),
		rule("", []string{"services"}, nil, "get"),
	}
}

func metricsAdapterRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, nil, "get", "list", "watch"),
		// Credentials of members.
		rule("", []string{"secrets"}, nil, "get"),
	}
}

func searchRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		eventRules(),
		rule(clusterv1alpha1.GroupName, []string{"clusters"}, nil, "get", "list", "watch"),
		// Credentials of members, which a Cluster may keep in any namespace.
		rule("", []string{"secrets"}, nil, "get"),
		// The columns and selectable fields of custom resources.
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, nil, "get"),
		// Its UID tells the documents of this control plane from those of others in a backend store.
		rule("", []string{"namespaces"}, []string{clusterv1alpha1.NamespaceKarmadaSystem}, "get"),
		rule(groupSearch, []string{"resourceregistries"}, nil, "get", "list", "watch", "update", "patch"),
		rule(groupSearch, []string{"resourceregistries/status"}, nil, "update", "patch"),
		// What no registry selects is read in the control plane in the name of the requester. These verbs allow nothing else:
		// no request is made as somebody else with another verb, and nobody becomes a member of system:masters, for whom
		// names.ReadersGroup stands.
		rule(authenticationGroup, []string{"users", "groups", "uids", "userextras"}, nil, "impersonate:user-info"),
		rule(authenticationGroup, []string{"serviceaccounts"}, nil, "impersonate:serviceaccount"),
		rule(wildcard, []string{wildcard}, nil, impersonatedReads()...),
		{NonResourceURLs: []string{wildcard}, Verbs: impersonatedReads()},
		rule(authorizationv1.GroupName, []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}, nil, impersonated("create")...),
		rule(authenticationGroup, []string{"selfsubjectreviews"}, nil, impersonated("create")...),
	}
}

// impersonatedReads are the verbs by which a component reads in the name of others.
func impersonatedReads() []string { return impersonated("get", "list", "watch") }

// impersonated are the verbs by which a component makes requests with some verbs in the name of others, by constrained
// impersonation.
func impersonated(verbs ...string) []string {
	var out []string
	for _, mode := range []string{"user-info", "serviceaccount"} {
		for _, verb := range verbs {
			out = append(out, "impersonate-on:"+mode+":"+verb)
		}
	}
	return out
}

// searchLeaseRules let the replicas of the component elect the one that writes the status of registries.
func searchLeaseRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(coordinationv1.GroupName, []string{"leases"}, nil, "create"),
		rule(coordinationv1.GroupName, []string{"leases"}, []string{"karmada-search"}, "get", "update"),
	}
}

// rule returns a rule for all objects, or for those named.
func rule(group string, resources, resourceNames []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, ResourceNames: resourceNames, Verbs: verbs}
}
