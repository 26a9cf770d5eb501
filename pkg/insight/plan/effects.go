package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// SchemaVersion is the version of the fields of Effects. It changes when a field is removed or gets another meaning.
const SchemaVersion = "v1"

// Effects are what changes would do.
type Effects struct {
	SchemaVersion string `json:"schemaVersion"`
	// Objects are the templates that change somewhere, or of which something is unknown, by namespace, kind and name.
	Objects []Object `json:"objects"`
	// Notes are what else is to be known.
	Notes []string `json:"notes,omitempty"`
	// NotRead are what could not be read, and is not planned.
	NotRead []string `json:"notRead,omitempty"`
	Summary Summary  `json:"summary"`
}

// Changes reports whether anything changes, or may.
func (e *Effects) Changes() bool { return len(e.Objects) > 0 }

// Summary counts effects.
type Summary struct {
	// Objects and Clusters are how many change.
	Objects  int `json:"objects"`
	Clusters int `json:"clusters"`
	// Create, Update and Delete are the objects that change in clusters.
	Create int `json:"create"`
	Update int `json:"update"`
	Delete int `json:"delete"`
	// Keep are the objects that stay in clusters and leave the control of the federation, or are deleted when a lost cluster is back.
	Keep int `json:"keep"`
	// Refuse are the objects that clusters would not change.
	Refuse int `json:"refuse"`
	// Unfit are the templates whose replicas are not all assigned, and Unknown those of which something cannot be computed.
	Unfit   int `json:"unfit"`
	Unknown int `json:"unknown"`
}

// Object is what becomes of a template.
type Object struct {
	why.Object `json:",inline"`
	// PolicyBefore and PolicyAfter have it; empty for none.
	PolicyBefore string `json:"policyBefore,omitempty"`
	PolicyAfter  string `json:"policyAfter,omitempty"`
	// ReplicasBefore and ReplicasAfter are those of the template.
	ReplicasBefore int32 `json:"replicasBefore,omitempty"`
	ReplicasAfter  int32 `json:"replicasAfter,omitempty"`
	// Follows are the templates that it follows as a dependency.
	Follows  []string  `json:"follows,omitempty"`
	Clusters []Cluster `json:"clusters,omitempty"`
	// Touches are the autoscalers that scale it, and the Services that select its pods or span clusters under its name.
	Touches []string `json:"touches,omitempty"`
	// After is when the last eviction begins, in seconds from now.
	After float64 `json:"after,omitempty"`
	// Unfit is why replicas are not assigned.
	Unfit string `json:"unfit,omitempty"`
	// Unknown are what cannot be computed.
	Unknown []string `json:"unknown,omitempty"`
}

// Action is what happens to an object in a cluster.
type Action string

// The actions.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionDelete Action = "delete"
	// ActionKeep: it leaves the control of the federation, and stays in the cluster.
	ActionKeep Action = "keep"
	// ActionRefuse: the cluster refuses to change it, and it stays as it is.
	ActionRefuse Action = "refuse"
)

// Cluster is what happens to an object in a cluster.
type Cluster struct {
	Name   string `json:"name"`
	Action Action `json:"action"`
	// Before and After are its replicas; 0 for kinds without.
	Before int32 `json:"before"`
	After  int32 `json:"after"`
	// Fields are paths that change, at most ten.
	Fields []string `json:"fields,omitempty"`
	// Reason is why it is kept, or deleted.
	Reason string `json:"reason,omitempty"`

	// old and next return the objects as they are delivered; nil for none.
	old, next func() (*unstructured.Unstructured, error)
}

// Objects returns the object as it is delivered before and after; nil where it is not. The error is that an override, or the interpreter
// of the kind, fails.
func (c *Cluster) Objects() (before, after *unstructured.Unstructured, err error) {
	if c.old != nil {
		before, err = c.old()
	}
	if c.next != nil && err == nil {
		after, err = c.next()
	}
	return before, after, err
}

// maxFields is the number of paths of an object that are listed.
const maxFields = 10

// maxNamed is the number of objects that a note names.
const maxNamed = 5

