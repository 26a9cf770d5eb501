package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// binding is that of a Deployment in m1 and m2 that is as wanted, changed.
func binding(name string, change func(*workv1alpha2.ResourceBinding)) workv1alpha2.Binding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name + "-deployment", CreationTimestamp: metav1.Unix(900, 0), Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: name}
	b.Spec.Placement, b.Spec.Replicas = &policyv1alpha1.Placement{}, 2
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}, {Name: "m2", Replicas: 1}}
	b.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, Reason: "Success"},
		{Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, Reason: "FullyAppliedSuccess"},
	}
	for _, t := range b.Spec.Clusters {
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: t.Name, Applied: true, Health: workv1alpha2.ResourceHealthy})
	}
	if change != nil {
		change(b)
	}
	return b
}

func unscheduled(reason, message string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters, b.Status.AggregatedStatus = nil, nil
		b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
}

// notApplied is a binding that waits for m2 since a time, with the message of m2.
func notApplied(since int64, message string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Status.Conditions[1].Status, b.Status.Conditions[1].LastTransitionTime = metav1.ConditionFalse, metav1.Unix(since, 0)
		b.Status.AggregatedStatus[1] = workv1alpha2.AggregatedStatusItem{ClusterName: "m2", AppliedMessage: message}
	}
}

// federation has two clusters that are Ready, one of which is cordoned, and two bindings that are as wanted.
func federation() *snapshot.Federation {
	room := func(c *clusterv1alpha1.Cluster) {
		c.Spec.SyncMode, c.Spec.ProxyURL, c.Spec.ProxyHeader = clusterv1alpha1.Push, "http://user:hunter2@proxy", map[string]string{"a": "hunter2"} // not shown
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")},
			Allocated:   corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("10")},
		}
	}
	cordon := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-scheduler"}}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = new("host-1_0a1b"), &metav1.MicroTime{Time: time.Unix(990, 0)}, new(int32(15))
	unheld := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent-m2"}}
	return &snapshot.Federation{
		Now: time.Unix(1000, 0), Version: "v1.36.3", Readyz: "[+]ping ok\n[+]etcd ok\nreadyz check passed\n", Leases: []coordinationv1.Lease{lease, unheld},
		Clusters: []*clusterv1alpha1.Cluster{build.Cluster("m1", build.Ready(metav1.ConditionTrue), room), build.Cluster("m2", build.Ready(metav1.ConditionTrue), room, build.Taints(cordon))},
		Bindings: []workv1alpha2.Binding{binding("web", nil), binding("api", nil)},
	}
}

func TestFederation_Healthy(t *testing.T) {
	got := Federation(federation(), "karmadactl")
	renewed := time.Unix(990, 0)
	free := Free{"3.5", "7Gi", "100"}
	want := &Report{
		SchemaVersion: "v1", Healthy: true, Answer: "no problems: 2 of 2 clusters Ready, 2 bindings", Problems: []Problem{},
		ControlPlane: ControlPlane{Version: "v1.36.3", Ready: new(true), Etcd: "ok", Roles: []Role{{"karmada-scheduler", "host-1", &renewed, true}}},
		Clusters: &Clusters{Total: 2, Ready: 2, Push: 2, Cordoned: 1, Free: Free{"7", "14Gi", "200"}, Items: []Cluster{
			{Name: "m1", Mode: "Push", Ready: true, Workloads: 2, Free: free}, {Name: "m2", Mode: "Push", Ready: true, Cordoned: true, Workloads: 2, Free: free},
		}},
		Work: Work{Bindings: 2, NotScheduled: map[string]int{}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Problem{})); diff != "" {
		t.Error(diff)
	}
}

// replace replaces the first binding.
func replace(change func(*workv1alpha2.ResourceBinding)) func(*snapshot.Federation) {
	return func(f *snapshot.Federation) { f.Bindings[0] = binding("web", change) }
}

func notReady(f *snapshot.Federation) {
	f.Clusters[1].Status.Conditions[0] = metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "cluster is not\nreachable"}
}

func quota(used string) func(*snapshot.Federation) {
	return func(f *snapshot.Federation) {
		q := policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "budget"}}
		q.Spec.Overall = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}
		q.Status.OverallUsed = corev1.ResourceList{"cpu": resource.MustParse(used)}
		f.Quotas = append(f.Quotas, q)
	}
}

// all makes one change after another.
func all(changes ...func(*snapshot.Federation)) func(*snapshot.Federation) {
	return func(f *snapshot.Federation) {
		for _, change := range changes {
			change(f)
		}
	}
}

// ending is an event about a certificate.
func ending(name, reason, notAfter string, at int64) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{names.CertificateSubject: strings.Split(name, ".")[0], names.CertificateNotAfter: notAfter}},
		Reason:     reason, Message: "certificate " + name + " ends\nat " + notAfter + "; renew it", LastTimestamp: metav1.Unix(at, 0),
	}
}

