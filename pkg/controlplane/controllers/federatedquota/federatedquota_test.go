package federatedquota

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/ledgers"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// assignedQuota is assigned to clusters.
func assignedQuota(clusters ...string) *policyv1alpha1.FederatedResourceQuota {
	q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "1"}}
	q.Spec.Overall = list("cpu", "10")
	for _, c := range clusters {
		q.Spec.StaticAssignments = append(q.Spec.StaticAssignments, policyv1alpha1.StaticClusterAssignment{ClusterName: c, Hard: list("cpu", "4")})
	}
	return q
}

// work is a Work with the labels of the quota.
func work(cluster, name, used string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: name, Labels: quota.Labels("ns", "q")}}
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(`{"hard":{"cpu":"4"},"used":` + used + `}`)}}}
	return w
}

func newEnv(t *testing.T, objects ...client.Object) *memory.Env {
	t.Helper()
	m := memory.New(t, append(objects, build.Cluster("m1"), build.Cluster("m2"))...)
	m.Index(&workv1alpha1.Work{}, syncIndex, controllers.IndexKey(quotaOf))
	m.Index(&workv1alpha1.Work{}, statusIndex, controllers.IndexKey(quotaOf))
	return m
}

func newSyncer(m *memory.Env) *syncer {
	return &syncer{client: m.Client, works: works.NewWriter(m.Client, m.Client), events: events.New(m.Recorder)}
}

func newAggregator(m *memory.Env) *aggregator {
	return &aggregator{client: m.Client, live: m.Client, events: events.New(m.Recorder)}
}

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "q"}}

