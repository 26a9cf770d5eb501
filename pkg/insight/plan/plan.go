package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// maxRounds bounds how often a binding is scheduled and evicted before its state counts as unknown.
const maxRounds = 10

// state is what becomes of a template.
type state struct {
	template *unstructured.Unstructured
	// policy has it; nil for none.
	policy  policyv1alpha1.Policy
	binding workv1alpha2.Binding
	targets []workv1alpha2.TargetCluster
	// after is when the last eviction begins.
	after time.Duration
	// unfit is why replicas are not assigned; empty if all are.
	unfit string
	// unknown are what cannot be computed.
	unknown []string
	// follows are the templates that it follows as a dependency.
	follows []string
	// either are clusters of which some are targets, which the UID of the template decides.
	either []string
	// kept reports whether the policy that has it does not select it any more, and was not changed: it keeps the template, whose changes do
	// not reach the clusters.
	kept bool
	// synced are the clusters that get a namespace without a policy.
	synced map[string]bool
	// evicted are why it leaves clusters, by cluster.
	evicted map[string]string
}

// planner computes the states of the templates of a world.
type planner struct {
	*World
	profile  *core.Profile
	snapshot *framework.Snapshot
	bindings map[key]workv1alpha2.Binding
	// delivered are the objects of Works by cluster, of templates that no policy has.
	delivered map[key]map[string]*unstructured.Unstructured
	// preempt are the changed policies that may take templates over from others.
	preempt []policyv1alpha1.Policy
	// stays are the clusters that are not evicted because many are lost at once.
	stays []string
	// settle reports whether the roles act: what is there before the changes is taken as it is.
	settle bool
}

func newPlanner(w *World, settle bool) (*planner, error) {
	profile, err := why.DefaultProfile()
	if err != nil {
		return nil, err
	}
	p := &planner{World: w, profile: profile, snapshot: framework.SnapshotOf(w.Clusters, false), bindings: map[key]workv1alpha2.Binding{}, stays: w.held(), settle: settle}
	if !settle {
		p.delivered = deliveredBy(w.Works)
	}
	for k, c := range w.policies {
		if w.Preempt && w.changed[k] && c.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways {
			p.preempt = append(p.preempt, c)
		}
	}
	for _, b := range w.Bindings {
		ref := &b.GetSpec().Resource
		p.bindings[key{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Namespace, ref.Name}] = b
	}
	return p, nil
}

// states returns what becomes of each template.
func (p *planner) states() map[key]*state {
	out := make(map[key]*state, len(p.templates))
	for k, t := range p.templates {
		if k.GroupKind == definitions && p.changed[k] {
			out[k] = p.stateOf(k, t)
			p.serve(t, out[k])
		}
	}
	for k, t := range p.templates {
		if out[k] == nil {
			out[k] = p.stateOf(k, t)
		}
	}
	if p.settle {
		p.limit(out)
		p.follow(out)
	} else {
		p.leave(out)
	}
	for _, s := range out {
		if s.binding != nil {
			s.targets = slices.DeleteFunc(scope.Targets(s.binding.GetSpec()), func(t workv1alpha2.TargetCluster) bool {
				return !p.joined(t.Name)
			})
		}
		p.sync(s)
	}
	return out
}

