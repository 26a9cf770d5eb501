//go:build integration

package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// stableTimeout is how long the controllers may take until all that must hold does.
const stableTimeout = 2 * time.Minute

// planeSteps is the number of faults and changes of the history on an API server.
const planeSteps = 300

// faults is a random history on a plane.
type faults struct {
	*plane
	dice
	apps []string
	// changed are the applications whose policy, template or membership changed since all was stable.
	changed map[string]bool
	log     []string
}

// TestPlane_History checks the invariants of a random history of the real controllers on an API server.
func TestPlane_History(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := &faults{plane: newPlane(t), dice: newDice(seed), changed: map[string]bool{}}
			for i := range 4 {
				f.join(fmt.Sprintf("m%d", i+1))
			}
			for i := range 2 {
				f.must(f.client.Create(t.Context(), f.taintPolicy(fmt.Sprintf("policy%d", i))))
			}
			for i := range 4 {
				f.apps = append(f.apps, fmt.Sprintf("app%d", i))
				f.changed[f.apps[i]] = true
				f.deploy(f.apps[i], int32(1+f.IntN(5)), f.placement(), f.failover())
			}
			f.stable()
			for i := range planeSteps * factor(t) {
				f.log = append(f.log, f.event())
				if f.one(10) {
					f.stable()
				}
				if i%150 == 149 {
					f.stable()
					f.restart()
				}
			}
			f.checkTasksEnd()
		})
	}
}

// stable waits until all that must hold does, and checks what was deleted meanwhile.
func (f *faults) stable() {
	f.Helper()
	defer func() {
		if f.Failed() {
			f.Logf("after\n  %s", strings.Join(f.log[max(0, len(f.log)-40):], "\n  "))
		}
	}()
	testenv.Eventually(f.T, stableTimeout, f.check)
	f.observeAll()
	f.log = append(f.log, "stable")
	seen := f.watched.take()
	for _, text := range seen.wrong {
		f.Error(text)
	}
	for key := range seen.deleted {
		moved := slices.ContainsFunc(slices.Collect(maps.Keys(seen.tasks)), func(t [2]string) bool { return t[0] == key[0] })
		if !f.changed[key[0]] && !seen.tasks[key] && !seen.cancelled[key[0]] && (!moved || !f.movesWithTasks(key[0])) {
			f.Errorf("%s was deleted in %s without a reason; its targets were\n  %s", key[0], key[1], strings.Join(f.watched.of(key[0]), "\n  "))
		}
	}
	if f.Failed() {
		f.FailNow()
	}
	clear(f.changed)
}

// movesWithTasks reports whether a task also moves what is in other clusters.
func (f *faults) movesWithTasks(app string) bool {
	b, err := f.binding(f.Context(), app)
	f.must(err)
	s := b.Spec.Placement.ReplicaScheduling
	return len(b.Spec.Placement.ClusterAffinities) > 0 || s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceWeighted && s.WeightPreference == nil
}

// check returns what does not hold yet.
func (f *faults) check(ctx context.Context) error {
	clusters, policies := &clusterv1alpha1.ClusterList{}, &policyv1alpha1.ClusterTaintPolicyList{}
	if err := errors.Join(f.client.List(ctx, clusters), f.client.List(ctx, policies)); err != nil {
		return err
	}
	var taints []*policyv1alpha1.ClusterTaintPolicy
	for i := range policies.Items {
		taints = append(taints, &policies.Items[i])
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if c.DeletionTimestamp != nil {
			return fmt.Errorf("%s does not leave", c.Name)
		}
		if want, _ := clustercondition.Taints(c, taints, time.Now()); len(want) != len(c.Spec.Taints) {
			return fmt.Errorf("%s has taints %v, want %v", c.Name, c.Spec.Taints, want)
		}
	}
	var errs []error
	for _, app := range f.apps {
		errs = append(errs, f.checkApp(ctx, app, clusters.Items))
	}
	return errors.Join(errs...)
}

func (f *faults) checkApp(ctx context.Context, app string, clusters []clusterv1alpha1.Cluster) error {
	b, err := f.binding(ctx, app)
	if err != nil {
		return err
	}
	d := &appsv1.Deployment{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: app}, d); err != nil {
		return err
	}
	spec := &b.Spec
	scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
	if spec.Replicas != *d.Spec.Replicas || scheduled == nil {
		return fmt.Errorf("%s: the binding is not written or not scheduled", app)
	}
	for i := range clusters {
		verdict, err := eviction.Taint(eviction.TaintFacts{
			Now: time.Now(), ClusterName: clusters[i].Name, Cluster: &clusters[i], Binding: b, Enabled: true, PurgeMode: policyv1alpha1.PurgeModeGracefully,
		})
		if err == nil && verdict.Evict {
			return fmt.Errorf("%s is not evicted from %s", app, clusters[i].Name)
		}
	}
	return errors.Join(checkTargets(b, scheduled.Status), f.checkWorks(ctx, b))
}

