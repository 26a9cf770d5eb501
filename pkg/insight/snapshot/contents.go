package snapshot

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Contents are the objects of a control plane that decide what each cluster gets. What is empty does not exist, unless a gap names it.
type Contents struct {
	// Now is the time of the reads.
	Now time.Time
	// Clusters are sorted by name.
	Clusters      []*clusterv1alpha1.Cluster
	Policies      []policyv1alpha1.Policy
	Overrides     override.Policies
	TaintPolicies []*policyv1alpha1.ClusterTaintPolicy
	Quotas        []*policyv1alpha1.FederatedResourceQuota
	// Templates are the objects of the kinds that policies select, bindings refer to, or dependencies have, as they are delivered: without
	// the fields that the API server of the control plane set.
	Templates []*unstructured.Unstructured
	Bindings  []workv1alpha2.Binding
	// Works are those of templates that no policy has any more, or one that does not select them any more: what clusters have of these stays
	// as it was delivered.
	Works          []*workv1alpha1.Work
	Customizations []*configv1alpha1.ResourceInterpreterCustomization
	// Webhooks are the interpreter webhooks.
	Webhooks []*configv1alpha1.ResourceInterpreterWebhookConfiguration
	// Related are objects that depend on templates or clusters: autoscalers, MultiClusterServices and ResourceRegistries.
	Related []*unstructured.Unstructured
	// Kinds are the kinds of Templates in the version that was read.
	Kinds []Kind
	// Hashed reports whether the values of Secrets are hashes.
	Hashed bool
	// Namespace is that of which a user reads objects who may not read those of all.
	Namespace string
	Gaps
}

// Unreadable reports whether objects of a kind in a namespace, which is empty for those without one, could not be read.
func (c *Contents) Unreadable(kind, namespace string) bool {
	return c.Lacks(kind) || namespace != c.Namespace && c.Lacks(kind+ofOthers)
}

// Kind is a kind of templates.
type Kind struct {
	schema.GroupVersionKind
	Namespaced bool
}

// Contents reads the objects that decide what each cluster gets, and those of further kinds. It returns an error only if ctx ends.
func (r *Reader) Contents(ctx context.Context, further []schema.GroupKind) (*Contents, error) {
	c, in := &Contents{Now: r.Now(), Namespace: r.Namespace}, &reads{from: r.ControlPlane, whole: true}
	var group, policies, bindings sync.WaitGroup
	group.Go(func() { c.Clusters = in.clusters(ctx) })
	bindings.Go(func() { c.Bindings = in.bindings(ctx, r.Namespace) })
	for what, list := range map[string]client.ObjectList{
		Policies: &policyv1alpha1.PropagationPolicyList{}, ClusterPolicies: &policyv1alpha1.ClusterPropagationPolicyList{},
	} {
		policies.Go(func() { in.visible(ctx, what, r.Namespace, list, c.take) })
	}
	for what, list := range map[string]client.ObjectList{
		Overrides: &policyv1alpha1.OverridePolicyList{}, ClusterOverrides: &policyv1alpha1.ClusterOverridePolicyList{},
		Quotas: &policyv1alpha1.FederatedResourceQuotaList{}, "ClusterTaintPolicies": &policyv1alpha1.ClusterTaintPolicyList{},
		"ResourceInterpreterCustomizations":        &configv1alpha1.ResourceInterpreterCustomizationList{},
		"ResourceInterpreterWebhookConfigurations": &configv1alpha1.ResourceInterpreterWebhookConfigurationList{},
	} {
		group.Go(func() { in.visible(ctx, what, r.Namespace, list, c.take) })
	}
	for _, kind := range relatedKinds() {
		if _, err := r.Mapper.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			continue // not every control plane serves it
		}
		group.Go(func() {
			in.visible(ctx, kind.Kind, r.Namespace, listOf(kind), func(l client.ObjectList) { c.Related = append(c.Related, objects(l)...) })
		})
	}
	policies.Wait() // the kinds that they select are read beside the bindings
	t := &templates{Contents: c, reads: in, reader: r, seen: map[schema.GroupKind]bool{}}
	t.read(ctx, &group, append(slices.Clone(further), namespaces.GroupKind())...)
	for _, p := range c.Policies {
		t.read(ctx, &group, Kinds(p)...)
	}
	if len(c.Policies) > 0 {
		t.read(ctx, &group, corev1.SchemeGroupVersion.WithKind("Service").GroupKind()) // they select pods of workloads
	}
	bindings.Wait()
	for _, b := range c.Bindings {
		t.read(ctx, &group, schema.FromAPIVersionAndKind(b.GetSpec().Resource.APIVersion, b.GetSpec().Resource.Kind).GroupKind())
		if scope.Released(b) {
			group.Go(func() { t.readWorks(ctx, b) })
		}
	}
	group.Wait()
	for _, b := range c.unselected() {
		group.Go(func() { t.readWorks(ctx, b) })
	}
	group.Wait()
	c.Gaps = in.sorted()
	c.sort()
	return c, context.Cause(ctx)
}

