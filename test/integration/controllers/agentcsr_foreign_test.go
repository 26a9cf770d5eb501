//go:build integration

// Covers pkg/controlplane/controllers/agentcsr.

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// contractRights are the rights of an agent as the contract has them.
func contractRights(cluster string) []client.Object {
	rule := func(group string, resources, resourceNames []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, ResourceNames: resourceNames, Verbs: verbs}
	}
	own := []string{cluster}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:karmada:agent:" + cluster}}
	labels := map[string]string{"karmada.io/system": "true"}
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	name := "system:karmada:" + cluster + ":agent"
	out := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta("", name), Rules: []rbacv1.PolicyRule{
			rule("cluster.karmada.io", []string{"clusters"}, own, "get", "delete"),
			rule("cluster.karmada.io", []string{"clusters"}, nil, "create", "list", "watch"),
			rule("cluster.karmada.io", []string{"clusters/status"}, own, "update"),
			rule("config.karmada.io", []string{"resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"}, nil, "get", "list", "watch"),
			rule("", []string{"namespaces"}, nil, "get"),
			rule("coordination.k8s.io", []string{"leases"}, nil, "get", "create", "update"),
			rule("certificates.k8s.io", []string{"certificatesigningrequests"}, nil, "get", "create"),
			rule("", []string{"services"}, nil, "list", "watch"),
			rule("", []string{"events"}, nil, "patch", "create", "update"),
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects},
	}
	for namespace, role := range map[string]*rbacv1.Role{
		"karmada-cluster": {ObjectMeta: meta("karmada-cluster", name+"-secret"), Rules: []rbacv1.PolicyRule{
			rule("", []string{"secrets"}, []string{cluster, cluster + "-impersonator"}, "get", "patch"),
			rule("", []string{"secrets"}, nil, "create"),
		}},
		"karmada-es-" + cluster: {ObjectMeta: meta("karmada-es-"+cluster, name+"-work"), Rules: []rbacv1.PolicyRule{
			rule("work.karmada.io", []string{"works"}, nil, "get", "create", "list", "watch", "update", "delete"),
			rule("work.karmada.io", []string{"works/status"}, nil, "patch", "update"),
		}},
	} {
		out = append(out, role, &rbacv1.RoleBinding{
			ObjectMeta: meta(namespace, role.Name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, Subjects: subjects,
		})
	}
	return out
}

// makeForeign gives an agent exactly the rights of the contract, as another
// implementation had made them, and takes away what the control plane had made.
func (p *agentPlane) makeForeign(t *testing.T, cluster string) {
	t.Helper()
	for _, obj := range contractRights(cluster) {
		have, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatal("no object")
		}
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error { // the controllers write it too
			if err := p.admin.Get(ctx, client.ObjectKeyFromObject(obj), have); err != nil {
				return err
			}
			obj.SetResourceVersion(have.GetResourceVersion())
			return p.admin.Update(ctx, obj)
		})
	}
	for _, at := range []struct{ namespace, name string }{{"default", "-event"}, {"karmada-system", "-lease"}} {
		meta := metav1.ObjectMeta{Namespace: at.namespace, Name: "system:karmada:" + cluster + ":agent" + at.name}
		p.must(t, errors.Join(p.admin.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta}), p.admin.Delete(t.Context(), &rbacv1.Role{ObjectMeta: meta})))
	}
	for _, name := range []string{cluster, cluster + "-impersonator"} {
		p.must(t, p.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name}}))
	}
	p.must(t, p.admin.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: cluster}}))
}