// checkTargets checks the targets of a binding that is scheduled, and that its tasks were handled.
func checkTargets(b *workv1alpha2.ResourceBinding, scheduled metav1.ConditionStatus) error {
	spec := &b.Spec
	if scheduled == metav1.ConditionTrue {
		var sum int32
		for _, c := range spec.Clusters {
			sum += c.Replicas
		}
		divided := spec.Placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided
		if b.Status.SchedulerObservedGeneration != b.Generation || divided && spec.Replicas > 0 && sum != spec.Replicas {
			return fmt.Errorf("%s has %d of %d replicas, generation %d of %d", b.Name, sum, spec.Replicas, b.Status.SchedulerObservedGeneration, b.Generation)
		}
	}
	for i := range spec.GracefulEvictionTasks {
		task := &spec.GracefulEvictionTasks[i]
		if task.CreationTimestamp == nil || task.SuppressDeletion != nil && !*task.SuppressDeletion {
			return fmt.Errorf("%s: the task in %s is not handled", b.Name, task.FromCluster)
		}
	}
	return nil
}

// checkWorks compares the Works of a binding with its targets and tasks. Those of members that are offline stay until
// they are back, and hold up what waits for them.
func (f *faults) checkWorks(ctx context.Context, b *workv1alpha2.ResourceBinding) error {
	list := &workv1alpha1.WorkList{}
	if err := f.client.List(ctx, list, client.MatchingLabels{workv1alpha2.ResourceBindingPermanentIDLabel: b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]}); err != nil {
		return err
	}
	got, want := map[string]bool{}, map[string]bool{}
	blocked := false
	for i := range list.Items {
		cluster, _ := names.ClusterOfExecutionNamespace(list.Items[i].Namespace)
		if list.Items[i].DeletionTimestamp == nil {
			got[cluster] = true
		}
		blocked = blocked || !f.members.isOnline(cluster)
	}
	for _, c := range scope.Kept(scope.Targets(&b.Spec), b.Spec.GracefulEvictionTasks) {
		want[c.Name] = true
	}
	for cluster := range got {
		if !want[cluster] {
			return fmt.Errorf("%s has a Work in %s", b.Name, cluster)
		}
	}
	for _, c := range b.Spec.Clusters {
		if !blocked && !got[c.Name] {
			return fmt.Errorf("%s has no Work in %s", b.Name, c.Name)
		}
	}
	if len(b.Status.AggregatedStatus) != len(got) {
		return fmt.Errorf("%s has statuses of %d clusters, want %d", b.Name, len(b.Status.AggregatedStatus), len(got))
	}
	for i := range list.Items {
		if err := checkStatus(b, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkStatus checks that the status of a binding shows what a Work reports.
func checkStatus(b *workv1alpha2.ResourceBinding, work *workv1alpha1.Work) error {
	cluster, _ := names.ClusterOfExecutionNamespace(work.Namespace)
	if work.DeletionTimestamp != nil {
		return nil
	}
	i := slices.IndexFunc(b.Status.AggregatedStatus, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == cluster })
	if i < 0 {
		return fmt.Errorf("%s has no status of %s", b.Name, cluster)
	}
	item, applied := &b.Status.AggregatedStatus[i], meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.WorkApplied)
	if item.Applied != applied {
		return fmt.Errorf("%s is applied in %s: %t, but its status has %t", b.Name, cluster, applied, item.Applied)
	}
	if !applied {
		return nil
	}
	reported := &work.Status.ManifestStatuses[0]
	var want, have any
	if err := errors.Join(json.Unmarshal(reported.Status.Raw, &want), json.Unmarshal(item.Status.Raw, &have)); err != nil {
		return err
	}
	if string(item.Health) != string(reported.Health) || !equality.Semantic.DeepEqual(want, have) {
		return fmt.Errorf("%s is %s %v in %s, but its status has %s %v", b.Name, reported.Health, want, cluster, item.Health, have)
	}
	return nil
}