// TestFederation_Certificates has those that ended first, and without control characters.
func TestFederation_Certificates(t *testing.T) {
	f := federation()
	f.Events = []corev1.Event{
		ending("soon\x1b.19700101", names.CertificateEnding, "1970-01-11T00:00:00Z", 900), ending("ended.19700101", names.CertificateEnded, "1970-01-01T00:00:00Z", 900),
		ending("certificates.19700101", names.CertificateEnding, "", 900),
	}
	f.Events[2].Annotations = nil // it is about several
	want := []Certificate{{"ended", "1970-01-01T00:00:00Z"}, {"soon", "1970-01-11T00:00:00Z"}}
	got := Federation(f, "karmadactl")
	if diff := cmp.Diff(want, got.ControlPlane.Certificates); diff != "" || got.ProblemCount != 3 {
		t.Error(got.ProblemCount, diff)
	}
}

const explained = " | karmadactl why deployment web -n ns"

func TestFederation_Problems(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*snapshot.Federation)
		// want are lines of reason, workloads, text and next.
		want []string
	}{
		"a check of the API server fails": {func(f *snapshot.Federation) { f.Readyz = "[-]etcd failed: reason withheld\n[+]ping ok" },
			[]string{"NotReady 2 the API server is not ready: etcd failed | kubectl get --raw '/readyz?verbose'"}},
		"a leader that does not renew": {func(f *snapshot.Federation) { f.Leases[0].Spec.RenewTime.Time = time.Unix(700, 0) },
			[]string{"NoLeader 2 no karmada-scheduler leads: its Lease was renewed 5m ago | karmadactl describe lease karmada-scheduler -n karmada-system"}},
		"a leader that left": {func(f *snapshot.Federation) { f.Leases[0].Spec.HolderIdentity = new("") },
			[]string{"NoLeader 2 no karmada-scheduler leads: its Lease was renewed 10s ago | karmadactl describe lease karmada-scheduler -n karmada-system"}},
		"certificates that end": {func(f *snapshot.Federation) {
			f.Events = []corev1.Event{
				ending("agent.19700101", names.CertificateEnding, "1970-01-11T00:00:00Z", 900), ending("other.19700101", "Other", "", 900),
				ending("plane.19691231", names.CertificateEnding, "1970-01-01T00:00:00Z", 10), ending("plane.19700101", names.CertificateEnded, "1970-01-01T00:00:00Z", 900),
				ending("renewed.19691231", names.CertificateEnding, "1970-01-02T00:00:00Z", -7200),
			}
		}, []string{
			"CertificateEnded 0 certificate plane.19700101 ends at 1970-01-01T00:00:00Z | karmadactl certs check",
			"CertificateEnding 0 certificate agent.19700101 ends at 1970-01-11T00:00:00Z | karmadactl certs check"}},
		"a cluster is not Ready, and what waits for it": {all(notReady, replace(notApplied(900, "")), func(f *snapshot.Federation) {
			f.Bindings[1].GetStatus().AggregatedStatus[1].Health = workv1alpha2.ResourceUnhealthy
		}), []string{"ClusterNotReachable 2 cluster m2 is not Ready (2 workloads): ClusterNotReachable: cluster is not reachable | karmadactl describe cluster m2"}},
		"objects that are stuck in a cluster": {func(f *snapshot.Federation) {
			for _, t := range []string{clusterv1alpha1.ClusterConditionObjectsStuck, clusterv1alpha1.ClusterConditionOrphanedObjects} {
				f.Clusters[1].Status.Conditions = append(f.Clusters[1].Status.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionTrue, Message: "1 of the objects"})
			}
			f.Clusters[0].Status.Conditions = append(f.Clusters[0].Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionObjectsStuck, Status: metav1.ConditionFalse})
		}, []string{"ObjectsStuck 2 cluster m2: ObjectsStuck: 1 of the objects | karmadactl why cluster m2", "OrphanedObjects 2 cluster m2: OrphanedObjects: 1 of the objects | karmadactl why cluster m2"}},
		"a cluster that is being removed": {all(notReady, func(f *snapshot.Federation) { f.Clusters[1].DeletionTimestamp = &metav1.Time{} }), nil},
		"no cluster fits":                 {replace(unscheduled("NoClusterFit", "0/2 clusters\x1b are available")), []string{"NoClusterFit 1 Deployment ns/web: not scheduled: NoClusterFit: 0/2 clusters are available" + explained}},
		"no scheduler acts": {replace(func(b *workv1alpha2.ResourceBinding) {
			b.Status, b.Spec.Clusters = workv1alpha2.ResourceBindingStatus{}, nil
		}), []string{"NotYetScheduled 1 Deployment ns/web: not scheduled yet" + explained}},
		"a new binding": {replace(func(b *workv1alpha2.ResourceBinding) {
			b.Status, b.Spec.Clusters, b.CreationTimestamp = workv1alpha2.ResourceBindingStatus{}, nil, metav1.Unix(990, 0)
		}), nil},
		"scheduling is suspended": {replace(func(b *workv1alpha2.ResourceBinding) {
			unscheduled("", "")(b)
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}), nil},
		"a binding that is being deleted": {replace(func(b *workv1alpha2.ResourceBinding) {
			unscheduled("NoClusterFit", "")(b)
			b.DeletionTimestamp = &metav1.Time{}
		}), nil},
		"a cluster refuses the object":    {replace(notApplied(995, "denied")), []string{"ApplyFailed 1 Deployment ns/web: not applied in cluster m2: denied" + explained}},
		"not applied for long":            {replace(notApplied(900, "")), []string{"NotYetDelivered 1 Deployment ns/web: not applied in cluster m2 yet" + explained}},
		"not applied since a few seconds": {replace(notApplied(990, "")), nil},
		"dispatching is suspended": {replace(func(b *workv1alpha2.ResourceBinding) {
			notApplied(900, "")(b)
			b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}}
		}), nil},
		"unhealthy": {replace(func(b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceUnhealthy
		}),
			[]string{"Unhealthy 1 Deployment ns/web: Unhealthy in 1 of 2 clusters: m1" + explained}},
		"a binding that a user wrote": {replace(func(b *workv1alpha2.ResourceBinding) {
			unscheduled("NoClusterFit", "x")(b)
			b.Spec.Resource.Name = "$(reboot)"
		}),
			[]string{"NoClusterFit 1 Deployment ns/$(reboot): not scheduled: NoClusterFit: x | karmadactl describe resourcebinding web-deployment -n ns"}},
		"a full quota": {quota("2"), nil},
		"a full quota that refuses": {all(quota("2"), replace(unscheduled("QuotaExceeded", "too much"))), []string{
			"QuotaExceeded 1 FederatedResourceQuota ns/budget is full (1 workload refused): cpu 2 of 2 | karmadactl describe federatedresourcequota budget -n ns",
			"QuotaExceeded 1 Deployment ns/web: not scheduled: QuotaExceeded: too much" + explained}},
		"an exceeded quota": {quota("3"), []string{"QuotaExceeded 0 FederatedResourceQuota ns/budget is exceeded (0 workloads refused): cpu 3 of 2 | karmadactl describe federatedresourcequota budget -n ns"}},
		"a registry is not Ready": {func(f *snapshot.Federation) {
			r := searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
			r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Caching", Message: "m1"}}
			f.Registries = append(f.Registries, r)
		}, []string{"Caching 0 ResourceRegistry all is not Ready: Caching: m1 | karmadactl describe resourceregistry all"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := federation()
			tc.change(f)
			r := Federation(f, "karmadactl")
			var got []string
			for _, p := range r.Problems {
				got = append(got, fmt.Sprintf("%s %d %s | %s", p.Reason, p.Workloads, p.Text, p.Next))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || r.Healthy != (len(got) == 0) {
				t.Error(diff)
			}
		})
	}
}

