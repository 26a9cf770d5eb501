package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	plugins "github.com/karmada-toolkit/karmada/plugins/scheduler"
)

// timeout is the time of an eviction task without a grace period.
const timeout = 10 * time.Minute

// model is a federation in which every controller is a call of its pure decision.
type model struct {
	testing.TB
	dice
	now      time.Time
	scope    *scope.Binding
	profile  *core.Profile
	clusters map[string]*clusterv1alpha1.Cluster
	policies []*policyv1alpha1.ClusterTaintPolicy
	apps     []*app
	// offline are the members that cannot be reached.
	offline map[string]bool
	// log is the history, for a failure.
	log []string
}

// app is a binding, its objects in the members, and what controllers hold in memory about it.
type app struct {
	workv1alpha2.Binding
	// objects are the replicas of the object in each member.
	objects map[string]int32
	// sick are the members in which the application is not healthy.
	sick map[string]bool
	// changed is set by what allows the scheduler to take clusters away: a policy, a template, a trigger.
	changed bool
	// unhealthySince is the memory of the application failover controller.
	unhealthySince map[string]time.Time
}

func newModel(t testing.TB, s *scope.Binding, seed uint64) *model {
	t.Helper()
	enabled, err := plugins.Registry(false).New([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	profile, err := core.NewProfile(enabled...)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{
		TB: t, dice: newDice(seed), now: time.Unix(1_000_000, 0), scope: s, profile: profile,
		clusters: map[string]*clusterv1alpha1.Cluster{}, offline: map[string]bool{},
	}
	for i := range 2 + m.IntN(4) {
		m.join(fmt.Sprintf("m%d", i+1))
	}
	for i := range 1 + m.IntN(2) {
		m.policies = append(m.policies, m.taintPolicy(fmt.Sprintf("policy%d", i)))
	}
	for i := range 1 + m.IntN(4) {
		m.apps = append(m.apps, m.app(fmt.Sprintf("app%d", i)))
	}
	return m
}

func (m *model) join(name string) {
	pods := int64(1000)
	if m.one(3) {
		pods = 6
	}
	m.clusters[name] = &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: clusterv1alpha1.ClusterStatus{
			APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}},
			Conditions:     []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(1000, resource.DecimalSI), corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
			}},
		},
	}
}

func (m *model) app(name string) *app {
	b := m.scope.New()
	b.SetName(name)
	if m.scope.Namespaced {
		b.SetNamespace("default")
	}
	b.SetGeneration(1)
	*b.GetSpec() = workv1alpha2.ResourceBindingSpec{
		Resource:            workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: name, UID: "uid"},
		Replicas:            int32(1 + m.IntN(5)),
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		PropagateDeps:       true,
		Placement:           m.placement(),
		Failover:            m.failover(),
	}
	return &app{Binding: b, objects: map[string]int32{}, sick: map[string]bool{}}
}

// names returns the names of the clusters in order.
func (m *model) names() []string { return slices.Sorted(maps.Keys(m.clusters)) }

// step is one decision of one controller.
type step struct {
	name string
	app  *app
	// do makes the decision and writes its result. It reports whether it wrote anything.
	do func() bool
}

// steps returns all decisions that the controllers can make now.
func (m *model) steps() []step {
	var out []step
	for _, name := range m.names() {
		out = append(out,
			step{"taint policies of " + name, nil, func() bool { return m.taintCluster(name) }},
			step{"deletion of " + name, nil, func() bool { return m.leave(name) }},
		)
	}
	for _, a := range m.apps {
		for _, name := range m.names() {
			out = append(out, step{"taint manager on " + name, a, func() bool { return m.taintManager(a, name) }})
		}
		out = append(out,
			step{"scheduler", a, func() bool { return m.schedule(a) }},
			step{"graceful eviction", a, func() bool { return m.graceful(a) }},
			step{"application failover", a, func() bool { return m.applicationFailover(a) }},
			step{"works", a, func() bool { return m.deliver(a) }},
			step{"status", a, func() bool { return m.collect(a) }},
		)
	}
	return out
}