// definitions is the kind of CustomResourceDefinitions.
var definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// serve has clusters that get a CustomResourceDefinition serve its kind.
func (p *planner) serve(t *unstructured.Unstructured, s *state) {
	if s.binding == nil {
		return
	}
	group, _, _ := unstructured.NestedString(t.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(t.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(t.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(t.Object, "spec", "versions")
	for _, target := range scope.Targets(s.binding.GetSpec()) {
		i := slices.IndexFunc(p.Clusters, func(c *clusterv1alpha1.Cluster) bool { return c.Name == target.Name })
		if i < 0 {
			continue
		}
		c := p.Clusters[i].DeepCopy()
		for _, v := range versions {
			version, _ := v.(map[string]any)
			c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{
				GroupVersion: fmt.Sprintf("%s/%s", group, version["name"]), Resources: []clusterv1alpha1.APIResource{{Name: plural, Kind: kind}},
			})
		}
		p.Clusters[i] = c
	}
	p.snapshot = framework.SnapshotOf(p.Clusters, false)
}

func (p *planner) stateOf(k key, t *unstructured.Unstructured) *state {
	s := &state{template: t, binding: p.bindings[k]}
	if s.binding != nil {
		s.binding = s.binding.DeepCopyObject().(workv1alpha2.Binding)
	}
	if p.Skipped.Contains(t.GetNamespace()) || policy.Own(t) != "" || t.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel] != "" {
		return s
	}
	if s.policy = p.keeper(t); s.policy != nil {
		s.kept = true
	} else {
		s.policy = p.policyOf(t)
	}
	switch {
	case !p.settle || s.policy == nil || p.rests(k, s):
	case s.kept:
		if s.binding != nil {
			p.place(s)
		}
	case policy.IsLazy(s.policy) && !p.changed[k]:
		s.unknown = p.lazily(s)
	default:
		p.bind(s)
		if s.binding != nil && t.GetUID() == "" {
			p.placeNew(s)
		} else {
			p.place(s)
		}
	}
	return s
}

// keeper returns the policy that has a template, does not select it any more, and was not changed; nil for none.
func (p *planner) keeper(t *unstructured.Unstructured) policyv1alpha1.Policy {
	if holder := p.holder(t); holder != nil && !p.changed[keyOfPolicy(holder)] && !policy.Matches(t, holder) {
		return holder
	}
	return nil
}

// rests reports whether what has a template, and all that it depends on, is as it was.
func (p *planner) rests(k key, s *state) bool {
	return !p.touched && (s.kept || !p.changed[k]) && !p.changed[keyOfPolicy(s.policy)] && s.binding != nil && policy.For(s.policy).HeldBy(s.binding)
}

// answers reports whether an interpreter webhook has a rule for a kind.
func answers(w *configv1alpha1.ResourceInterpreterWebhookConfiguration, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(w.Webhooks, func(h configv1alpha1.ResourceInterpreterWebhook) bool {
		return slices.ContainsFunc(h.Rules, func(r configv1alpha1.RuleWithOperations) bool { return r.Covers(kind) })
	})
}

// lazily returns what a lazy policy leaves for the next change of the template.
func (p *planner) lazily(s *state) []string {
	if p.changed[keyOfPolicy(s.policy)] {
		return []string{"the policy is lazy: it is applied with the next change of the object"}
	}
	return nil
}

// policyOf returns the policy that has a template; nil for none.
func (p *planner) policyOf(t *unstructured.Unstructured) policyv1alpha1.Policy {
	if holder := p.holder(t); holder != nil {
		yields := holder.GetNamespace() != "" && policy.ClusterFirst(t.GroupVersionKind().GroupKind()) && p.best(t, scope.ClusterPolicy()) != nil
		if policy.Matches(t, holder) && !yields {
			return p.preempting(t, holder)
		}
	}
	return p.bestOf(t)
}

// preempting returns the policy that takes a template over from its holder, or the holder. A policy preempts when it is written, what it
// selects by name.
func (p *planner) preempting(t *unstructured.Unstructured, holder policyv1alpha1.Policy) policyv1alpha1.Policy {
	for _, c := range p.preempt {
		if policy.Specificity(t, c) != match.ByName {
			continue
		}
		current := func() (policyv1alpha1.Policy, error) { return holder, nil }
		if takes, _ := policy.TakesOver(t.GroupVersionKind().GroupKind(), c, policy.For(holder), current); takes { // current has no error
			holder = c
		}
	}
	return holder
}

// bind makes the binding what the policy wants.
func (p *planner) bind(s *state) {
	for _, w := range p.Webhooks {
		if answers(w, s.template.GroupVersionKind()) {
			s.unknown = append(s.unknown, "what interpreter webhook "+w.Name+" answers")
		}
	}
	size, err := propagation.SizeOf(s.template, p.Interpreter, p.Features)
	if err != nil {
		s.unknown = append(s.unknown, fmt.Sprintf("its replicas: %v", err))
		return
	}
	if s.binding == nil {
		s.binding = scope.BindingIn(s.template.GetNamespace()).New()
		s.binding.SetNamespace(s.template.GetNamespace())
		s.binding.SetName(names.Binding(s.template.GetKind(), s.template.GetName()))
	}
	claim := policy.For(s.policy)
	claim.Take(s.binding).Apply(s.binding)
	propagation.SpecOf(s.template, s.policy, size, p.Features).Apply(s.binding.GetSpec(), "")
}

// placeNew places a template that does not exist. The replicas that equal weights leave over go to clusters in the order of their names or
// against it, which the UID of the template decides: it is not known.
func (p *planner) placeNew(s *state) {
	other := *s
	other.binding = s.binding.DeepCopyObject().(workv1alpha2.Binding)
	other.binding.GetSpec().Resource.UID = uidOf(replicas.NameDescending)
	p.place(s)
	p.place(&other)
	differ, targets, others := sets.New[string](), s.binding.GetSpec().Clusters, other.binding.GetSpec().Clusters
	s.either = sets.List(scope.Names(targets).SymmetricDifference(scope.Names(others)))
	for _, pair := range [][2][]workv1alpha2.TargetCluster{{targets, others}, {others, targets}} {
		for _, t := range pair[0] {
			if !slices.ContainsFunc(pair[1], func(o workv1alpha2.TargetCluster) bool { return o.Name == t.Name && o.Replicas == t.Replicas }) {
				differ.Insert(t.Name)
			}
		}
	}
	if len(differ) > 0 {
		s.unknown = append(s.unknown, fmt.Sprintf("which of the clusters %s get one replica more: its UID decides", strings.Join(sets.List(differ), ", ")))
	}
}

// uidOf returns a UID that breaks ties in an order.
func uidOf(tie replicas.Tie) types.UID {
	for c := 'a'; ; c++ {
		if replicas.TieOf(string(c)) == tie {
			return types.UID(c)
		}
	}
}

// place schedules a binding, and evicts it from clusters, until neither is due.
func (p *planner) place(s *state) {
	spec := s.binding.GetSpec()
	switch {
	case spec.SchedulingSuspended():
		return
	case cmp.Or(spec.SchedulerName, policyv1alpha1.DefaultSchedulerName) != policyv1alpha1.DefaultSchedulerName:
		s.unknown = append(s.unknown, fmt.Sprintf("where scheduler %q puts it", spec.SchedulerName))
		return
	}
	for range maxRounds {
		scheduled, evicted, back := p.schedule(s), p.evict(s), p.giveBack(s)
		if !scheduled && !evicted && !back {
			// What is evicted is gone when its replacement is healthy, or after the grace period.
			s.binding.GetSpec().GracefulEvictionTasks = nil
			return
		}
	}
	s.unknown = append(s.unknown, "where it comes to rest")
}

// schedule makes the decision that is due for a binding, and reports whether it changed anything.
func (p *planner) schedule(s *state) bool {
	spec, status := s.binding.GetSpec(), s.binding.GetStatus()
	need, err := core.NeedsScheduling(s.binding, core.NeedFacts{Snapshot: p.snapshot, MultiplePodTemplates: p.Features.Components})
	if err != nil || !need.Due() {
		return false
	}
	decision, err := core.Schedule(p.snapshot, &core.Request{Profile: p.profile, MultiplePodTemplates: p.Features.Components, Binding: framework.Binding{
		Namespace: s.binding.GetNamespace(), Name: s.binding.GetName(), Spec: spec, Status: status, Now: p.Now,
	}})
	before := spec.Clusters
	s.unfit = ""
	switch {
	case err == nil:
		spec.Clusters, status.SchedulerObservedAffinityName = decision.Clusters, decision.AffinityName
	case core.ClassOf(err) == core.NoClusterFit:
		spec.Clusters, s.unfit = nil, err.Error()
	default:
		s.unfit = err.Error()
		if room := decision.Room(); room != "" {
			s.unfit = strings.TrimSuffix(s.unfit, ".") + ". Room for more: " + room + "."
		}
		return false
	}
	if applied, err := json.Marshal(spec.Placement); err == nil {
		annotations := maps.Clone(s.binding.GetAnnotations())
		annotations[policyv1alpha1.AppliedPlacementAnnotation] = string(applied)
		s.binding.SetAnnotations(annotations)
	}
	return !scope.SameTargets(before, spec.Clusters)
}

// giveBack cancels evictions that are under way from clusters to which the template may return, and reports whether there was one.
func (p *planner) giveBack(s *state) bool {
	spec, status, clusters := s.binding.GetSpec(), s.binding.GetStatus(), map[string]*clusterv1alpha1.Cluster{}
	for i := range spec.GracefulEvictionTasks {
		name := spec.GracefulEvictionTasks[i].FromCluster
		clusters[name] = p.cluster(name)
	}
	v := eviction.Graceful(eviction.GracefulFacts{
		Now: p.Now, Timeout: eviction.DefaultGracefulTimeout, Spec: spec, Status: status, Generation: status.SchedulerObservedGeneration,
		Returnable: eviction.Returnable(s.binding, clusters, p.Now),
	})
	if len(v.Cancelled) == 0 {
		return false
	}
	spec.Clusters, spec.GracefulEvictionTasks, s.unfit = v.Clusters, v.Keep, ""
	return true
}

// evict makes the evictions that taints of clusters cause, also those that tolerations put off, and reports whether there was one.
func (p *planner) evict(s *state) bool {
	if !p.Evict {
		return false
	}
	for _, t := range s.binding.GetSpec().Clusters {
		if slices.Contains(p.stays, t.Name) {
			continue
		}
		facts := eviction.TaintFacts{Now: p.Now, ClusterName: t.Name, Cluster: p.cluster(t.Name), Binding: s.binding, Enabled: true, PurgeMode: policyv1alpha1.PurgeModeGracefully, KeepUnclaimed: true}
		verdict, err := eviction.Taint(facts)
		if err == nil && verdict.After > 0 {
			s.after = max(s.after, verdict.After)
			facts.Now = p.Now.Add(verdict.After)
			verdict, err = eviction.Taint(facts)
		}
		if err == nil && verdict.Evict {
			*s.binding.GetSpec() = *verdict.Spec
			if s.evicted == nil {
				s.evicted = map[string]string{}
			}
			s.evicted[t.Name] = "the cluster has the taints " + executing(p.cluster(t.Name))
			return true
		}
	}
	return false
}

// executing returns the NoExecute taints of a cluster.
func executing(c *clusterv1alpha1.Cluster) string {
	var out []string
	for i := range c.Spec.Taints {
		if t := &c.Spec.Taints[i]; t.Effect == corev1.TaintEffectNoExecute {
			out = append(out, t.ToString())
		}
	}
	return strings.Join(out, ", ")
}

// follow gives the dependencies of templates the clusters of these, and takes them from what is no dependency any more.
func (p *planner) follow(states map[key]*state) {
	followed := map[*state]sets.Set[types.NamespacedName]{}
	for _, k := range sortedKeys(states) {
		s := states[k]
		by, ok := s.binding.(*workv1alpha2.ResourceBinding)
		if !ok || !dependency.Attaches(by) || !p.Interpreter.HookEnabled(s.template.GroupVersionKind(), configv1alpha1.InterpreterOperationInterpretDependency) {
			continue
		}
		deps, err := p.dependencies(k, s)
		if err != nil {
			s.unknown = append(s.unknown, fmt.Sprintf("its dependencies: %v", err))
		}
		for i := range deps {
			d := &deps[i]
			at := states[key{schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupKind(), d.Namespace, d.Name}]
			if at == nil || d.Name == "" || d.Namespace != k.namespace {
				continue
			}
			if followed[at] == nil {
				followed[at] = sets.New[types.NamespacedName]()
			}
			followed[at].Insert(client.ObjectKeyFromObject(by))
			p.attach(at, s, by)
		}
	}
	referrers := p.referrers(states)
	for _, s := range states {
		if attached, ok := s.binding.(*workv1alpha2.ResourceBinding); ok && len(attached.Spec.RequiredBy) > 0 {
			agree(attached, followed[s], referrers)
		}
	}
}

// evictedAndPreserved reports whether a binding is being evicted from a cluster in which it is preserved.
func evictedAndPreserved(before workv1alpha2.Binding, b *workv1alpha2.ResourceBinding) bool {
	return before != nil && slices.ContainsFunc(before.GetSpec().GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return dependency.Preserves(b, t.FromCluster) })
}

