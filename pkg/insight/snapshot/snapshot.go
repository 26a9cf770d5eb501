// Package snapshot reads the facts that a question about a federation names, once, with the rights of the user. What may not be
// read is a gap, and is not taken for what does not exist.
package snapshot

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	interpreter "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

const (
	// maxPods is the number of pods of a workload that are read in a cluster.
	maxPods = 500
	// maxTargets is the number of clusters whose Works are read.
	maxTargets = 500
)

// Facts are what an account of a template is computed from. What is nil or empty does not exist, unless a gap names it.
type Facts struct {
	// Now is the time of the reads.
	Now      time.Time
	Template *unstructured.Unstructured
	// Mapping is the resource of the template.
	Mapping *meta.RESTMapping
	// Policies are those that may select the template: of its namespace and of the cluster scope.
	Policies []policyv1alpha1.Policy
	// Foreign are policies of other namespaces. They are read if none of Policies selects the template.
	Foreign   []policyv1alpha1.Policy
	Overrides override.Policies
	Binding   workv1alpha2.Binding
	// Clusters are all clusters, sorted by name.
	Clusters []*clusterv1alpha1.Cluster
	// Works are the Works of the template by cluster.
	Works map[string]*workv1alpha1.Work
	// Ruled reports whether the kind is one of Kubernetes, or the interpreter has a rule for its health.
	Ruled bool
	// Missing are the objects that the template refers to, that follow it, and that do not exist in the control plane.
	Missing []configv1alpha1.DependentObjectReference
	// Leaving are the Works of the template that are being deleted, by cluster.
	Leaving map[string]*workv1alpha1.Work
	// Members are what members report beside the status in the control plane, by cluster: those in which something is not Healthy.
	Members map[string]Member
	Gaps
}

// Member is what a member has of a template.
type Member struct {
	Object *unstructured.Unstructured
	Pods   []*corev1.Pod
	// Err is why the member was not read.
	Err error
}