func (m *model) taintCluster(name string) bool {
	c := m.clusters[name]
	taints, changed := clustercondition.Taints(c, m.policies, m.now)
	if !changed || equality.Semantic.DeepEqual(taints, c.Spec.Taints) {
		return false
	}
	c.Spec.Taints = taints
	return true
}

// leave removes a cluster that is being deleted once no binding targets it.
func (m *model) leave(name string) bool {
	if m.clusters[name].DeletionTimestamp == nil {
		return false
	}
	for _, a := range m.apps {
		if target(a, name) != nil {
			return false
		}
	}
	delete(m.clusters, name)
	delete(m.offline, name)
	for _, a := range m.apps {
		delete(a.objects, name)
		a.dropStatus(name)
	}
	return true
}

func (m *model) taintManager(a *app, cluster string) bool {
	verdict, err := eviction.Taint(eviction.TaintFacts{
		Now: m.now, ClusterName: cluster, Cluster: m.clusters[cluster], Binding: a.Binding,
		Enabled: true, PurgeMode: policyv1alpha1.PurgeModeGracefully, PreserveState: true,
	})
	if err != nil || !verdict.Evict {
		return false
	}
	return a.write(verdict.Spec)
}

func (m *model) applicationFailover(a *app) bool {
	verdict, err := eviction.Application(eviction.ApplicationFacts{
		Now: m.now, Binding: a.Binding, Producer: "application", HasHealth: true, NeedsDependencies: m.scope.Namespaced,
		GracefulEviction: true, PreserveState: true, UnhealthySince: a.unhealthySince,
	})
	a.unhealthySince = verdict.UnhealthySince
	return err == nil && verdict.Spec != nil && a.write(verdict.Spec)
}

func (m *model) graceful(a *app) bool {
	if len(a.GetSpec().GracefulEvictionTasks) == 0 {
		return false
	}
	verdict := eviction.Graceful(eviction.GracefulFacts{
		Now: m.now, Timeout: timeout, Generation: a.GetGeneration(), Spec: a.GetSpec(), Status: a.GetStatus(),
	})
	if !verdict.Changed {
		return false
	}
	spec := a.GetSpec().DeepCopy()
	spec.GracefulEvictionTasks = verdict.Keep
	return a.write(spec)
}

// schedule decides and commits as the scheduler does.
func (m *model) schedule(a *app) bool {
	snapshot := m.snapshot()
	need, err := core.NeedsScheduling(a.Binding, core.NeedFacts{Snapshot: snapshot})
	if err != nil {
		m.Fatal(err)
	}
	status := a.GetStatus()
	if !need.Due() {
		return m.confirm(a)
	}
	decision, err := core.Schedule(snapshot, &core.Request{
		Binding: framework.Binding{Namespace: a.GetNamespace(), Name: a.GetName(), Spec: a.GetSpec(), Status: status, Now: m.now}, Profile: m.profile,
	})
	if err != nil && core.ClassOf(err) != core.NoClusterFit {
		return m.scheduled(a, metav1.ConditionFalse)
	}
	wrote := m.target(a, decision.Clusters)
	if err != nil {
		return m.scheduled(a, metav1.ConditionFalse) || wrote
	}
	if m.scheduled(a, metav1.ConditionTrue) || wrote || core.Rescheduling(a.GetSpec(), status) {
		status.LastScheduledTime, wrote = &metav1.Time{Time: m.now}, true
	}
	status.SchedulerObservedAffinityName = decision.AffinityName
	a.changed = false
	return m.confirm(a) || wrote
}

func (m *model) snapshot() *framework.Snapshot {
	facts := framework.Facts{}
	var all []*framework.Cluster
	for _, name := range m.names() {
		all = append(all, facts.Cluster(m.clusters[name].DeepCopy()))
	}
	return framework.NewSnapshot(all)
}

