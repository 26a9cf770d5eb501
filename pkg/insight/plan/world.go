// Package plan computes what changes of a federation would do in each cluster, with the decisions of the roles: which policy gets which
// template, how it is scheduled, overridden and evicted, and what follows it. It is computed from facts and writes nothing.
package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	interpreter "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// Interpreter is what is known of the kinds of templates.
type Interpreter interface {
	propagation.Interpreter
	// GetDependencies returns the objects that a template refers to.
	GetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// World is a federation as a plan needs it. Its objects are shared and read-only: changes replace them.
type World struct {
	snapshot.Contents

	Interpreter Interpreter
	// Features are those of the control plane.
	Features propagation.Features
	// Evict reports whether NoExecute taints evict, which is a flag of the controller manager.
	Evict bool
	// Preempt reports whether policies take templates over from others, which is a feature gate.
	Preempt bool
	// Skipped are the namespaces from which nothing is propagated, which is a flag of the controller manager.
	Skipped *propagation.Namespaces

	// templates and policies are those of Contents.
	templates map[key]*unstructured.Unstructured
	policies  map[key]policyv1alpha1.Policy
	// candidates are the policies by namespace; those of the cluster scope have none.
	candidates map[string][]policyv1alpha1.Policy
	// claims are the policies that took templates when changes were made, by template.
	claims map[key]key
	// services are the Services among the templates, by namespace.
	services map[string][]*unstructured.Unstructured
	// changed are the policies and templates that a change wrote.
	changed map[key]bool
	// unread are those that a change wrote of which it is not known whether they exist.
	unread map[key]bool
	// lost are the clusters that a change made unreachable.
	lost map[string]bool
	// remarks are what is to be known of remarks.
	remarks []string
	// touched reports whether a change may move any template: one of a cluster, or of the interpreter.
	touched bool
}

// DefaultSkipped is the default pattern of namespaces from which nothing is propagated.
const DefaultSkipped = propagation.DefaultSkippedNamespaces

// Skip replaces the patterns of namespaces from which nothing is propagated. The error is that one is no regular expression.
func (w *World) Skip(patterns []string) (err error) {
	w.Skipped, err = propagation.ParseNamespaces(patterns)
	return err
}

// notes returns what a reader of a plan needs to know.
func (w *World) notes() []string {
	out := slices.Concat(w.remarks, w.registries())
	executes := func(c *clusterv1alpha1.Cluster) bool {
		return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
	}
	for _, c := range w.Clusters {
		switch {
		case c.DeletionTimestamp != nil:
		case slices.Contains(w.held(), c.Name):
			out = append(out, fmt.Sprintf("cluster %s is not evicted: so many clusters fail at once that evictions stop, see --mass-failure-threshold of karmada-controller-manager", c.Name))
		case executes(c) && !w.Evict:
			out = append(out, fmt.Sprintf("cluster %s has NoExecute taints: they evict only with --enable-no-execute-taint-eviction of karmada-controller-manager", c.Name))
		case w.lost[c.Name] && !executes(c):
			out = append(out, fmt.Sprintf("cluster %s is lost, and keeps its workloads: no ClusterTaintPolicy gives it a NoExecute taint", c.Name))
		}
	}
	return out
}

// massFailureThreshold is the default of --mass-failure-threshold of karmada-controller-manager.
const massFailureThreshold = 0.5

// held returns the clusters that are not evicted because many are lost at once.
func (w *World) held() []string {
	if len(w.lost) == 0 {
		return nil
	}
	facts := eviction.MassFailureFacts{Now: w.Now, Threshold: massFailureThreshold}
	for _, c := range w.Clusters {
		ready := c.ReadyCondition()
		if ready == nil || c.DeletionTimestamp != nil {
			continue
		}
		health := eviction.ClusterHealth{Name: c.Name, Ready: c.Ready(), ReadyChanged: ready.LastTransitionTime.Time, Confirmed: w.Now}
		if w.lost[c.Name] {
			health.ReadyChanged, health.FailingSince = w.Now, w.Now
		}
		facts.Clusters = append(facts.Clusters, health)
	}
	return eviction.MassFailure(facts).Held
}

// key names an object of a type, in all versions of it.
type key struct {
	schema.GroupKind
	namespace, name string
}

// String returns the kind and the name.
func (k key) String() string {
	if k.namespace == "" {
		return k.Kind + " " + k.name
	}
	return k.Kind + " " + k.namespace + "/" + k.name
}

func keyOf(u *unstructured.Unstructured) key {
	return key{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
}

func keyOfPolicy(p policyv1alpha1.Policy) key {
	return key{policyv1alpha1.GroupVersion.WithKind(scope.PolicyOf(p).Kind).GroupKind(), p.GetNamespace(), p.GetName()}
}

// copied returns a world that can be changed.
func (w *World) copied() *World {
	out := *w
	out.Clusters, out.Overrides = slices.Clone(w.Clusters), slices.Clone(w.Overrides)
	out.templates, out.policies = make(map[key]*unstructured.Unstructured, len(w.Templates)), make(map[key]policyv1alpha1.Policy, len(w.Policies))
	out.services = map[string][]*unstructured.Unstructured{}
	for _, t := range w.Templates {
		out.templates[keyOf(t)] = t
		if k := keyOf(t); k.Kind == "Service" && k.Group == "" {
			out.services[k.namespace] = append(out.services[k.namespace], t)
		}
	}
	out.candidates, out.claims = map[string][]policyv1alpha1.Policy{}, map[key]key{}
	for _, p := range w.Policies {
		out.setPolicy(p)
	}
	out.changed, out.unread, out.lost = map[key]bool{}, map[key]bool{}, map[string]bool{}
	return &out
}

// missing returns the error for an object that was not read.
func (w *World) missing(k key) error {
	if w.Unreadable(k.Kind, k.namespace) {
		return fmt.Errorf("%s cannot be read: ask for the right to list objects of its kind", k)
	}
	return fmt.Errorf("%s does not exist in the control plane", k)
}

// Change is a change of a federation.
type Change func(*World) error

// Store creates or replaces an object of the control plane. It is the object as the API server would store it, with defaults; what the
// control plane itself wrote on an existing template, such as the claim of its policy, is kept.
func Store(u *unstructured.Unstructured) Change {
	return func(w *World) error {
		w.changed[keyOf(u)] = true
		into, err := snapshot.Typed(u)
		if err != nil {
			return err
		}
		switch o := into.(type) {
		case *unstructured.Unstructured:
			w.setTemplate(u)
		case *policyv1alpha1.ClusterTaintPolicy:
			w.TaintPolicies = set(slices.Clone(w.TaintPolicies), o, func(p *policyv1alpha1.ClusterTaintPolicy) bool { return p.Name == u.GetName() })
			w.taint()
		case *policyv1alpha1.FederatedResourceQuota:
			w.Quotas = set(slices.Clone(w.Quotas), o, func(q *policyv1alpha1.FederatedResourceQuota) bool {
				return q.Namespace == o.Namespace && q.Name == o.Name
			})
		case *configv1alpha1.ResourceInterpreterCustomization:
			return w.interpret(set(slices.Clone(w.Customizations), o, func(c *configv1alpha1.ResourceInterpreterCustomization) bool { return c.Name == u.GetName() }))
		case policyv1alpha1.Policy:
			w.setPolicy(o)
			w.claim(o)
		case policyv1alpha1.OverridePolicyObject:
			w.Overrides = set(w.Overrides, o, func(p policyv1alpha1.OverridePolicyObject) bool {
				return p.GetNamespace() == u.GetNamespace() && p.GetName() == u.GetName()
			})
		case *clusterv1alpha1.Cluster:
			w.Clusters = set(w.Clusters, o, func(c *clusterv1alpha1.Cluster) bool { return c.Name == u.GetName() })
			w.touched = true
			slices.SortFunc(w.Clusters, func(a, b *clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
		}
		return nil
	}
}

// set replaces an object, or adds it.
func set[T any](list []T, o T, same func(T) bool) []T {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = o
		return list
	}
	return append(list, o)
}

// setTemplate replaces a template, or adds it.
func (w *World) setTemplate(u *unstructured.Unstructured) {
	u = u.DeepCopy()
	if before := w.templates[keyOf(u)]; before != nil {
		u.SetUID(before.GetUID())
		u.SetGeneration(before.GetGeneration() + 1)
		if claim, claimed := policy.Of(before); claimed {
			claim.Take(u).Apply(u)
		}
	}
	w.templates[keyOf(u)] = u
	if best := w.bestOf(u); best != nil && w.holder(u) == nil {
		w.claims[keyOf(u)] = keyOfPolicy(best)
	}
}

// setPolicy replaces a propagation policy, or adds it.
func (w *World) setPolicy(p policyv1alpha1.Policy) {
	k := keyOfPolicy(p)
	w.policies[k] = p
	w.candidates[k.namespace] = set(w.candidates[k.namespace], p, func(c policyv1alpha1.Policy) bool { return c.GetName() == k.name })
}

// claim gives a policy that is written the templates that no other one has: it keeps them when others are written after it.
func (w *World) claim(p policyv1alpha1.Policy) {
	for k, t := range w.templates {
		if (p.GetNamespace() == "" || p.GetNamespace() == k.namespace) && w.holder(t) == nil && w.bestOf(t) == p {
			w.claims[k] = keyOfPolicy(p)
		}
	}
}

// holder returns the policy that has taken a template, as long as it exists.
func (w *World) holder(t *unstructured.Unstructured) policyv1alpha1.Policy {
	claim, claimed := policy.Of(t)
	if !claimed {
		return w.policies[w.claims[keyOf(t)]]
	}
	p := w.policies[key{policyv1alpha1.GroupVersion.WithKind(claim.Scope().Kind).GroupKind(), claim.Namespace, claim.Name}]
	if p == nil || !policy.For(p).SamePolicy(claim) {
		return nil
	}
	return p
}

// bestOf returns the policy that would take a template which no other one has; nil for none.
func (w *World) bestOf(t *unstructured.Unstructured) policyv1alpha1.Policy {
	for _, s := range policy.Scopes(t) {
		if best := w.best(t, s); best != nil {
			return best
		}
	}
	return nil
}

// best returns the best policy of a scope for a template; nil for none.
func (w *World) best(t *unstructured.Unstructured, s *scope.Policy) policyv1alpha1.Policy {
	switch namespace := t.GetNamespace(); {
	case !s.Namespaced:
		return policy.Best(t, w.candidates[""])
	case namespace != "":
		return policy.Best(t, w.candidates[namespace])
	}
	return nil
}

// taint gives clusters the taints that the ClusterTaintPolicies want.
func (w *World) taint() {
	w.touched = true
	for i, c := range w.Clusters {
		if taints, changed := clustercondition.Taints(c, w.TaintPolicies, w.Now); changed {
			c = c.DeepCopy()
			c.Spec.Taints = taints
			w.Clusters[i] = c
		}
	}
}

// interpret uses other customizations.
func (w *World) interpret(customizations []*configv1alpha1.ResourceInterpreterCustomization) (err error) {
	w.Customizations, w.touched = customizations, true
	w.Interpreter, err = interpreter.NewOffline(customizations)
	return err
}

// Scale sets spec.replicas of a template. The error is that it does not exist, or has no replicas.
func Scale(kind schema.GroupKind, namespace, name string, replicas int64) Change {
	return func(w *World) error {
		k := key{kind, namespace, name}
		t := w.templates[k]
		if t == nil {
			return w.missing(k)
		}
		if _, found, err := unstructured.NestedInt64(t.Object, "spec", "replicas"); err != nil || !found {
			return fmt.Errorf("%s has no field spec.replicas", k)
		}
		t = t.DeepCopy()
		if err := unstructured.SetNestedField(t.Object, replicas, "spec", "replicas"); err != nil {
			return fmt.Errorf("scaling %s: %w", k, err)
		}
		w.changed[k] = true
		w.setTemplate(t)
		return nil
	}
}

// Taint adds a taint to a cluster, or replaces the one of its key and effect.
func Taint(cluster string, taint corev1.Taint) Change {
	return changeCluster(cluster, func(w *World, c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect })
		taint.TimeAdded = &metav1.Time{Time: w.Now}
		c.Spec.Taints = append(c.Spec.Taints, taint)
	})
}

// Cordon keeps new replicas off a cluster.
func Cordon(cluster string) Change {
	return Taint(cluster, corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

// Label sets labels of a cluster; an empty value is one.
func Label(cluster string, labels map[string]string) Change {
	return changeCluster(cluster, func(_ *World, c *clusterv1alpha1.Cluster) {
		c.Labels = maps.Clone(c.Labels)
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		maps.Copy(c.Labels, labels)
	})
}

// Lose makes a cluster unreachable. What is in it stays, until it is back.
func Lose(cluster string) Change {
	return changeCluster(cluster, func(w *World, c *clusterv1alpha1.Cluster) {
		w.lost[cluster] = true
		i := slices.IndexFunc(c.Status.Conditions, func(c metav1.Condition) bool { return c.Type == clusterv1alpha1.ClusterConditionReady })
		condition := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterNotReachable"}
		if c.Spec.SyncMode == clusterv1alpha1.Pull { // its agent does not report
			condition.Status = metav1.ConditionUnknown
		}
		if i >= 0 {
			c.Status.Conditions[i] = condition
		} else {
			c.Status.Conditions = append(c.Status.Conditions, condition)
		}
		c.Spec.Taints, _ = clustercondition.HealthTaints(c.Spec.Taints, &condition, w.Now)
	})
}

// Unjoin removes a cluster. What the control plane made there is deleted.
func Unjoin(cluster string) Change {
	return changeCluster(cluster, func(w *World, c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: w.Now} })
}

// changeCluster changes a copy of a cluster. The error is that it does not exist.
func changeCluster(name string, change func(*World, *clusterv1alpha1.Cluster)) Change {
	return func(w *World) error {
		i, found := slices.BinarySearchFunc(w.Clusters, name, func(c *clusterv1alpha1.Cluster, name string) int { return cmp.Compare(c.Name, name) })
		if !found {
			return fmt.Errorf("cluster %s does not exist", name)
		}
		c := w.Clusters[i].DeepCopy()
		change(w, c)
		w.Clusters[i] = c
		w.taint()
		return nil
	}
}

func sortedKeys(states map[key]*state) []key {
	return slices.SortedFunc(maps.Keys(states), compareKeys)
}

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.name, b.name), strings.Compare(a.Group, b.Group))
}