// Plan returns what changes, in their order, would do to a federation. The error is that of the first change that cannot be made.
func Plan(w *World, changes []Change) (*Effects, error) {
	after := w.copied()
	for _, change := range changes {
		if err := change(after); err != nil {
			return nil, err
		}
	}
	old, err := newPlanner(w.copied(), false)
	if err != nil {
		return nil, err
	}
	next, err := newPlanner(after, true)
	if err != nil {
		return nil, err
	}
	c := &comparison{old: old, next: next, out: &Effects{SchemaVersion: SchemaVersion, Objects: []Object{}}, clusters: map[string]bool{}}
	before, states := old.states(), next.states()
	c.compare(before, states)
	for _, k := range sortedKeys(states) {
		if s := states[k]; before[k] != nil && before[k].synced != nil && s.synced == nil && s.policy == nil {
			after.remarks = append(after.remarks, fmt.Sprintf("clusters keep %s as it is: it is not created in clusters any more", k))
			delete(after.changed, k)
		}
	}
	c.out.Notes = append(after.notes(), unselected(after, states)...)
	for _, g := range after.Gaps {
		c.out.NotRead = append(c.out.NotRead, g.String())
	}
	for _, k := range sortedKeys(states) {
		if s := states[k]; s.kept && after.changed[k] {
			c.out.Notes = append(c.out.Notes, fmt.Sprintf("%s has %s and does not select it any more: its changes do not reach the clusters", keyOfPolicy(s.policy), k))
		}
	}
	return c.out, nil
}

