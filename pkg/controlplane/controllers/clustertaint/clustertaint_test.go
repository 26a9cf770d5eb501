package clustertaint

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

var (
	now     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}
)

func cluster(ready metav1.ConditionStatus, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
	return build.Cluster("m1", build.Ready(ready), build.Taints(taints...))
}

func policy() *policyv1alpha1.ClusterTaintPolicy {
	condition := func(status metav1.ConditionStatus) []policyv1alpha1.MatchCondition {
		return []policyv1alpha1.MatchCondition{{ConditionType: "Ready", Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: []metav1.ConditionStatus{status}}}
	}
	return &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: policyv1alpha1.ClusterTaintPolicySpec{
			AddOnConditions: condition(metav1.ConditionFalse), RemoveOnConditions: condition(metav1.ConditionTrue),
			Taints: []policyv1alpha1.Taint{{Key: "down", Effect: corev1.TaintEffectNoExecute}},
		},
	}
}

func TestReconcile_AddsAndRemovesTaints(t *testing.T) {
	taint := corev1.Taint{Key: "down", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now}}
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		want    []corev1.Taint
		event   string
	}{
		"not ready":              {cluster(metav1.ConditionFalse), []corev1.Taint{taint}, "Normal TaintClusterSucceed Update Cluster(m1) with taints(cluster now has taints([{Key:down,Effect:NoExecute}])) succeed"},
		"not ready and tainted":  {cluster(metav1.ConditionFalse, taint), []corev1.Taint{taint}, ""},
		"ready again":            {cluster(metav1.ConditionTrue, taint), nil, "Normal TaintClusterSucceed Update Cluster(m1) with taints(cluster now does not have taints) succeed"},
		"ready without taints":   {cluster(metav1.ConditionTrue), nil, ""},
		"neither, taints remain": {cluster(metav1.ConditionUnknown, taint), []corev1.Taint{taint}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			taints, event := reconciled(t, tc.cluster, policy())
			if diff := cmp.Diff(tc.want, taints); diff != "" {
				t.Error(diff)
			}
			if event != tc.event {
				t.Errorf("the event is %q, want %q", event, tc.event)
			}
		})
	}
}

func newReconciler(t *testing.T, objs ...client.Object) (*memory.Env, *reconciler) {
	t.Helper()
	m := memory.New(t, objs...)
	return m, &reconciler{client: m.Client, events: events.New(m.Recorder), clock: m.Clock}
}

// reconciled returns the taints of the cluster after a reconciliation with some objects, and the events of it.
func reconciled(t *testing.T, objs ...client.Object) ([]corev1.Taint, string) {
	t.Helper()
	m, r := newReconciler(t, objs...)
	m.MustReconcile(r, request.NamespacedName)
	return memory.Get[*clusterv1alpha1.Cluster](m, request.NamespacedName).Spec.Taints, strings.Join(m.Events(), "\n")
}

// One policy with a taint that no cluster can have does not keep the others from taking effect.
func TestReconcile_LeavesOutInvalidTaints(t *testing.T) {
	invalid := policy()
	invalid.Name = "invalid"
	invalid.Spec.Taints = []policyv1alpha1.Taint{{Key: "a b", Effect: corev1.TaintEffectNoSchedule}, {Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
	taints, event := reconciled(t, cluster(metav1.ConditionFalse), policy(), invalid)
	if len(taints) != 1 || taints[0].Key != "down" {
		t.Errorf("the taints are %v", taints)
	}
	if !strings.HasPrefix(event, "Warning "+ReasonTaintFailed) || !strings.Contains(event, "spec.taints[0].key") || !strings.Contains(event, "spec.taints[1].effect") {
		t.Errorf("the event is %q", event)
	}
}

// A taint that one policy adds and another removes is no change of a cluster without taints.
func TestReconcile_WritesNothingWithoutAChange(t *testing.T) {
	add, remove := policy(), policy()
	add.Spec.AddOnConditions, add.Spec.RemoveOnConditions = add.Spec.RemoveOnConditions, nil
	remove.Name = "q"
	m, r := newReconciler(t, cluster(metav1.ConditionTrue), add, remove)
	m.Stable(func() { m.MustReconcile(r, request.NamespacedName) })
}

func TestReconcile_RecordsAFailureAndNoConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"conflict": {apierrors.NewConflict(clusterv1alpha1.Resource("clusters"), "m1", errors.New("changed")), 0},
		"refused":  {apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), "m1", errors.New("no")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, r := newReconciler(t, cluster(metav1.ConditionFalse), policy())
			m.FailOn("patch Cluster ", tc.err)
			for range 2 { // a failure with the same text is recorded once
				if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, tc.err) {
					t.Fatal(err)
				}
			}
			if got := m.Events(); len(got) != tc.want {
				t.Errorf("events %q", got)
			}
		})
	}
}

func TestConditionsChanged(t *testing.T) {
	p := conditionsChanged()
	tainted := cluster(metav1.ConditionTrue, corev1.Taint{Key: "x"})
	if p.Update(event.UpdateEvent{ObjectOld: cluster(metav1.ConditionTrue), ObjectNew: tainted}) {
		t.Error("a change of taints passes")
	}
	if !p.Update(event.UpdateEvent{ObjectOld: cluster(metav1.ConditionTrue), ObjectNew: cluster(metav1.ConditionFalse)}) {
		t.Error("a change of conditions does not pass")
	}
	if !p.Create(event.CreateEvent{Object: tainted}) || p.Delete(event.DeleteEvent{Object: tainted}) {
		t.Error("only new clusters pass")
	}
}