// dependencies returns the objects that follow a template. One that no policy has, or that its policy keeps, stays as it was delivered: those
// follow that were recorded last.
func (p *planner) dependencies(k key, s *state) (out []configv1alpha1.DependentObjectReference, err error) {
	if b := p.bindings[k]; b != nil && (s.policy == nil || s.kept) && b.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotation] != "" {
		return out, json.Unmarshal([]byte(b.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotation]), &out)
	}
	return p.Interpreter.GetDependencies(s.template)
}

// referrers returns the bindings that others may require, as they will be, or were last.
func (p *planner) referrers(states map[key]*state) map[types.NamespacedName]*workv1alpha2.ResourceBinding {
	out := map[types.NamespacedName]*workv1alpha2.ResourceBinding{}
	add := func(b workv1alpha2.Binding) {
		if b, ok := b.(*workv1alpha2.ResourceBinding); ok {
			out[client.ObjectKeyFromObject(b)] = b
		}
	}
	for _, b := range p.bindings {
		add(b)
	}
	for _, s := range states {
		add(s.binding)
	}
	return out
}

// agree has an attached binding not follow what does not refer to its template any more, and take from the others what they determine.
func agree(attached *workv1alpha2.ResourceBinding, following sets.Set[types.NamespacedName], referrers map[types.NamespacedName]*workv1alpha2.ResourceBinding) {
	var agreeing []*workv1alpha2.ResourceBinding
	for _, r := range slices.Clone(attached.Spec.RequiredBy) {
		name := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
		if b := referrers[name]; following.Has(name) {
			agreeing = append(agreeing, b)
		} else {
			dependency.Unfollow(attached, cmp.Or(b, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}))
		}
	}
	dependency.Agree(attached, agreeing)
}