// TestAgent_OfAnotherImplementation: an agent that was registered before by another
// implementation works with exactly the rights that it got then, until the cluster
// is registered again.
func TestAgent_OfAnotherImplementation(t *testing.T) {
	t.Parallel()
	p := startAgentPlane(t)
	agent := p.mustEnrol(t, "m1", "id-1")
	touch := func(annotation string) {
		t.Helper()
		change := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{`+annotation+`}}}`))
		p.must(t, p.admin.Patch(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, change))
	}
	// Whoever registers a cluster gets its rights renewed; the control plane observes that this is over.
	touch(`"cluster.karmada.io/certificate-request":null`)
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := p.cache.Get(ctx, client.ObjectKey{Name: "m1"}, c); err != nil {
			return err
		}
		if c.Annotations["cluster.karmada.io/certificate-request"] != "" {
			return fmt.Errorf("the annotations are %v", c.Annotations)
		}
		return nil
	})
	p.makeForeign(t, "m1")
	touch(`"touched":"1"`) // the control plane reconciles the cluster again
	// Its next certificate does not change its rights either.
	csr := certificateRequest(t, "m1-next", agentcert.Subject("m1"))
	p.must(t, agent.Client.Create(t.Context(), csr))
	p.expect(t, "the next certificate", "m1-next", "Approved AutoApproved")
	p.worksAsTheContractHasIt(t, agent)
	role := &rbacv1.ClusterRole{}
	p.must(t, p.admin.Get(t.Context(), client.ObjectKey{Name: "system:karmada:m1:agent"}, role))
	if len(role.OwnerReferences) != 0 || len(role.Rules) != 9 {
		t.Errorf("the rights were changed: %v", role)
	}
	// "register" renews the rights.
	if _, err := p.enrol(t, p.token(t), "m1", "id-1"); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(agent.Config, client.Options{Scheme: p.admin.Scheme()})
	p.must(t, err)
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		if err := c.List(ctx, &corev1.ServiceList{}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("it still lists services: %w", err)
		}
		return nil
	})
}

// worksAsTheContractHasIt makes the requests that the contract's agent makes.
func (p *agentPlane) worksAsTheContractHasIt(t *testing.T, agent *member.Identity) {
	t.Helper()
	ctx := t.Context()
	c, err := client.New(agent.Config, client.Options{Scheme: p.admin.Scheme()})
	p.must(t, err)
	p.must(t, p.admin.Create(ctx, shopWorkIn("m1", shopWork)))
	work := shopWorkIn("m1", shopWork)
	cluster := &clusterv1alpha1.Cluster{}
	owner := func() []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1", UID: cluster.UID, Controller: new(true), BlockOwnerDeletion: new(true)}}
	}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name, Labels: map[string]string{"karmada.io/system": "true"}}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"token": []byte("t")}}
	}
	lease := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("m1")}}
	}
	beat, elected := lease("karmada-cluster", "m1"), &coordinationv1.Lease{}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"read its cluster", func() error { return c.Get(ctx, client.ObjectKey{Name: "m1"}, cluster) }},
		{"list clusters", func() error { return c.List(ctx, &clusterv1alpha1.ClusterList{}) }},
		{"create its credentials", func() error {
			return errors.Join(c.Create(ctx, secret("m1")), c.Create(ctx, secret("m1-impersonator")))
		}},
		{"own its credentials", func() error {
			base := secret("m1")
			owned := base.DeepCopy()
			owned.OwnerReferences = owner()
			return c.Patch(ctx, owned, client.MergeFrom(base))
		}},
		{"create its lease", func() error { return c.Create(ctx, beat) }},
		{"renew its lease", func() error { beat.OwnerReferences = owner(); return c.Update(ctx, beat) }},
		{"read the lease of its leader", func() error {
			return c.Get(ctx, client.ObjectKey{Namespace: "karmada-system", Name: "karmada-agent-m1"}, elected)
		}},
		{"renew the lease of its leader", func() error { elected.Spec.HolderIdentity = new("pod"); return c.Update(ctx, elected) }},
		{"list services", func() error { return c.List(ctx, &corev1.ServiceList{}) }},
		{"list interpreter customizations", func() error { return c.List(ctx, &configv1alpha1.ResourceInterpreterCustomizationList{}) }},
		{"list Works", func() error { return c.List(ctx, &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-m1")) }},
		{"report on a Work", func() error { return reportStatus(t, c, "m1", shopWork, `{"replicas":1}`) }},
		{"let a Work go", func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			work.Finalizers = nil
			return c.Update(ctx, work)
		}},
		{"report on its cluster", func() error {
			cluster.Status.KubernetesVersion = "v1.34.0"
			return c.Status().Update(ctx, cluster)
		}},
		{"record an event", func() error {
			return c.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "m1.1"},
				InvolvedObject: corev1.ObjectReference{Kind: "Cluster", Name: "m1"}, Reason: "Fine", Type: corev1.EventTypeNormal,
			})
		}},
	} {
		if err := step.do(); err != nil {
			t.Errorf("it may not %s: %v", step.what, err)
		}
	}
}