// Cluster returns a cluster, or nil.
func (f *Facts) Cluster(name string) *clusterv1alpha1.Cluster {
	i, found := slices.BinarySearchFunc(f.Clusters, name, func(c *clusterv1alpha1.Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return f.Clusters[i]
}

// Reader reads facts.
type Reader struct {
	ControlPlane client.Reader
	// Mapper maps the kinds of templates. Only Contents uses it.
	Mapper meta.RESTMapper
	// Member returns a client for a member.
	Member func(cluster string) (dynamic.Interface, error)
	// Raw returns the answer of the API server to a GET of a path, also one that is an error. Only Federation uses it.
	Raw func(ctx context.Context, path string) ([]byte, error)
	// Namespace is read by Federation for a user who may not list the objects of all; empty for none.
	Namespace string
	// Deadline bounds the wait for all members together, and that for a federation. Default: 2 s.
	Deadline time.Duration
	Now      func() time.Time
}

// defaultDeadline is the default of Reader.Deadline.
const defaultDeadline = 2 * time.Second

// reading are facts while they are read.
type reading struct {
	*Facts
	*reads
	from *Reader
}

// Template reads the facts about a template, which the user has read. It returns an error only if ctx ends.
func (r *Reader) Template(ctx context.Context, template *unstructured.Unstructured, mapping *meta.RESTMapping) (*Facts, error) {
	f := &reading{from: r, reads: &reads{from: r.ControlPlane}, Facts: &Facts{
		Now: r.Now(), Template: template, Mapping: mapping, Works: map[string]*workv1alpha1.Work{}, Members: map[string]Member{},
	}}
	var group sync.WaitGroup
	lists := map[string]client.ObjectList{ClusterPolicies: &policyv1alpha1.ClusterPropagationPolicyList{}, ClusterOverrides: &policyv1alpha1.ClusterOverridePolicyList{}}
	if template.GetNamespace() != "" {
		lists[Policies], lists[Overrides] = &policyv1alpha1.PropagationPolicyList{}, &policyv1alpha1.OverridePolicyList{}
	}
	for what, list := range lists {
		group.Go(func() {
			in := template.GetNamespace()
			if what == ClusterPolicies || what == ClusterOverrides {
				in = ""
			}
			f.list(ctx, what, list, f.take, client.InNamespace(in))
		})
	}
	group.Go(func() { f.Clusters = f.clusters(ctx) })
	group.Go(func() { f.readBinding(ctx) })
	group.Wait()
	group.Go(func() { f.readForeign(ctx) })
	group.Go(func() {
		f.Leaving = f.leaving(ctx, names.Work(template.GetKind(), template.GetName(), template.GetNamespace()))
	})
	f.readWorks(ctx)
	f.interpret(ctx)
	group.Wait()
	f.readMembers(ctx)
	f.Gaps = f.sorted()
	return f.Facts, context.Cause(ctx)
}

// take adds the policies of a list.
func (f *reading) take(list client.ObjectList) {
	switch l := list.(type) {
	case policyv1alpha1.PolicyList:
		f.Policies = append(f.Policies, l.Policies()...)
	default:
		f.Overrides = append(f.Overrides, overrides(l)...)
	}
}

func (f *reading) readBinding(ctx context.Context) {
	binding := scope.BindingIn(f.Template.GetNamespace()).New()
	key := client.ObjectKey{Namespace: f.Template.GetNamespace(), Name: names.Binding(f.Template.GetKind(), f.Template.GetName())}
	if f.get(ctx, TheBinding, key, binding) && scope.RefersTo(&binding.GetSpec().Resource, f.Template) {
		f.Binding = binding
	}
}

// readForeign reads the policies of other namespaces if there is none for the template.
func (f *reading) readForeign(ctx context.Context) {
	if f.Template.GetNamespace() == "" || policy.Best(f.Template, f.Policies) != nil {
		return
	}
	list := &policyv1alpha1.PropagationPolicyList{}
	if f.from.ControlPlane.List(ctx, list) != nil {
		return // it only helps to find a policy in the wrong namespace
	}
	for _, p := range list.Policies() {
		if p.GetNamespace() != f.Template.GetNamespace() {
			f.Foreign = append(f.Foreign, p)
		}
	}
}

// Targets returns the clusters that have or get the template.
func (f *Facts) Targets() []workv1alpha2.TargetCluster {
	if f.Binding == nil {
		return f.synced()
	}
	return scope.Kept(scope.Targets(f.Binding.GetSpec()), f.Binding.GetSpec().GracefulEvictionTasks)
}

// Namespace reports whether the template is a Namespace.
func (f *Facts) Namespace() bool { return f.Template.GroupVersionKind() == namespaces }

// synced returns all clusters for a namespace that they get without a policy.
func (f *Facts) synced() []workv1alpha2.TargetCluster {
	if !f.Namespace() || !propagation.DefaultNamespaces().Syncs(f.Template) {
		return nil
	}
	var out []workv1alpha2.TargetCluster
	for _, c := range f.Clusters {
		out = append(out, workv1alpha2.TargetCluster{Name: c.Name})
	}
	return out
}

// interpret finds out what the interpreter knows of the kind, and which objects are missing to which the template refers. Interpreter webhooks
// are not asked.
func (f *reading) interpret(ctx context.Context) {
	list := &configv1alpha1.ResourceInterpreterCustomizationList{}
	_ = f.from.ControlPlane.List(ctx, list) // without it, there are the rules that are built in
	in, err := interpreter.NewOffline(pointers(list.Items))
	group := f.Template.GroupVersionKind().Group
	native := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
	f.Ruled = err != nil || native || in.HookEnabled(f.Template.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretHealth)
	if err != nil || f.Binding == nil || !f.Binding.GetSpec().PropagateDeps {
		return
	}
	references, err := in.GetDependencies(f.Template)
	if err != nil {
		return
	}
	for _, ref := range references[:min(len(references), maxDependencies)] {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		if ref.Name != "" && apierrors.IsNotFound(f.from.ControlPlane.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)) {
			f.Missing = append(f.Missing, ref)
		}
	}
}

// maxDependencies is the number of objects to which a template refers whose existence is checked.
const maxDependencies = 50

func (f *reading) readWorks(ctx context.Context) {
	targets := f.Targets()
	targets = targets[:min(len(targets), maxTargets)]
	name := names.Work(f.Template.GetKind(), f.Template.GetName(), f.Template.GetNamespace())
	works := make([]*workv1alpha1.Work, len(targets))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, t := range targets {
		group.Go(func() error {
			work := &workv1alpha1.Work{}
			if f.get(ctx, WorkIn(t.Name), client.ObjectKey{Namespace: names.ExecutionNamespace(t.Name), Name: name}, work) {
				works[i] = work
			}
			return nil
		})
	}
	_ = group.Wait()
	for i, t := range targets {
		if works[i] != nil {
			f.Works[t.Name] = works[i]
		}
	}
}

// leaving returns the Works of a name that are being deleted, by cluster. Who may not read them does not know of them.
func (r *reads) leaving(ctx context.Context, name string) map[string]*workv1alpha1.Work {
	out := map[string]*workv1alpha1.Work{}
	_ = r.pages(ctx, &workv1alpha1.WorkList{}, func(l client.ObjectList) {
		works := l.(*workv1alpha1.WorkList).Items
		for i := range works {
			cluster, err := names.ClusterOfExecutionNamespace(works[i].Namespace)
			if err == nil && works[i].DeletionTimestamp != nil {
				out[cluster] = &works[i]
			}
		}
	}, client.MatchingFields{"metadata.name": name})
	return out
}

// Leaving reads the Works of a template that does not exist any more, by cluster.
func (r *Reader) Leaving(ctx context.Context, kind, namespace, name string) map[string]*workv1alpha1.Work {
	return (&reads{from: r.ControlPlane}).leaving(ctx, names.Work(kind, name, namespace))
}

// parallel is the number of requests at a time.
const parallel = 32

// readMembers reads the object and its pods in the clusters where it is not Healthy. A member that does not answer in time delays
// nothing.
func (f *reading) readMembers(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(f.from.Deadline, defaultDeadline), errDeadline)
	defer cancel()
	var clusters []string
	for _, t := range f.Targets() {
		if c := f.Cluster(t.Name); c != nil && c.Ready() && f.Works[t.Name] != nil && f.Binding != nil && !healthy(f.Binding, t.Name) {
			clusters = append(clusters, t.Name)
		}
	}
	answers := make(chan func(), len(clusters))
	free := make(chan struct{}, parallel)
	for _, name := range clusters {
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			m := f.readMember(ctx, name)
			answers <- func() { f.Members[name] = m }
		}()
	}
	for range clusters {
		select {
		case add := <-answers:
			add()
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, name := range clusters {
		if _, read := f.Members[name]; !read {
			f.Members[name] = Member{Err: context.Cause(ctx)}
		}
	}
}

// healthy reports whether the object in a cluster is Healthy by the status of the binding.
func healthy(b workv1alpha2.Binding, cluster string) bool {
	return slices.ContainsFunc(b.GetStatus().AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
		return i.ClusterName == cluster && i.Health == workv1alpha2.ResourceHealthy
	})
}