// leave takes dependencies from clusters from which what refers to them is being evicted: no change has them leave.
func (p *planner) leave(states map[key]*state) {
	underWay := map[[3]string]bool{} // by namespace and name of the binding, and cluster
	for _, b := range p.bindings {
		for i := range b.GetSpec().GracefulEvictionTasks {
			underWay[[3]string{b.GetNamespace(), b.GetName(), b.GetSpec().GracefulEvictionTasks[i].FromCluster}] = true
		}
	}
	for _, s := range states {
		if s.binding == nil {
			continue
		}
		for i := range s.binding.GetSpec().RequiredBy {
			r := &s.binding.GetSpec().RequiredBy[i]
			r.Clusters = slices.DeleteFunc(r.Clusters, func(t workv1alpha2.TargetCluster) bool { return underWay[[3]string{r.Namespace, r.Name, t.Name}] })
		}
	}
}

// attach has a template follow another one.
func (p *planner) attach(at, to *state, by *workv1alpha2.ResourceBinding) {
	if k := keyOf(to.template); p.changed[k] && evictedAndPreserved(p.bindings[k], by) {
		at.unknown = append(at.unknown, "whether it comes to a cluster from which what refers to it is being evicted, where it is preserved")
	}
	if len(to.either) > 0 {
		at.unknown = append(at.unknown, fmt.Sprintf("to which of the clusters %s it follows %s: its UID decides", strings.Join(to.either, ", "), keyOf(to.template)))
	}
	if at.binding == nil {
		at.binding = scope.BindingIn(at.template.GetNamespace()).New()
	}
	dependency.Follow(at.binding.(*workv1alpha2.ResourceBinding), by, by.Spec.Clusters)
	at.follows = append(at.follows, keyOf(to.template).String())
}