// checkTasksEnd checks that all tasks end but those that a user must release, once all members are online and healthy.
func (f *faults) checkTasksEnd() {
	f.Helper()
	for _, c := range f.clusters() {
		f.members.set(c, true)
		f.ready(c, metav1.ConditionTrue)
	}
	f.members.mu.Lock()
	clear(f.members.sick)
	f.members.mu.Unlock()
	f.log = append(f.log, "all members are online and healthy")
	testenv.Eventually(f.T, stableTimeout, func(ctx context.Context) error {
		for _, app := range f.apps {
			b, err := f.binding(ctx, app)
			if err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) {
				continue // tasks wait for their time
			}
			for _, task := range b.Spec.GracefulEvictionTasks {
				if !ptr.Deref(task.SuppressDeletion, false) {
					return fmt.Errorf("%s has a task in %s", app, task.FromCluster)
				}
			}
		}
		return nil
	})
}

func (f *faults) clusters() []string {
	list := &clusterv1alpha1.ClusterList{}
	f.must(f.client.List(f.Context(), list))
	var out []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out = append(out, list.Items[i].Name)
		}
	}
	return out
}

// event lets a user do something, or something fail.
func (f *faults) event() string {
	app := pick(f.dice, f.apps)
	cluster := pick(f.dice, f.clusters())
	switch n := f.IntN(16); {
	case n < 3:
		online := !f.members.isOnline(cluster)
		f.members.set(cluster, online)
		status := metav1.ConditionTrue
		if !online {
			status = pick(f.dice, []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown})
		}
		f.ready(cluster, status)
		return fmt.Sprintf("%s is Ready: %s", cluster, status)
	case n < 6:
		return f.taintByHand(cluster)
	case n < 8:
		return fmt.Sprintf("%s in %s is healthy: %t", app, cluster, f.members.flipHealth(cluster, app))
	case n < 10:
		f.changed[app] = true
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}}
		replicas := int32(f.IntN(9))
		f.change(d, func() { d.Spec.Replicas = &replicas })
		return fmt.Sprintf("scale %s to %d", app, replicas)
	case n < 12:
		f.changed[app] = true
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}}
		placement, failover := f.placement(), f.failover()
		f.change(p, func() { p.Spec.Placement, p.Spec.Failover = *placement, failover })
		return "another policy for " + app
	case n < 13:
		f.changed[app] = true
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app + "-deployment"}}
		f.change(b, func() { b.Spec.RescheduleTriggeredAt = new(metav1.Now()) })
		return "reschedule " + app
	case n < 14:
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app + "-deployment"}}
		f.change(b, func() {
			for i := range b.Spec.GracefulEvictionTasks {
				if task := &b.Spec.GracefulEvictionTasks[i]; task.SuppressDeletion != nil {
					task.SuppressDeletion = new(false)
				}
			}
		})
		return "release the tasks of " + app
	case n < 15:
		want := f.taintPolicy(fmt.Sprintf("policy%d", f.IntN(2)))
		p := &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: want.Name}}
		f.change(p, func() { p.Spec = want.Spec })
		return "another taint policy " + want.Name
	default:
		return f.membership(cluster)
	}
}

// ready writes the Ready condition, as the collector does.
func (p *plane) ready(cluster string, status metav1.ConditionStatus) {
	p.Helper()
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	p.changeStatus(c, func() {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: "R"})
	})
}

func (f *faults) taintByHand(cluster string) string {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	key := pick(f.dice, []string{"hand", "foot"})
	effect := pick(f.dice, []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule})
	text := ""
	f.change(c, func() {
		before := len(c.Spec.Taints)
		c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		if text = "untaint "; len(c.Spec.Taints) == before {
			text = fmt.Sprintf("taint %s ", effect)
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: effect, TimeAdded: new(metav1.Now())})
		}
	})
	return text + cluster
}

// membership lets a cluster leave, or one that left join again.
func (f *faults) membership(cluster string) string {
	list := &clusterv1alpha1.ClusterList{}
	f.must(f.client.List(f.Context(), list))
	for i := range 4 {
		name := fmt.Sprintf("m%d", i+1)
		if !slices.ContainsFunc(list.Items, func(c clusterv1alpha1.Cluster) bool { return c.Name == name }) {
			f.join(name)
			return "join " + name
		}
	}
	if len(f.clusters()) < 3 {
		return "too few clusters to remove one"
	}
	for _, app := range f.apps {
		f.changed[app] = true
	}
	f.members.set(cluster, true) // its Works are released
	f.must(client.IgnoreNotFound(f.client.Delete(f.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})))
	return "unjoin " + cluster
}
