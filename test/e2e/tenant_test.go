package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// attackers makes users of the control plane with credentials of their own.
type attackers struct {
	*testing.T
	config *rest.Config
	admin  client.Client
}

func newAttackers(t *testing.T) *attackers {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	a := &attackers{T: t, config: config}
	a.admin = a.client(config)
	return a
}

func (a *attackers) client(config *rest.Config) client.Client {
	a.Helper()
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		a.Fatal(err)
	}
	return c
}

func (a *attackers) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// serviceAccount returns the credentials of a new user without rights.
func (a *attackers) serviceAccount(namespace, name string) *rest.Config {
	a.Helper()
	a.must(a.admin.Create(a.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
	c, err := kubernetes.NewForConfig(a.config)
	a.must(err)
	token, err := c.CoreV1().ServiceAccounts(namespace).CreateToken(a.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	a.must(err)
	config := rest.AnonymousClientConfig(a.config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config
}

func subject(namespace, name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// tenant returns a user with the role edit in a namespace who may also write
// bindings there.
func (a *attackers) tenant(namespace string) client.Client {
	a.Helper()
	config := a.serviceAccount(namespace, "tenant")
	everything := []string{"*"}
	a.must(errors.Join(
		a.admin.Create(a.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant-edit"},
			RoleRef: clusterRole("edit"), Subjects: subject(namespace, "tenant")}),
		a.admin.Create(a.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bindings"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"work.karmada.io"}, Resources: []string{"resourcebindings", "resourcebindings/status"}, Verbs: everything}}}),
		a.admin.Create(a.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant-bindings"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bindings"}, Subjects: subject(namespace, "tenant")}),
	))
	return a.client(config)
}

// overriding are policies that change each identity field with each overrider that
// can reach it.
func overriding(namespace, victim string) []*policyv1alpha1.OverridePolicy {
	plain := func(path, value string) policyv1alpha1.Overriders {
		o := policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: policyv1alpha1.OverriderOpReplace}}}
		o.Plaintext[0].Value.Raw = []byte(value)
		return o
	}
	image := func(path, value string) policyv1alpha1.Overriders {
		return policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
			Predicate: &policyv1alpha1.ImagePredicate{Path: path}, Component: policyv1alpha1.Repository, Operator: policyv1alpha1.OverriderOpReplace, Value: value,
		}}}
	}
	blank := func(path string) policyv1alpha1.Overriders { // neither json nor yaml: the field becomes empty
		return policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: path}}}
	}
	all := []policyv1alpha1.Overriders{
		plain("", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"owned"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]}`),
		plain("/apiVersion", `"example.io/v1"`), plain("/kind", `"Secret"`), plain("/metadata", `{"name":"web","namespace":"`+victim+`"}`),
		plain("/metadata/name", `"owned"`), plain("/metadata/namespace", `"`+victim+`"`),
		image("/metadata/name", "owned"), image("/metadata/namespace", victim), image("/apiVersion", "v2"),
		blank("/metadata/name"), blank("/metadata/namespace"), blank("/kind"), blank("/apiVersion"),
	}
	var out []*policyv1alpha1.OverridePolicy
	for i, overriders := range all {
		for form := range 2 {
			p := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("attack-%d-%d", i, form)}}
			if form == 0 {
				p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: overriders}}
			} else {
				p.Spec.Overriders = overriders
			}
			out = append(out, p)
		}
	}
	return out
}

// reaching are bindings made by hand to objects that their namespace must not
// deliver. foreign are those that admission refuses.
func reaching(namespace, victim string) (bindings []*workv1alpha2.ResourceBinding, foreign map[string]bool) {
	foreign = map[string]bool{}
	for i, ref := range []workv1alpha2.ObjectReference{
		{APIVersion: "v1", Kind: "Secret", Namespace: victim, Name: "marker"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-cluster", Name: "member1"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		{APIVersion: "v1", Kind: "ServiceAccount", Namespace: victim, Name: "default"},
		{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work", Namespace: "karmada-es-member1", Name: "x"},
		{APIVersion: "v1", Kind: "Secret", Name: "marker"},
		{APIVersion: "v1", Kind: "Namespace", Name: victim},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "cluster-admin"},
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding", Name: "cluster-admin"},
		{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "works.work.karmada.io"},
		{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "member1"},
		{APIVersion: "policy.karmada.io/v1alpha1", Kind: "PropagationPolicy", Namespace: namespace, Name: "web"},
		{APIVersion: "work.karmada.io/v1alpha2", Kind: "ResourceBinding", Namespace: namespace, Name: "web-configmap"},
		{APIVersion: "v1", Kind: "Event", Namespace: namespace, Name: "x"},
		{},
	} {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("attack-%d", i)}}
		b.Spec.Resource = ref
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member1"}, {Name: "member2"}}
		b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: namespace, Name: "web-configmap", Clusters: b.Spec.Clusters}}
		b.Spec.PropagateDeps = true
		bindings = append(bindings, b)
		foreign[b.Name] = ref.Namespace != "" && ref.Namespace != namespace
	}
	return bindings, foreign
}

// TestTenant_StaysInItsNamespace attacks with the credentials of a user who has
// the role edit in a namespace and may write bindings there: first through
// admission, then as if the objects were there from before it refused them.
func TestTenant_StaysInItsNamespace(t *testing.T) {
	ns := namespace(t)
	a := newAttackers(t)
	victim := ns + "-victim"
	a.must(a.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: victim}}))
	t.Cleanup(func() { ctl("", "delete", "namespace", victim, "--wait=false") })
	tenant := a.tenant(ns)
	ctx := t.Context()
	a.must(a.admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "marker"}, StringData: map[string]string{"key": "secret"}}))
	a.must(tenant.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Data: map[string]string{"key": "1"}}))
	propagation := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	propagation.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: "web"}}
	propagation.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1", "member2"}}
	a.must(tenant.Create(ctx, propagation))
	eventually(t, all(is("member1", ns, "configmap/web", "{.data.key}", "1"), is("member2", ns, "configmap/web", "{.data.key}", "1")))

	policies := overriding(ns, victim)
	for _, p := range policies {
		if err := tenant.Create(ctx, p.DeepCopy()); !apierrors.IsForbidden(err) {
			t.Errorf("override policy %s: %v", p.Name, err)
		}
	}
	a.reviews(tenant, ns)
	bindings, foreign := reaching(ns, victim)
	for _, b := range bindings {
		if err := tenant.Create(ctx, b.DeepCopy()); foreign[b.Name] && !apierrors.IsForbidden(err) || !foreign[b.Name] && err != nil {
			t.Errorf("binding %s: %v", b.Name, err)
		}
	}
	a.delivers(ns)

	a.withoutValidation()
	for _, b := range bindings {
		eventually(t, func() error { return ignoreExists(tenant.Create(ctx, b.DeepCopy())) })
	}
	for _, b := range bindings {
		eventually(t, func() error { return a.refused(b, "") })
	}
	for _, p := range policies {
		// One at a time: each must be refused for itself.
		eventually(t, func() error { return ignoreExists(tenant.Create(ctx, p.DeepCopy())) })
		eventually(t, func() error {
			return a.refused(&workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-configmap"}}, p.Name)
		})
		a.delivers(ns)
		a.must(tenant.Delete(ctx, p))
	}
	eventually(t, func() error {
		b := &workv1alpha2.ResourceBinding{}
		if err := a.admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: "web-configmap"}, b); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Deliverable); c != nil {
			return fmt.Errorf("condition %+v stays", c)
		}
		return nil
	})
	a.delivers(ns)
	for _, b := range bindings {
		a.must(client.IgnoreNotFound(tenant.Delete(ctx, b)))
	}
}

// reviews fails unless the tenant may have objects overridden that it may write itself, and no others.
func (a *attackers) reviews(tenant client.Client, namespace string) {
	a.Helper()
	for _, tc := range []struct {
		name     string
		selector []policyv1alpha1.ResourceSelector
		want     string
	}{
		{"own", []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: "none"}}, ""},
		{"slices", []policyv1alpha1.ResourceSelector{{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}}, "may not update endpointslices.discovery.k8s.io"},
		{"everything", nil, "select the kinds"},
	} {
		for _, options := range [][]client.CreateOption{{client.DryRunAll}, nil} {
			p := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "review-" + tc.name}}
			p.Spec.ResourceSelectors = tc.selector
			p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
				LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"a": "b"}}},
			}}}
			err := tenant.Create(a.Context(), p, options...)
			if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want)) {
				a.Errorf("override policy for %s: %v", tc.name, err)
			}
		}
	}
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// refused returns an error until a condition of the binding reports that it is not
// delivered, with the reason.
func (a *attackers) refused(b *workv1alpha2.ResourceBinding, because string) error {
	stored := &workv1alpha2.ResourceBinding{}
	if err := a.admin.Get(a.Context(), client.ObjectKeyFromObject(b), stored); err != nil {
		return err
	}
	c := meta.FindStatusCondition(stored.Status.Conditions, workv1alpha2.Deliverable)
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, because) {
		return fmt.Errorf("binding %s of %+v: condition %+v, want one about %q", b.Name, stored.Spec.Resource, c, because)
	}
	return nil
}

// delivers fails when a Work of the namespace's bindings carries anything but what
// its policy selects, or a Work carries anything of another namespace by name.
func (a *attackers) delivers(namespace string) {
	a.Helper()
	list := &workv1alpha1.WorkList{}
	a.must(a.admin.List(a.Context(), list))
	for i := range list.Items {
		w := &list.Items[i]
		for _, m := range w.Spec.Workload.Manifests {
			obj := &unstructured.Unstructured{}
			a.must(obj.UnmarshalJSON(m.Raw))
			own := obj.GetKind() == "ConfigMap" && obj.GetAPIVersion() == "v1" && obj.GetName() == "web" && obj.GetNamespace() == namespace
			if w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] == namespace && !own {
				a.Errorf("work %s/%s carries %s %s/%s", w.Namespace, w.Name, obj.GetKind(), obj.GetNamespace(), obj.GetName())
			}
		}
	}
}

// withoutValidation takes the validating webhooks away until the test ends.
func (a *attackers) withoutValidation() {
	a.Helper()
	list := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	a.must(a.admin.List(a.Context(), list))
	if len(list.Items) == 0 {
		a.Fatal("there are no validating webhooks")
	}
	for i := range list.Items {
		c := &list.Items[i]
		a.must(a.admin.Delete(a.Context(), c.DeepCopy()))
		a.Cleanup(func() {
			c.ResourceVersion, c.UID = "", ""
			if err := a.admin.Create(context.WithoutCancel(a.Context()), c); err != nil {
				a.Errorf("restoring the webhooks: %v", err)
			}
		})
	}
}

// TestClusterWriter_GetsNoCredentials points clusters elsewhere with the
// credentials of a user who may write clusters and read no Secrets.
func TestClusterWriter_GetsNoCredentials(t *testing.T) {
	ns := namespace(t)
	a := newAttackers(t)
	writer := a.client(a.serviceAccount(ns, "writer"))
	ctx := t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns + "-clusters"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"clusters"}, Verbs: []string{"*"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: clusterRole(role.Name), Subjects: subject(ns, "writer")}
	a.must(errors.Join(a.admin.Create(ctx, role), a.admin.Create(ctx, binding)))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if err := errors.Join(a.admin.Delete(ctx, role), a.admin.Delete(ctx, binding)); err != nil {
			t.Error(err)
		}
	})
	stored := &clusterv1alpha1.Cluster{}
	eventually(t, func() error { return writer.Get(ctx, client.ObjectKey{Name: "member1"}, stored) })
	evil := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1", SecretRef: stored.Spec.SecretRef,
		ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "member1-impersonator"},
	}}
	if err := writer.Create(ctx, evil.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a cluster with the Secret of another: %v", err)
	}
	evil.Spec.SecretRef = nil
	if err := a.admin.Create(ctx, evil.DeepCopy()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `belongs to cluster "member1"`) {
		t.Errorf("by an administrator: %v", err)
	}
	for name, change := range map[string]func(*clusterv1alpha1.ClusterSpec){
		"endpoint": func(s *clusterv1alpha1.ClusterSpec) { s.APIEndpoint = "https://127.0.0.1:1" },
		"proxy":    func(s *clusterv1alpha1.ClusterSpec) { s.ProxyURL = "http://127.0.0.1:1" },
	} {
		before := stored.DeepCopy()
		changed := stored.DeepCopy()
		change(&changed.Spec)
		if err := writer.Patch(ctx, changed, client.MergeFrom(before)); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	evil.Name, evil.Spec.ImpersonatorSecretRef = "member9-impersonator", nil
	if err := a.admin.Create(ctx, evil); !apierrors.IsInvalid(err) {
		t.Errorf("a name that ends with -impersonator: %v", err)
	}
}

// TestView_ReadsNoSecret lists everything that a user with the role view everywhere
// may list, and searches it for what is in a Secret that is propagated. A user with
// the role edit everywhere writes no Works and no bindings.
func TestView_ReadsNoSecret(t *testing.T) {
	ns := namespace(t)
	a := newAttackers(t)
	ctx := t.Context()
	const marker = "marker-4b1d"
	a.must(a.admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "marker"}, StringData: map[string]string{"key": marker}}))
	secretPolicy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "secret"}}
	secretPolicy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret", Name: "marker"}}
	secretPolicy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member1"}}
	a.must(client.IgnoreAlreadyExists(a.admin.Create(ctx, secretPolicy)))
	eventually(t, is("member1", ns, "secret/marker", "{.data.key}", base64.StdEncoding.EncodeToString([]byte(marker))))

	configs := map[string]*rest.Config{}
	for _, role := range []string{"view", "edit"} {
		configs[role] = a.serviceAccount(ns, role)
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + role}, RoleRef: clusterRole(role), Subjects: subject(ns, role)}
		a.must(a.admin.Create(ctx, binding))
		t.Cleanup(func() {
			if err := a.admin.Delete(context.WithoutCancel(ctx), binding); err != nil {
				t.Error(err)
			}
		})
	}
	viewer, err := kubernetes.NewForConfig(configs["view"])
	a.must(err)
	eventually(t, func() error {
		_, err := viewer.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
		return err
	})
	_, lists, err := viewer.Discovery().ServerGroupsAndResources()
	a.must(err)
	read := 0
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			path := "/apis/" + list.GroupVersion + "/" + resource.Name
			if list.GroupVersion == "v1" {
				path = "/api/v1/" + resource.Name
			}
			data, err := viewer.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
			if err != nil {
				continue // not allowed, or not listed
			}
			read++
			if bytes.Contains(data, []byte(marker)) || bytes.Contains(data, []byte(base64.StdEncoding.EncodeToString([]byte(marker)))) {
				t.Errorf("%s shows the Secret", path)
			}
			if strings.HasPrefix(path, "/apis/work.karmada.io/v1alpha1/works") || path == "/api/v1/secrets" {
				t.Errorf("%s is readable", path)
			}
		}
	}
	if read < 20 {
		t.Errorf("only %d kinds were listed", read)
	}
	t.Logf("listed %d kinds", read)

	editor := a.client(configs["edit"])
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-member1", Name: "owned"}}
	byHand := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owned"}}
	for _, obj := range []client.Object{work, byHand} {
		if err := editor.Create(ctx, obj); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "webhook") {
			t.Errorf("%T by edit: %v", obj, err)
		}
	}
}