func (p *planner) cluster(name string) *clusterv1alpha1.Cluster {
	i, found := slices.BinarySearchFunc(p.Clusters, name, func(c *clusterv1alpha1.Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return p.Clusters[i]
}

// joined reports whether a cluster exists, and is not being removed.
func (p *planner) joined(name string) bool {
	c := p.cluster(name)
	return c != nil && c.DeletionTimestamp == nil
}

// deliveredBy returns the objects of Works by cluster.
func deliveredBy(works []*workv1alpha1.Work) map[key]map[string]*unstructured.Unstructured {
	out := map[key]map[string]*unstructured.Unstructured{}
	for _, w := range works {
		cluster, err := names.ClusterOfExecutionNamespace(w.Namespace)
		if err != nil {
			continue
		}
		for i := range w.Spec.Workload.Manifests {
			u := &unstructured.Unstructured{}
			if utiljson.Unmarshal(w.Spec.Workload.Manifests[i].Raw, &u.Object) != nil {
				continue
			}
			manifest.StripOwnership(u)
			k := keyOf(u)
			if out[k] == nil {
				out[k] = map[string]*unstructured.Unstructured{}
			}
			out[k][cluster] = u
		}
	}
	return out
}

// object returns what a cluster gets of a template.
func (p *planner) object(s *state, target *workv1alpha2.TargetCluster) (*unstructured.Unstructured, error) {
	if u := p.delivered[keyOf(s.template)][target.Name]; u != nil {
		return u, nil
	}
	cluster := p.cluster(target.Name)
	if cluster == nil {
		return nil, fmt.Errorf("cluster %s does not exist", target.Name)
	}
	revised, err := propagation.ObjectOf(s.template, s.binding.GetSpec(), s.targets, p.Interpreter).Revise(target)
	if err != nil {
		return nil, err
	}
	namespace := propagation.OverridingNamespace(s.binding, s.template)
	overrides := slices.DeleteFunc(slices.Clone(p.Overrides), func(o policyv1alpha1.OverridePolicyObject) bool {
		return o.GetNamespace() != "" && o.GetNamespace() != namespace
	})
	obj, _, err := override.Apply(revised, cluster, overrides)
	return obj, err
}

// released reports whether neither a policy, nor a controller, nor a template that refers to it has the template: what clusters have stays
// as it is.
func released(s *state) bool {
	return s.binding != nil && s.policy == nil && len(s.binding.GetSpec().RequiredBy) == 0 && s.binding.GetLabels()[workv1alpha2.BindingManagedByLabel] == ""
}

// preserved reports whether a cluster keeps what it has of a template that leaves it.
func preserved(s *state, cluster string) bool {
	return s.binding != nil && dependency.Preserves(s.binding, cluster)
}