// target writes the targets and the placement that they come from.
func (m *model) target(a *app, targets []workv1alpha2.TargetCluster) bool {
	applied, err := json.Marshal(a.GetSpec().Placement)
	if err != nil {
		m.Fatal(err)
	}
	wrote := a.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation] != string(applied)
	a.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: string(applied)})
	if sorted(targets) != sorted(a.GetSpec().Clusters) {
		spec := a.GetSpec().DeepCopy()
		spec.Clusters = slices.Clone(targets)
		wrote = a.write(spec)
	}
	return wrote
}

func sorted(targets []workv1alpha2.TargetCluster) string {
	out := make([]string, len(targets))
	for i, c := range targets {
		out[i] = fmt.Sprintf("%s:%d", c.Name, c.Replicas)
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

func (m *model) scheduled(a *app, is metav1.ConditionStatus) bool {
	return meta.SetStatusCondition(&a.GetStatus().Conditions, metav1.Condition{Type: workv1alpha2.Scheduled, Status: is, Reason: "R"})
}

// confirm records that the scheduler has done what this generation needs.
func (m *model) confirm(a *app) bool {
	wrote := a.GetStatus().SchedulerObservedGeneration != a.GetGeneration()
	a.GetStatus().SchedulerObservedGeneration = a.GetGeneration()
	return wrote
}

// deliver writes and deletes objects in members as the binding and execution controllers do. A member that is offline
// keeps what it has.
func (m *model) deliver(a *app) bool {
	wrote, blocked := false, false
	targets := scope.Targets(a.GetSpec())
	kept := m.kept(a)
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		if kept[name] || m.offline[name] {
			continue
		}
		delete(a.objects, name)
		a.dropStatus(name)
		wrote = true
	}
	for _, task := range a.GetSpec().GracefulEvictionTasks {
		_, there := a.objects[task.FromCluster]
		blocked = blocked || there && task.PurgeMode == policyv1alpha1.PurgeModeDirectly && target(a, task.FromCluster) == nil
	}
	for _, c := range targets {
		if have, there := a.objects[c.Name]; !blocked && !m.offline[c.Name] && m.clusters[c.Name] != nil && (!there || have != c.Replicas) {
			a.objects[c.Name], wrote = c.Replicas, true
		}
	}
	return wrote
}

// kept returns the clusters in which the binding has an object, or will.
func (m *model) kept(a *app) map[string]bool {
	out := map[string]bool{}
	for _, c := range scope.Kept(scope.Targets(a.GetSpec()), a.GetSpec().GracefulEvictionTasks) {
		out[c.Name] = true
	}
	return out
}

// collect writes the health of the objects into the status. That of members that are offline stays.
func (m *model) collect(a *app) bool {
	wrote := false
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		if m.offline[name] {
			continue
		}
		item := workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: true, Health: workv1alpha2.ResourceHealthy,
			Status: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":%[1]d,"readyReplicas":%[1]d}`, a.objects[name])}}
		if a.sick[name] {
			item.Health = workv1alpha2.ResourceUnhealthy
		}
		items := &a.GetStatus().AggregatedStatus
		i := slices.IndexFunc(*items, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == name })
		switch {
		case i < 0:
			*items, wrote = append(*items, item), true
		case !equality.Semantic.DeepEqual((*items)[i], item):
			(*items)[i], wrote = item, true
		}
	}
	return wrote
}

// write replaces the spec, as the API server does: the generation follows.
func (a *app) write(spec *workv1alpha2.ResourceBindingSpec) bool {
	if equality.Semantic.DeepEqual(a.GetSpec(), spec) {
		return false
	}
	*a.GetSpec() = *spec
	a.SetGeneration(a.GetGeneration() + 1)
	return true
}

func (a *app) dropStatus(cluster string) {
	status := a.GetStatus()
	status.AggregatedStatus = slices.DeleteFunc(status.AggregatedStatus, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == cluster })
}

func target(a *app, cluster string) *workv1alpha2.TargetCluster {
	for i := range a.GetSpec().Clusters {
		if a.GetSpec().Clusters[i].Name == cluster {
			return &a.GetSpec().Clusters[i]
		}
	}
	return nil
}