// unselected returns the bindings of templates that the policy which has them does not select any more.
func (c *Contents) unselected() []workv1alpha2.Binding {
	policies, byName := map[string]policyv1alpha1.Policy{}, map[string]*unstructured.Unstructured{}
	for _, p := range c.Policies {
		policies[policy.For(p).Key()+"/"+scope.PolicyOf(p).Kind] = p
	}
	for _, u := range c.Templates {
		byName[name(u)] = u
	}
	var out []workv1alpha2.Binding
	for _, b := range c.Bindings {
		ref := &b.GetSpec().Resource
		u := byName[ref.Kind+"/"+ref.Namespace+"/"+ref.Name]
		if u == nil {
			continue
		}
		claim, claimed := policy.Of(u)
		if p := policies[claim.Key()+"/"+claim.Scope().Kind]; claimed && p != nil && !policy.Matches(u, p) {
			out = append(out, b)
		}
	}
	return out
}

// templates reads templates.
type templates struct {
	*Contents
	*reads
	reader *Reader
	seen   map[schema.GroupKind]bool
}

// read begins to read the objects of kinds, each kind once.
func (t *templates) read(ctx context.Context, group *sync.WaitGroup, kinds ...schema.GroupKind) {
	for _, kind := range kinds {
		if t.seen[kind] {
			continue
		}
		t.seen[kind] = true
		mapping, err := t.reader.Mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) || !t.note(ctx, kind.String(), err) {
			continue
		}
		found, namespace := Kind{mapping.GroupVersionKind, mapping.Scope.Name() == meta.RESTScopeNameNamespace}, ""
		if found.Namespaced {
			namespace = t.reader.Namespace
		}
		t.Kinds = append(t.Kinds, found)
		group.Go(func() {
			t.visible(ctx, found.Kind, namespace, listOf(found.GroupVersionKind), func(l client.ObjectList) { t.Templates = append(t.Templates, objects(l)...) })
			if found.GroupVersionKind == namespaces && t.lacks(found.Kind) {
				t.readNamespace(ctx)
			}
		})
	}
}

// namespaces is the kind of Namespaces.
var namespaces = corev1.SchemeGroupVersion.WithKind("Namespace")

// readNamespace reads the namespace of a user who may not list all.
func (t *templates) readNamespace(ctx context.Context) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(namespaces)
	if t.reader.Namespace != "" && t.from.Get(ctx, client.ObjectKey{Name: t.reader.Namespace}, u) == nil {
		t.mu.Lock()
		t.Templates = append(t.Templates, u)
		t.mu.Unlock()
	}
}

// readWorks reads the Works of a binding.
func (t *templates) readWorks(ctx context.Context, b workv1alpha2.Binding) {
	ref := &b.GetSpec().Resource
	for _, target := range scope.Targets(b.GetSpec()) {
		work := &workv1alpha1.Work{}
		if t.get(ctx, WorkIn(target.Name), client.ObjectKey{Namespace: names.ExecutionNamespace(target.Name), Name: names.Work(ref.Kind, ref.Name, ref.Namespace)}, work) {
			t.mu.Lock()
			t.Works = append(t.Works, work)
			t.mu.Unlock()
		}
	}
}

// Kinds returns the kinds of what a policy selects, and of the dependencies that the built-in rules know.
func Kinds(p policyv1alpha1.Policy) []schema.GroupKind {
	var out []schema.GroupKind
	spec := p.PropagationSpec()
	for i := range spec.ResourceSelectors {
		out = append(out, schema.FromAPIVersionAndKind(spec.ResourceSelectors[i].APIVersion, spec.ResourceSelectors[i].Kind).GroupKind())
	}
	if spec.PropagateDeps {
		for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"} {
			out = append(out, corev1.SchemeGroupVersion.WithKind(kind).GroupKind())
		}
	}
	return out
}