// TestSync_FollowsAssignments assigns, reassigns and deletes a quota.
func TestSync_FollowsAssignments(t *testing.T) {
	decoy := work("m2", "decoy", "{}") // an agent may create it
	other := work("m1", "of-another", "{}")
	other.Labels = quota.Labels("ns", "other")
	m := newEnv(t, assignedQuota("m1", "gone"), decoy, other)
	r := newSyncer(m)
	name := quota.WorkName("ns", "q")
	for _, step := range []struct {
		name   string
		change func(q *policyv1alpha1.FederatedResourceQuota) // nil: none
		want   []string
		events []string
	}{
		{"assigned", nil, []string{"karmada-es-m1/" + name, "karmada-es-m1/of-another"}, []string{"Normal SyncWorkSucceed Sync works for FederatedResourceQuota(ns/q) succeed."}},
		{"again", nil, []string{"karmada-es-m1/" + name, "karmada-es-m1/of-another"}, nil},
		{"another cluster", func(q *policyv1alpha1.FederatedResourceQuota) { q.Spec.StaticAssignments[0].ClusterName = "m2" },
			[]string{"karmada-es-m1/of-another", "karmada-es-m2/" + name}, []string{"Normal SyncWorkSucceed Sync works for FederatedResourceQuota(ns/q) succeed."}},
		{"deleted", func(q *policyv1alpha1.FederatedResourceQuota) { q.Finalizers = []string{"delete"} }, []string{"karmada-es-m1/of-another"}, nil},
	} {
		q := memory.Get[*policyv1alpha1.FederatedResourceQuota](m, request.NamespacedName)
		if step.change != nil {
			if step.change(q); len(q.Finalizers) > 0 {
				m.Must(m.Stored.Delete(t.Context(), q))
			} else if err := m.Stored.Update(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		all := memory.List[*workv1alpha1.WorkList](m)
		var got []string
		for i := range all.Items {
			if w := &all.Items[i]; w.DeletionTimestamp == nil {
				got = append(got, w.Namespace+"/"+w.Name)
			}
			if len(all.Items[i].Finalizers) > 0 && all.Items[i].DeletionTimestamp != nil { // the member is done with it
				all.Items[i].Finalizers = nil
				m.Must(m.Stored.Update(t.Context(), &all.Items[i]))
			}
		}
		slices.Sort(got)
		slices.Sort(step.want)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		if diff := cmp.Diff(step.events, m.Events()); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestStatus_CountsTheWorksOfAssignedClusters shows that Works that agents create with the labels of a quota count nothing.
func TestStatus_CountsTheWorksOfAssignedClusters(t *testing.T) {
	name := quota.WorkName("ns", "q")
	m := newEnv(t, assignedQuota("m1"), work("m1", name, `{"cpu":"3"}`), work("m1", "another", `{"cpu":"100"}`), work("m2", name, `{"cpu":"100"}`))
	r := newAggregator(m)
	m.MustReconcile(r, request.NamespacedName)
	q := memory.Get[*policyv1alpha1.FederatedResourceQuota](m, request.NamespacedName)
	used := q.Status.OverallUsed["cpu"]
	if len(q.Status.AggregatedStatus) != 1 || used.String() != "3" || !q.Status.Overall["cpu"].Equal(resource.MustParse("10")) {
		t.Errorf("the status is %+v", q.Status)
	}
	if got := m.Events(); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	m.Stable(func() { m.MustReconcile(r, request.NamespacedName) })
}

// TestStatus_OfAHostileAgentStaysValid shows that a quota whose status has what an agent reported can still be updated.
func TestStatus_OfAHostileAgentStaysValid(t *testing.T) {
	m := newEnv(t, assignedQuota("m1"), work("m1", quota.WorkName("ns", "q"), `{"cpu":"-3","no such":"1","pods":"1500m","limits.cpu":"1e-300000000","limits.memory":1e-300000000,"memory":"1Gi"}`))
	r := newAggregator(m)
	m.MustReconcile(r, request.NamespacedName)
	q := memory.Get[*policyv1alpha1.FederatedResourceQuota](m, request.NamespacedName)
	if errs := validation.ValidateFederatedResourceQuota(q); len(errs) > 0 || len(q.Status.AggregatedStatus[0].Used) != 1 {
		t.Errorf("%v in %+v", errs, q.Status)
	}
}

// TestEnforcement_CountsUntilTheQuotaIsDeleted counts the bindings of a namespace until its quota is deleted.
func TestEnforcement_CountsUntilTheQuotaIsDeleted(t *testing.T) {
	q := assignedQuota()
	a, other := binding("a", "1", 3), binding("b", "2", 5)
	other.Namespace = "elsewhere"
	m := newEnv(t, q, &a, &other)
	r := &counter{
		client: m.Client, live: m.Client, ledgers: ledgers.Ledgers{Live: m.Client, Writer: m.Client}, events: events.New(m.Recorder),
		clock: m.Clock, period: 5 * time.Minute, written: map[string]time.Time{},
	}
	namespace := reconcile.Request{NamespacedName: client.ObjectKey{Name: "ns"}}
	result, err := r.Reconcile(t.Context(), namespace)
	if err != nil || result.RequeueAfter != quota.ReservationTTL {
		t.Fatal(result, err)
	}
	m.Refresh(q)
	if used := q.Status.OverallUsed["cpu"]; used.String() != "3" {
		t.Errorf("the status is %+v", q.Status)
	}
	if got := m.Events(); len(got) != 1 || got[0] != "Normal CollectOverallStatusSucceed Collect overall status of FederatedResourceQuota(ns/q) succeed." {
		t.Errorf("events %q", got)
	}
	m.Must(m.Stored.Delete(t.Context(), q))
	m.MustReconcile(r, namespace.NamespacedName)
	if left, err := r.ledgers.Namespaces(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("ledgers of %v are left: %v", left, err)
	}
}

// A quota that is assigned to a cluster that is being deleted must not write its Work again: the Work would keep the
// cluster for ever.
func TestSync_WritesNothingForAClusterThatIsDeleted(t *testing.T) {
	leaving := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "leaving", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}}}
	m := newEnv(t, assignedQuota("m1", "leaving"), leaving)
	m.Must(m.Stored.Delete(t.Context(), leaving))
	r := newSyncer(m)
	m.MustReconcile(r, request.NamespacedName)
	all := memory.List[*workv1alpha1.WorkList](m)
	if len(all.Items) != 1 || all.Items[0].Namespace != "karmada-es-m1" {
		t.Errorf("works %v", all.Items)
	}
}

// The Work of a quota that is changed or deleted by hand is written again.
func TestDrifted(t *testing.T) {
	m := newEnv(t, assignedQuota("m1"))
	r := newSyncer(m)
	reconciled := func() *workv1alpha1.Work {
		t.Helper()
		m.MustReconcile(r, request.NamespacedName)
		return memory.Get[*workv1alpha1.Work](m, memory.Key("karmada-es-m1", quota.WorkName("ns", "q")))
	}
	before := reconciled()
	changed := before.DeepCopy()
	changed.Spec.Workload.Manifests, changed.Generation = nil, before.Generation+1
	m.Must(m.Stored.Update(t.Context(), changed))
	if !r.drifted().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: changed}) {
		t.Error("the change is not noticed")
	}
	if w := reconciled(); len(w.Spec.Workload.Manifests) != 1 {
		t.Error("the change is not undone")
	}
	w := reconciled()
	w.Finalizers = nil
	m.Must(m.Stored.Update(t.Context(), w))
	m.Must(m.Stored.Delete(t.Context(), w))
	if !r.drifted().Delete(event.DeleteEvent{Object: w}) {
		t.Error("the deletion is not noticed")
	}
	reconciled()
}