func (f *reading) readMember(ctx context.Context, cluster string) Member {
	c, err := f.from.Member(cluster)
	if err != nil {
		return Member{Err: err}
	}
	object, err := c.Resource(f.Mapping.Resource).Namespace(f.Template.GetNamespace()).Get(ctx, f.Template.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Member{}
	}
	if err != nil {
		return Member{Err: err}
	}
	m := Member{Object: object}
	selector := podSelector(object)
	if selector == "" {
		return m
	}
	list, err := c.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(object.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: maxPods})
	if err != nil {
		m.Err = err
		return m
	}
	for i := range list.Items {
		pod := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, pod) == nil {
			m.Pods = append(m.Pods, pod)
		}
	}
	return m
}

// podSelector returns the label selector of a workload's pods, or nothing.
func podSelector(object *unstructured.Unstructured) string {
	raw, found, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	if !found {
		return ""
	}
	selector := &metav1.LabelSelector{}
	if _, structured := raw["matchLabels"]; !structured && raw["matchExpressions"] == nil { // a ReplicationController or Service
		selector.MatchLabels, _, _ = unstructured.NestedStringMap(object.Object, "spec", "selector")
	} else if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector) != nil {
		return ""
	}
	if s, err := validation.LabelSelector(selector); err == nil && !s.Empty() {
		return s.String()
	}
	return ""
}