// Mapper maps the kinds of contents without a server.
func (c *Contents) Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(kind schema.GroupVersionKind, namespaced bool) {
		mapper.Add(kind, scope.Pick[meta.RESTScope](namespaced, meta.RESTScopeNamespace, meta.RESTScopeRoot))
	}
	for _, k := range c.Kinds {
		add(k.GroupVersionKind, k.Namespaced)
	}
	for kind, namespaced := range map[string]bool{
		"PropagationPolicy": true, "ClusterPropagationPolicy": false, "OverridePolicy": true, "ClusterOverridePolicy": false, "ClusterTaintPolicy": false,
	} {
		add(policyv1alpha1.GroupVersion.WithKind(kind), namespaced)
	}
	for kind, namespaced := range map[string]bool{"ConfigMap": true, "Secret": true, "Service": true, "ServiceAccount": true, "PersistentVolumeClaim": true, "Namespace": false} {
		add(corev1.SchemeGroupVersion.WithKind(kind), namespaced)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		add(appsv1.SchemeGroupVersion.WithKind(kind), true)
	}
	add(batchv1.SchemeGroupVersion.WithKind("Job"), true)
	add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), false)
	add(configv1alpha1.GroupVersion.WithKind("ResourceInterpreterCustomization"), false)
	return mapper
}

// take adds the objects of a list.
func (c *Contents) take(list client.ObjectList) {
	switch l := list.(type) {
	case policyv1alpha1.PolicyList:
		c.Policies = append(c.Policies, l.Policies()...)
	case *policyv1alpha1.OverridePolicyList, *policyv1alpha1.ClusterOverridePolicyList:
		c.Overrides = append(c.Overrides, overrides(l)...)
	case *policyv1alpha1.ClusterTaintPolicyList:
		c.TaintPolicies = append(c.TaintPolicies, pointers(l.Items)...)
	case *policyv1alpha1.FederatedResourceQuotaList:
		c.Quotas = append(c.Quotas, pointers(l.Items)...)
	case *configv1alpha1.ResourceInterpreterCustomizationList:
		c.Customizations = append(c.Customizations, pointers(l.Items)...)
	case *configv1alpha1.ResourceInterpreterWebhookConfigurationList:
		c.Webhooks = append(c.Webhooks, pointers(l.Items)...)
	}
}

// relatedKinds are the kinds of Contents.Related.
func relatedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		autoscalingv1alpha1.GroupVersion.WithKind("FederatedHPA"), autoscalingv1alpha1.GroupVersion.WithKind("CronFederatedHPA"),
		networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"), searchv1alpha1.GroupVersion.WithKind("ResourceRegistry"),
	}
}

func listOf(kind schema.GroupVersionKind) client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// objects returns the objects of a list as they are delivered.
func objects(list client.ObjectList) []*unstructured.Unstructured {
	l, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return nil
	}
	for i := range l.Items {
		manifest.StripUnowned(&l.Items[i])
		l.Items[i].SetManagedFields(nil)
	}
	return pointers(l.Items)
}

// overrides returns the override policies of a list.
func overrides(list client.ObjectList) override.Policies {
	var out override.Policies
	switch l := list.(type) {
	case *policyv1alpha1.OverridePolicyList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *policyv1alpha1.ClusterOverridePolicyList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	}
	return out
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// sort sorts what was read at the same time.
func (c *Contents) sort() {
	slices.SortFunc(c.Kinds, func(a, b Kind) int { return strings.Compare(a.GroupKind().String(), b.GroupKind().String()) })
	slices.SortFunc(c.Templates, func(a, b *unstructured.Unstructured) int { return strings.Compare(name(a), name(b)) })
	slices.SortFunc(c.Policies, func(a, b policyv1alpha1.Policy) int { return strings.Compare(policyName(a), policyName(b)) })
	slices.SortFunc(c.Overrides, func(a, b policyv1alpha1.OverridePolicyObject) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
}

func policyName(p policyv1alpha1.Policy) string {
	return scope.PolicyOf(p).Kind + "/" + p.GetNamespace() + "/" + p.GetName()
}
