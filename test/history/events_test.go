package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// dice throws what users do and what fails.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 13))} }

// one reports true once in so many throws.
func (d dice) one(in int) bool { return d.IntN(in) == 0 }

func pick[T any](d dice, of []T) T { return of[d.IntN(len(of))] }

func (d dice) affinity() policyv1alpha1.ClusterAffinity {
	a := policyv1alpha1.ClusterAffinity{}
	if d.one(3) {
		a.ClusterNames = []string{fmt.Sprintf("m%d", 1+d.IntN(2)), fmt.Sprintf("m%d", 3+d.IntN(3))}
	}
	return a
}

func (d dice) placement() *policyv1alpha1.Placement {
	p := &policyv1alpha1.Placement{}
	if d.one(3) {
		p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "first", ClusterAffinity: d.affinity()}, {AffinityName: "second", ClusterAffinity: d.affinity()}}
	} else {
		a := d.affinity()
		p.ClusterAffinity = &a
	}
	strategy := &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}
	p.ReplicaScheduling = strategy
	switch d.IntN(5) {
	case 0:
		strategy.ReplicaSchedulingType = policyv1alpha1.ReplicaSchedulingTypeDuplicated
	case 1:
		strategy.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceWeighted
	case 2:
		strategy.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceWeighted
		strategy.WeightPreference = &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}
	default:
		strategy.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated
	}
	switch d.IntN(5) {
	case 0:
		p.ClusterTolerations = []corev1.Toleration{{Key: "hand", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(d.IntN(60)))}}
	case 1:
		p.ClusterTolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	case 2:
		p.ClusterTolerations = []corev1.Toleration{
			{Key: "hand", Operator: corev1.TolerationOpExists}, {Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(d.IntN(60)))},
		}
	}
	return p
}

func (d dice) failover() *policyv1alpha1.FailoverBehavior {
	f := &policyv1alpha1.FailoverBehavior{}
	if d.one(2) {
		modes := []policyv1alpha1.PurgeMode{policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeNever}
		f.Application = &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: new(int32(d.IntN(3) * 30))}, PurgeMode: pick(d, modes),
		}
		if f.Application.PurgeMode == policyv1alpha1.PurgeModeGracefully {
			f.Application.GracePeriodSeconds = new(int32(1 + d.IntN(600)))
		}
		if d.one(2) {
			f.Application.StatePreservation = &policyv1alpha1.StatePreservation{
				Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "replicas", JSONPath: "{.replicas}"}},
			}
		}
	}
	if d.one(2) {
		f.Cluster = &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: pick(d, []policyv1alpha1.PurgeMode{"", policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeDirectly})}
	}
	return f
}

// taintPolicy evicts from clusters that are not Ready.
func (d dice) taintPolicy(name string) *policyv1alpha1.ClusterTaintPolicy {
	ready := func(values ...metav1.ConditionStatus) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{ConditionType: clusterv1alpha1.ClusterConditionReady, Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: values}}
	}
	p := &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.AddOnConditions = ready(metav1.ConditionFalse, metav1.ConditionUnknown)
	if !d.one(4) {
		p.Spec.RemoveOnConditions = ready(metav1.ConditionTrue)
	}
	if d.one(3) {
		a := d.affinity()
		p.Spec.TargetClusters = &a
	}
	p.Spec.Taints = []policyv1alpha1.Taint{{Key: "down-" + name, Effect: corev1.TaintEffectNoExecute}, {Key: "down", Effect: corev1.TaintEffectNoSchedule}}
	return p
}

// event lets a user do something, or something fail, or time pass.
func (m *model) event() string {
	name := pick(m.dice, m.names())
	a := pick(m.dice, m.apps)
	switch n := m.IntN(24); {
	case n < 6:
		d := pick(m.dice, []time.Duration{time.Second, 10 * time.Second, time.Minute, timeout + time.Second})
		m.now = m.now.Add(d)
		return fmt.Sprintf("%s pass", d)
	case n < 9:
		return m.flip(name)
	case n < 11:
		return m.taint(name)
	case n < 13:
		a.sick[name] = !a.sick[name]
		return fmt.Sprintf("%s in %s is unhealthy: %t", a.GetName(), name, a.sick[name])
	case n < 15:
		return m.scale(a)
	case n < 17:
		spec := a.GetSpec().DeepCopy()
		spec.Placement, spec.Failover, a.changed = m.placement(), m.failover(), true
		a.write(spec)
		return "another policy for " + a.GetName()
	case n < 18:
		spec := a.GetSpec().DeepCopy()
		spec.RescheduleTriggeredAt, a.changed = &metav1.Time{Time: m.now}, true
		a.write(spec)
		return "reschedule " + a.GetName()
	case n < 19:
		return m.releaseTasks(a)
	case n < 20:
		p := m.taintPolicy(pick(m.dice, m.policies).Name)
		m.policies[m.IntN(len(m.policies))] = p
		return "another taint policy " + p.Name
	case n < 21:
		return m.membership(name)
	default:
		a.unhealthySince = nil
		return "the control plane restarts"
	}
}

// flip lets a member fail or come back.
func (m *model) flip(name string) string {
	m.offline[name] = !m.offline[name]
	status := metav1.ConditionTrue
	if m.offline[name] {
		status = pick(m.dice, []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown})
	}
	meta.SetStatusCondition(&m.clusters[name].Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: status})
	return fmt.Sprintf("%s is Ready: %s", name, status)
}

// taint adds a taint by hand or removes it.
func (m *model) taint(name string) string {
	c := m.clusters[name]
	for i := range c.Spec.Taints {
		if key := c.Spec.Taints[i].Key; (key == "hand" || key == "foot") && m.one(2) {
			c.Spec.Taints = append(c.Spec.Taints[:i:i], c.Spec.Taints[i+1:]...)
			return "untaint " + name
		}
	}
	taint := corev1.Taint{Key: pick(m.dice, []string{"hand", "foot"}), Effect: pick(m.dice, []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule}), TimeAdded: &metav1.Time{Time: m.now}}
	if slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
		return "taint nothing"
	}
	c.Spec.Taints = append(slices.Clip(c.Spec.Taints), taint)
	return fmt.Sprintf("taint %s %s", name, taint.Effect)
}

func (m *model) scale(a *app) string {
	spec := a.GetSpec().DeepCopy()
	spec.Replicas, a.changed = int32(m.IntN(12)), true
	a.write(spec)
	return fmt.Sprintf("scale %s to %d", a.GetName(), spec.Replicas)
}

// releaseTasks ends the tasks that keep the objects in the old clusters.
func (m *model) releaseTasks(a *app) string {
	spec := a.GetSpec().DeepCopy()
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.SuppressDeletion != nil {
			task.SuppressDeletion = new(false)
		}
	}
	a.write(spec)
	return "release the tasks of " + a.GetName()
}

// membership lets a cluster leave, or one that left join again.
func (m *model) membership(name string) string {
	for i := range len(m.clusters) + 1 {
		if back := fmt.Sprintf("m%d", i+1); m.clusters[back] == nil {
			m.join(back)
			return "join " + back
		}
	}
	m.clusters[name].DeletionTimestamp = &metav1.Time{Time: m.now}
	for _, a := range m.apps {
		a.changed = a.changed || target(a, name) != nil
	}
	return "unjoin " + name
}
