package kubelite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

const (
	bootstrapTimeout     = time.Minute
	bootstrapInterval    = 10 * time.Millisecond
	bootstrapParallelism = 8
)

// replacedHooks are the API server's own ways to make its default roles and priority classes. They begin with a
// sleep of a second and read every object by itself; bootstrap does the same at once, from four lists. The
// aggregator's client certificate is not reloaded: it does not change while the cluster runs.
func replacedHooks() []string {
	return []string{rbacrest.PostStartHookName, schedulingrest.PostStartHookName, reloadProxyCertificateHook}
}

// bootstrap makes the default roles, bindings and priority classes that are missing, and adds to existing ones the
// permissions that they lack. It tries until the API server answers.
func bootstrap(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, bootstrapInterval, bootstrapTimeout, true, func(ctx context.Context) (bool, error) {
		last = bootstrapOnce(ctx, client)
		return last == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("making the default roles: %w", last)
	}
	return err
}

func bootstrapOnce(ctx context.Context, client kubernetes.Interface) error {
	roles, bindings, err := listPolicy(ctx, client)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(bootstrapParallelism)
	for _, role := range bootstrapRoles(client) {
		group.Go(func() error { return roles.reconcile(role) })
	}
	for _, binding := range bootstrapBindings(client) {
		group.Go(func() error { return bindings.reconcile(binding) })
	}
	group.Go(func() error { return bootstrapPriorityClasses(ctx, client) })
	return group.Wait()
}

func bootstrapPriorityClasses(ctx context.Context, client kubernetes.Interface) error {
	list, err := client.SchedulingV1().PriorityClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for i := range list.Items {
		have[list.Items[i].Name] = true
	}
	for _, class := range schedulingv1.SystemPriorityClasses() {
		if have[class.Name] {
			continue
		}
		if _, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating priority class %q: %w", class.Name, err)
		}
	}
	return nil
}

// wantedRole and wantedBinding are desired objects and the clients that write
// them.
type wantedRole struct {
	role   reconciliation.RuleOwner
	client reconciliation.RuleOwnerModifier
}

type wantedBinding struct {
	binding reconciliation.RoleBinding
	client  reconciliation.RoleBindingModifier
}

func bootstrapRoles(client kubernetes.Interface) []wantedRole {
	var wanted []wantedRole
	cluster := reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()}
	for _, role := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		wanted = append(wanted, wantedRole{reconciliation.ClusterRoleRuleOwner{ClusterRole: &role}, cluster})
	}
	namespaced := reconciliation.RoleModifier{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()}
	for _, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			wanted = append(wanted, wantedRole{reconciliation.RoleRuleOwner{Role: &role}, namespaced})
		}
	}
	return wanted
}

func bootstrapBindings(client kubernetes.Interface) []wantedBinding {
	var wanted []wantedBinding
	cluster := reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()}
	for _, binding := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		wanted = append(wanted, wantedBinding{reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding}, cluster})
	}
	namespaced := reconciliation.RoleBindingClientAdapter{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			wanted = append(wanted, wantedBinding{reconciliation.RoleBindingAdapter{RoleBinding: &binding}, namespaced})
		}
	}
	return wanted
}

// listPolicy reads all roles and bindings.
func listPolicy(ctx context.Context, client kubernetes.Interface) (roles listedRoles, bindings listedBindings, err error) {
	roles, bindings = listedRoles{}, listedBindings{}
	clusterRoles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for i := range clusterRoles.Items {
		roles["/"+clusterRoles.Items[i].Name] = reconciliation.ClusterRoleRuleOwner{ClusterRole: &clusterRoles.Items[i]}
	}
	namespaceRoles, err := client.RbacV1().Roles(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for i := range namespaceRoles.Items {
		role := &namespaceRoles.Items[i]
		roles[role.Namespace+"/"+role.Name] = reconciliation.RoleRuleOwner{Role: role}
	}
	clusterBindings, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for i := range clusterBindings.Items {
		bindings["/"+clusterBindings.Items[i].Name] = reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &clusterBindings.Items[i]}
	}
	namespaceBindings, err := client.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for i := range namespaceBindings.Items {
		binding := &namespaceBindings.Items[i]
		bindings[binding.Namespace+"/"+binding.Name] = reconciliation.RoleBindingAdapter{RoleBinding: binding}
	}
	return roles, bindings, nil
}

// listedRoles and listedBindings are what exists, by namespace and name.
type (
	listedRoles    map[string]reconciliation.RuleOwner
	listedBindings map[string]reconciliation.RoleBinding
)

func (l listedRoles) reconcile(want wantedRole) error {
	have := l[want.role.GetNamespace()+"/"+want.role.GetName()]
	opts := reconciliation.ReconcileRoleOptions{Role: want.role, Confirm: true, Client: &roleModifier{RuleOwnerModifier: want.client, have: have}}
	if _, err := opts.Run(); err != nil {
		return fmt.Errorf("role %q: %w", want.role.GetName(), err)
	}
	return nil
}

func (l listedBindings) reconcile(want wantedBinding) error {
	have := l[want.binding.GetNamespace()+"/"+want.binding.GetName()]
	opts := reconciliation.ReconcileRoleBindingOptions{RoleBinding: want.binding, Confirm: true, Client: &bindingModifier{RoleBindingModifier: want.client, have: have}}
	if _, err := opts.Run(); err != nil {
		return fmt.Errorf("role binding %q: %w", want.binding.GetName(), err)
	}
	return nil
}

// roleModifier answers the first read with what was listed.
type roleModifier struct {
	reconciliation.RuleOwnerModifier
	have reconciliation.RuleOwner
	once sync.Once
}

// Get implements reconciliation.RuleOwnerModifier.
func (m *roleModifier) Get(namespace, name string) (owner reconciliation.RuleOwner, err error) {
	first := false
	m.once.Do(func() { first = true })
	switch {
	case !first:
		return m.RuleOwnerModifier.Get(namespace, name)
	case m.have == nil:
		return nil, apierrors.NewNotFound(rbacv1.Resource("roles"), name)
	}
	return m.have, nil
}

// bindingModifier answers the first read with what was listed.
type bindingModifier struct {
	reconciliation.RoleBindingModifier
	have reconciliation.RoleBinding
	once sync.Once
}

// Get implements reconciliation.RoleBindingModifier.
func (m *bindingModifier) Get(namespace, name string) (binding reconciliation.RoleBinding, err error) {
	first := false
	m.once.Do(func() { first = true })
	switch {
	case !first:
		return m.RoleBindingModifier.Get(namespace, name)
	case m.have == nil:
		return nil, apierrors.NewNotFound(rbacv1.Resource("rolebindings"), name)
	}
	return m.have, nil
}