// unselected returns which templates a change wrote that no policy selects.
func unselected(w *World, states map[key]*state) []string {
	var names []string
	for _, k := range sortedKeys(states) {
		if s := states[k]; w.changed[k] && s.policy == nil && s.binding == nil {
			names = append(names, k.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"no policy selects, and no cluster gets: " + several(names)}
}

// comparison compares the states before and after.
type comparison struct {
	old, next *planner
	out       *Effects
	clusters  map[string]bool
}

func (c *comparison) compare(before, after map[key]*state) {
	all := map[key]*state{}
	for _, states := range []map[key]*state{before, after} {
		maps.Copy(all, states)
	}
	keys := sortedKeys(all)
	objects := make([]Object, len(keys))
	for i, k := range keys {
		objects[i] = c.object(all[k].template, before[k], after[k])
	}
	keepNamespaces(objects, c.leftBehind(keys, before), withClaims(all))
	for i, k := range keys {
		o := objects[i]
		changes := slices.ContainsFunc(o.Clusters, func(c Cluster) bool { return c.Action != ActionKeep && c.Action != ActionRefuse })
		if len(o.Clusters) == 0 && len(o.Unknown) == 0 && o.PolicyBefore == o.PolicyAfter && (o.Unfit == "" || !c.meant(k, after[k])) {
			continue
		}
		if world := c.next.World; changes {
			if after[k] == nil {
				world = c.old.World
			}
			o.Touches = world.touches(k)
		}
		c.out.Objects = append(c.out.Objects, o)
		c.count(&o, changes)
	}
	c.out.Summary.Clusters = len(c.clusters)
}

// withClaims returns the StatefulSets whose claims stay when they are deleted.
func withClaims(states map[key]*state) map[string]bool {
	out := map[string]bool{}
	for k, s := range states {
		goes, _, _ := unstructured.NestedString(s.template.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if _, found, _ := unstructured.NestedSlice(s.template.Object, "spec", "volumeClaimTemplates"); found && goes != "Delete" && k.Kind == "StatefulSet" {
			out[k.namespace+"/"+k.name] = true
		}
	}
	return out
}

// leftBehind returns an object, by namespace and cluster, that a binding has left, or is leaving, and that is preserved there.
func (c *comparison) leftBehind(keys []key, before map[key]*state) map[[2]string]string {
	out := map[[2]string]string{}
	for _, k := range keys {
		b := c.old.bindings[k]
		if b == nil || k.namespace == "" {
			continue
		}
		spec, left := b.GetSpec(), sets.New[string]()
		for i := range spec.GracefulEvictionTasks {
			left.Insert(spec.GracefulEvictionTasks[i].FromCluster)
		}
		for i := range spec.RequiredBy { // what refers to it is being evicted where it is not a target any more
			left = left.Union(scope.Names(spec.RequiredBy[i].Clusters))
		}
		for _, cluster := range c.old.Clusters {
			// Without a policy that preserves it, it is preserved only where it has been.
			was := left.Has(cluster.Name) || !ptr.Deref(spec.PreserveResourcesOnDeletion, false)
			if was && target(before[k], cluster.Name) == nil && dependency.Preserves(b, cluster.Name) {
				out[[2]string{k.namespace, cluster.Name}] = k.String()
			}
		}
	}
	return out
}

// keepNamespaces keeps namespaces in clusters in which objects stay: those that are there already, those that a change leaves there, and the
// storage of StatefulSets with claims.
func keepNamespaces(objects []Object, stay map[[2]string]string, claims map[string]bool) {
	for i := range objects {
		o := &objects[i]
		for j := range o.Clusters {
			at, c := [2]string{o.Namespace, o.Clusters[j].Name}, &o.Clusters[j]
			switch {
			case c.Action == ActionKeep && stay[at] == "":
				stay[at] = o.Object.String()
			case o.Kind == "StatefulSet" && c.Action == ActionDelete && c.Before > 0 && claims[o.Namespace+"/"+o.Name]:
				stay[at] = "the storage of " + o.Object.String()
			}
		}
	}
	for i := range objects {
		for j := range objects[i].Clusters {
			c := &objects[i].Clusters[j]
			if by := stay[[2]string{objects[i].Name, c.Name}]; objects[i].Kind == namespaces.Kind && objects[i].APIVersion == "v1" && c.Action == ActionDelete && by != "" {
				c.Action, c.Reason = ActionKeep, "it has "+by+", which stays"
			}
		}
	}
}

// meant reports whether a change is about a template, or the policy that has it.
func (c *comparison) meant(k key, after *state) bool {
	return c.next.changed[k] || after != nil && after.policy != nil && c.next.changed[keyOfPolicy(after.policy)]
}

func (c *comparison) count(o *Object, changes bool) {
	sum := &c.out.Summary
	if changes {
		sum.Objects++
	}
	for _, cluster := range o.Clusters {
		switch cluster.Action {
		case ActionCreate:
			sum.Create++
		case ActionUpdate:
			sum.Update++
		case ActionDelete:
			sum.Delete++
		case ActionKeep:
			sum.Keep++
			continue
		case ActionRefuse:
			sum.Refuse++
			continue
		}
		c.clusters[cluster.Name] = true
	}
	if o.Unfit != "" {
		sum.Unfit++
	}
	if len(o.Unknown) > 0 {
		sum.Unknown++
	}
}

// object compares the states of a template; nil where it does not exist.
func (c *comparison) object(t *unstructured.Unstructured, before, after *state) Object {
	o := Object{Object: why.Object{APIVersion: t.GetAPIVersion(), Kind: t.GetKind(), Namespace: t.GetNamespace(), Name: t.GetName()}}
	if before != nil {
		o.PolicyBefore, o.ReplicasBefore = describe(before)
	}
	leaving := before
	if after != nil {
		o.PolicyAfter, o.ReplicasAfter = describe(after)
		o.Follows, o.Unfit, o.Unknown, o.After = after.follows, after.unfit, after.unknown, after.after.Seconds()
		leaving = after
	}
	if b := c.old.bindings[keyOf(t)]; b != nil && before != nil && after != nil && len(b.GetSpec().GracefulEvictionTasks) > 0 {
		if from := b.GetSpec().GracefulEvictionTasks[0].FromCluster; preserved(before, from) != preserved(after, from) {
			o.Unknown = append(o.Unknown, "whether it stays in cluster "+from+", from which it is being evicted: what its policy preserves changes")
		}
	}
	if before == nil && c.next.unread[keyOf(t)] {
		o.PolicyAfter, o.Unknown = "", append(o.Unknown, "whether it exists: you may not read it")
		return o
	}
	if other := c.successor(before); after == nil && other != nil {
		o.Unknown = append(o.Unknown, fmt.Sprintf("whether it stays in its clusters: %s may take it over before it is deleted", keyOfPolicy(other)))
	}
	for _, name := range clusterNames(before, after) {
		if cluster, changes := c.cluster(name, before, after, leaving, &o); changes {
			o.Clusters = append(o.Clusters, cluster)
		}
	}
	return o
}

// successor returns the policy that takes a template over when its policy is deleted, and preserves otherwise; nil for none. If both are deleted, in
// which order is not known.
func (c *comparison) successor(before *state) policyv1alpha1.Policy {
	if before == nil || before.policy == nil || c.next.policies[keyOfPolicy(before.policy)] != nil {
		return nil
	}
	preserves := func(p policyv1alpha1.Policy) bool {
		return ptr.Deref(p.PropagationSpec().PreserveResourcesOnDeletion, false)
	}
	if other := c.next.bestOf(before.template); other != nil && preserves(other) != preserves(before.policy) {
		return other
	}
	return nil
}

// cluster compares what a cluster has of a template.
func (c *comparison) cluster(name string, before, after, leaving *state, o *Object) (Cluster, bool) {
	out := Cluster{Name: name}
	if c.same(name, before, after) {
		return out, false
	}
	if c.next.lost[name] {
		out.Reason = "the cluster is lost: it is done when the cluster is back"
	}
	was, is := target(before, name), target(after, name)
	if was != nil {
		out.Before, out.old = replicasOf(before, was), func() (*unstructured.Unstructured, error) { return c.old.object(before, was) }
	}
	if is != nil {
		out.After, out.next = replicasOf(after, is), func() (*unstructured.Unstructured, error) { return c.next.object(after, is) }
	}
	switch {
	case was == nil:
		out.Action = ActionCreate
		c.create(&out, o)
	case c.stays(name, before, after, is != nil):
		return out, false
	case is == nil:
		c.remove(&out, before, after, leaving, o)
	default:
		out.Action = ActionUpdate
		if !c.update(&out, before, after, o) {
			return out, false
		}
	}
	if after != nil && after.binding != nil && scope.DispatchingSuspended(after.binding.GetSpec().Suspension, name) {
		out.Action, out.Reason = ActionKeep, "dispatching is suspended"
	}
	return out, true
}

// stays reports whether a cluster keeps what it has as it is: a namespace that is not created any more, what no policy has, and what a policy
// keeps that does not select it.
func (c *comparison) stays(name string, before, after *state, wanted bool) bool {
	if !wanted {
		return after != nil && before.synced[name] && c.next.joined(name)
	}
	return released(after) && !after.synced[name] || after.kept && !c.rendered(before, after)
}

// remove finds out what becomes of an object that leaves a cluster.
func (c *comparison) remove(out *Cluster, before, after, leaving *state, o *Object) {
	out.Action, out.Reason = c.removal(out.Name, after, leaving)
	if old, err := c.overridden(c.old, out.old); err == nil {
		out.Before = replicasIn(old, out.Before)
	}
	if refusal := refused(before, out.Name); out.Action == ActionDelete && refusal != "" {
		o.Unknown = append(o.Unknown, fmt.Sprintf("whether cluster %s has it, and which version of it, which it does not apply now: %s", out.Name, refusal))
	}
}

// create finds the replicas of a new object, which overrides may set, and whether these can be applied.
func (c *comparison) create(out *Cluster, o *Object) {
	next, err := c.overridden(c.next, out.next)
	if err != nil {
		o.Unknown = append(o.Unknown, fmt.Sprintf("what cluster %s gets: %v", out.Name, err))
	}
	out.After = replicasIn(next, out.After)
}

// overridden returns an object where there are overrides; nil where there are none.
func (c *comparison) overridden(in *planner, object func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if len(in.Overrides) == 0 {
		return nil, nil
	}
	return object()
}

// update finds the fields of an object that change in a cluster, and reports whether there are any.
func (c *comparison) update(out *Cluster, was, after *state, o *Object) bool {
	if c.unread(out.Name, was) {
		o.Unknown = append(o.Unknown, fmt.Sprintf("what changes in cluster %s: you may not read what was delivered there last", out.Name))
		return false
	}
	before, next, err := out.Objects()
	if err != nil {
		o.Unknown = append(o.Unknown, fmt.Sprintf("what changes in cluster %s: %v", out.Name, err))
		return false
	}
	if c.old.delivered[keyOf(after.template)] != nil { // without what refers to the policy, as that is
		next = next.DeepCopy()
		manifest.StripOwnership(next)
	}
	hashed, written := false, c.next.changed[keyOf(after.template)] || !slices.Equal(c.old.Overrides, c.next.Overrides)
	for _, path := range manifest.Differences(before, next, maxFields) {
		if c.next.Hashed && written && isData(next, path[0]) {
			hashed = true
			continue
		}
		out.Fields = append(out.Fields, path.String())
	}
	out.Before, out.After = replicasIn(before, out.Before), replicasIn(next, out.After) // also those that an override sets, or a policy keeps
	out.refuse(manifest.Immutable(before, next))
	if hashed {
		o.Unknown = append(o.Unknown, fmt.Sprintf("whether its data changes in cluster %s: the snapshot has hashes of it", out.Name))
	}
	if len(out.Fields) > 1 || hashed { // it changes with all others
		out.Fields = slices.DeleteFunc(out.Fields, func(f string) bool { return f == "metadata.annotations."+corev1.LastAppliedConfigAnnotation })
	}
	other := was.binding.GetSpec().ConflictResolution != after.binding.GetSpec().ConflictResolution
	if refusal := refused(was, out.Name); (other || len(out.Fields) > 0) && refusal != "" {
		o.Unknown = append(o.Unknown, fmt.Sprintf("whether cluster %s applies it, which it does not do now: %s", out.Name, refusal))
	}
	return len(out.Fields) > 0
}

// refuse has the cluster refuse the change of an immutable field; nil for none.
func (c *Cluster) refuse(field manifest.Path) {
	if field != nil {
		c.Action, c.After, c.Reason = ActionRefuse, c.Before, field.String()+" cannot be changed; delete the object there to have it made anew"
	}
}

func isData(u *unstructured.Unstructured, field string) bool {
	return u.GetKind() == "Secret" && (field == "data" || field == "stringData")
}

// refused returns why a cluster does not apply an object now; empty if it does, or if that is not known.
func refused(s *state, cluster string) string {
	for _, item := range s.binding.GetStatus().AggregatedStatus {
		if item.ClusterName == cluster && !item.Applied {
			return item.AppliedMessage
		}
	}
	return ""
}

// rendered reports whether the objects of a binding are rendered again, whatever becomes of its template: it gets other targets, or what
// overrides and interprets it changes.
func (c *comparison) rendered(before, after *state) bool {
	return !scope.SameTargets(before.targets, after.targets) || !slices.Equal(c.old.Overrides, c.next.Overrides) || !slices.Equal(c.old.Customizations, c.next.Customizations) ||
		slices.ContainsFunc(after.targets, func(t workv1alpha2.TargetCluster) bool {
			was, is := c.old.cluster(t.Name), c.next.cluster(t.Name)
			return was != nil && is != nil && override.SelectsOtherwise(was, is)
		})
}

// unread reports whether a cluster has what was delivered to it of a template before its policy left it, and that may not be read.
func (c *comparison) unread(cluster string, was *state) bool {
	return was.binding != nil && (was.kept || scope.Released(was.binding)) && c.old.delivered[keyOf(was.template)][cluster] == nil && c.old.Lacks(snapshot.WorkIn(cluster))
}

// same reports whether all is as it was that decides what a cluster gets of a template.
func (c *comparison) same(name string, before, after *state) bool {
	return before != nil && after != nil && before.template == after.template && (released(after) || after.kept || !c.unread(name, before)) && c.old.delivered[keyOf(before.template)] == nil && c.old.cluster(name) == c.next.cluster(name) &&
		slices.Equal(c.old.Overrides, c.next.Overrides) && slices.Equal(c.old.Customizations, c.next.Customizations) && scope.SameTargets(before.targets, after.targets)
}

// removal returns what happens in a cluster that a template leaves, and why.
func (c *comparison) removal(name string, after, leaving *state) (Action, string) {
	action, reason := c.deletion(name, after, leaving)
	if action == ActionDelete && leaving.template.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Namespace") {
		reason = strings.TrimPrefix(reason+"; it stays with what is preserved, or was not made by the control plane, in it", "; ")
	}
	return action, reason
}

func (c *comparison) deletion(name string, after, leaving *state) (Action, string) {
	switch {
	case preserved(leaving, name):
		if spec := leaving.binding.GetSpec(); leaving.policy == nil && (len(spec.RequiredBy) > 0 || spec.PreserveResourcesOnDeletion == nil) {
			return ActionKeep, "what requires it is preserved"
		}
		return ActionKeep, "its policy preserves it"
	case c.next.lost[name]:
		return ActionKeep, "the cluster is lost: it is deleted there when the cluster is back"
	case after == nil:
		return ActionDelete, "the template is deleted"
	}
	if !c.next.joined(name) {
		return ActionDelete, "the cluster is removed"
	}
	return ActionDelete, after.evicted[name]
}

// describe returns the policy of a template, and its replicas.
func describe(s *state) (holder string, replicas int32) {
	if s.policy != nil {
		holder = keyOfPolicy(s.policy).String()
	}
	if s.binding != nil {
		replicas = s.binding.GetSpec().Replicas
	}
	return holder, replicas
}

// replicasOf returns those of a target; what is not divided has those of the template, if any.
func replicasOf(s *state, t *workv1alpha2.TargetCluster) int32 {
	if !s.binding.GetSpec().IsWorkload() {
		return replicasIn(s.template, 0)
	}
	return t.Replicas
}

// replicasIn returns spec.replicas of an object, or otherwise if there is no object or it has none.
func replicasIn(u *unstructured.Unstructured, otherwise int32) int32 {
	if u == nil {
		return otherwise
	}
	if n, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas"); found && err == nil {
		return int32(n)
	}
	return otherwise
}

func target(s *state, cluster string) *workv1alpha2.TargetCluster {
	if s == nil {
		return nil
	}
	for i := range s.targets {
		if s.targets[i].Name == cluster {
			return &s.targets[i]
		}
	}
	return nil
}

// clusterNames returns the clusters of states.
func clusterNames(states ...*state) []string {
	var out []string
	for _, s := range states {
		if s == nil {
			continue
		}
		for i := range s.targets {
			out = append(out, s.targets[i].Name)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}