// TestFederation_Order has more problems than a report.
func TestFederation_Order(t *testing.T) {
	f := federation()
	all(notReady, quota("3"), func(f *snapshot.Federation) { f.Leases[0].Spec.HolderIdentity = new("") })(f)
	for i := range 12 {
		b := binding(fmt.Sprintf("w%02d", i), unscheduled("Unschedulable", "no room"))
		b.GetSpec().Replicas = int32(i)
		f.Bindings = append(f.Bindings, b)
	}
	f.Bindings = append(f.Bindings, binding("sick", func(b *workv1alpha2.ResourceBinding) {
		b.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceUnhealthy
	}))
	r := Federation(f, "karmadactl")
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.Object.Name)
	}
	if want := "karmada-scheduler m2 w11 w10 w09 w08 w07 w06 w05 w04"; strings.Join(got, " ") != want || r.ProblemCount != 16 {
		t.Errorf("%d: %s", r.ProblemCount, got)
	}
	if r.Work.NotScheduled["Unschedulable"] != 12 || r.Work.Unhealthy != 1 || r.Work.QuotasExceeded != 1 {
		t.Errorf("%+v", r.Work)
	}
}

func TestFederation_Gaps(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "", errors.New("no"))
	for name, tc := range map[string]struct {
		what string
		err  error
		want string
	}{
		"clusters that may not be read":  {snapshot.Clusters, forbidden, "nothing is wrong in what could be read; not all could be"},
		"quotas that are not read":       {snapshot.Quotas, errors.New("no answer in time"), "nothing is wrong in what could be read; not all could be"},
		"clusters that are not served":   {snapshot.Clusters, apierrors.NewServiceUnavailable("not available"), "1 problem; the worst: the control plane does not answer requests for Clusters: not available"},
		"clusters that are not answered": {snapshot.Clusters, errors.New("no answer in time"), "1 problem; the worst: the control plane does not answer requests for Clusters: no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			f := federation()
			f.Gaps = []snapshot.Gap{{What: tc.what, Err: tc.err}}
			r := Federation(f, "karmadactl")
			if r.Answer != tc.want || len(r.Gaps) != 1 || (r.Clusters == nil) != (tc.what == snapshot.Clusters) {
				t.Errorf("%s, gaps %q", r.Answer, r.Gaps)
			}
		})
	}
}
