package estimator

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	plugins "github.com/karmada-toolkit/karmada/plugins/scheduler"
)

// scheduling is a scheduler's view of clusters with estimators.
type scheduling struct {
	testing.TB
	pool     *client.Pool
	snapshot *framework.Snapshot
	profile  *core.Profile
}

// summaryOf returns a cluster whose summary has room for anything.
func summaryOf(name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse("10000"), "memory": resource.MustParse("100Ti"), "pods": resource.MustParse("100000"), "example.com/gpu": resource.MustParse("100"),
	}}
	return c
}

// newScheduling returns the view of clusters whose estimators listen at these addresses.
func newScheduling(t testing.TB, addresses map[string]string) *scheduling {
	t.Helper()
	o := client.NewOptions()
	o.Services = func(_ context.Context, _, name string) (*corev1.Service, error) {
		host, port, err := net.SplitHostPort(addresses[strings.TrimPrefix(name, o.Prefix+"-")])
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host}}
		s.Spec.Ports = []corev1.ServicePort{{Port: int32(o.Port), TargetPort: intstr.Parse(port)}}
		return s, err
	}
	pool, err := client.NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	enabled, err := plugins.Registry(true).New([]string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	profile, err := core.NewProfile(enabled...)
	if err != nil {
		t.Fatal(err)
	}
	var clusters []*clusterv1alpha1.Cluster
	for name := range addresses {
		clusters = append(clusters, summaryOf(name))
	}
	slices.SortFunc(clusters, func(a, b *clusterv1alpha1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return &scheduling{TB: t, pool: pool, snapshot: framework.SnapshotOf(clusters, false), profile: profile}
}

// request returns a request that divides replicas by the room in clusters.
func (s *scheduling) request(n int32, r *workv1alpha2.ReplicaRequirements) *core.Request {
	return &core.Request{Profile: s.profile, Binding: framework.Binding{Namespace: "ns", Name: "web-deployment", Spec: &workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"},
		Replicas: n, ReplicaRequirements: r,
		Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		}},
	}}}
}

// schedule calls the estimators and decides, and returns the targets as text, or the error.
func (s *scheduling) schedule(r *core.Request) (targets string, decision core.Decision) {
	s.Helper()
	clusters := make([]*framework.Cluster, s.snapshot.Len())
	for i := range clusters {
		clusters[i] = s.snapshot.At(i).Cluster
	}
	r.Estimates = s.pool.Estimates(s.Context(), r, clusters, false)
	decision, err := core.Schedule(s.snapshot, r)
	if err != nil {
		return err.Error(), decision
	}
	var out []string
	for _, c := range decision.Clusters {
		out = append(out, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
	}
	return strings.Join(out, " "), decision
}

func listOf(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// Extended resources, tainted nodes, node affinity and pods without requests.
func TestSchedule_RequirementsOfNodes(t *testing.T) {
	gpu := node("gpu", "8", "110")
	gpu.Status.Allocatable["example.com/gpu"] = resource.MustParse("3")
	gpu.Labels = map[string]string{"disk": "ssd"}
	gpu.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	ssd := node("ssd", "4", "6")
	ssd.Labels = map[string]string{"disk": "ssd"}
	o1, o2 := NewOptions(), NewOptions()
	o1.ClusterName, o2.ClusterName = "m1", "m2"
	s1, a1 := start(t, newAPI(t, map[string][]any{"nodes": {gpu, node("plain", "4", "4")}}), o1)
	s2, a2 := start(t, newAPI(t, map[string][]any{"nodes": {ssd}}), o2)
	eventually(t, "the clusters are read", func() bool { return s1.cluster.ready() == nil && s2.cluster.ready() == nil })
	s := newScheduling(t, map[string]string{"m1": a1, "m2": a2})
	tolerant := &workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}
	ssds := &workv1alpha2.NodeClaim{HardNodeAffinity: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}},
	}}}}
	for name, tc := range map[string]struct {
		n    int32
		r    *workv1alpha2.ReplicaRequirements
		want string
	}{
		"a gpu, tolerated":   {2, &workv1alpha2.ReplicaRequirements{NodeClaim: tolerant, ResourceRequest: listOf("example.com/gpu", "1")}, "m1:2"},
		"more than there is": {4, &workv1alpha2.ReplicaRequirements{NodeClaim: tolerant, ResourceRequest: listOf("example.com/gpu", "1")}, "failed to assign replicas: failed to scale up: Clusters available replicas 3 are not enough to schedule."},
		"a gpu, not tolerated": {1, &workv1alpha2.ReplicaRequirements{ResourceRequest: listOf("example.com/gpu", "1")},
			"failed to assign replicas: failed to scale up: Clusters available replicas 0 are not enough to schedule."},
		"node affinity":    {4, &workv1alpha2.ReplicaRequirements{NodeClaim: ssds, ResourceRequest: listOf("cpu", "1")}, "m2:4"},
		"without requests": {10, &workv1alpha2.ReplicaRequirements{ResourceRequest: listOf("cpu", "0")}, "m1:4 m2:6"},
		"no requirements":  {10, nil, "m1:4 m2:6"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := s.schedule(s.request(tc.n, tc.r)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Sets of components, and workloads that were assigned just now.
func TestSchedule_ComponentsAndAssumedWorkloads(t *testing.T) {
	o1, o2 := NewOptions(), NewOptions()
	o1.ClusterName, o2.ClusterName = "m1", "m2"
	s1, a1 := start(t, newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110"), node("n2", "4", "110")}}), o1)
	s2, a2 := start(t, newAPI(t, map[string][]any{"nodes": {node("n1", "8", "110")}}), o2)
	eventually(t, "the clusters are read", func() bool { return s1.cluster.ready() == nil && s2.cluster.ready() == nil })
	s := newScheduling(t, map[string]string{"m1": a1, "m2": a2})

	// Both clusters have 8 processors, of which one pod of 6 fits m2 only.
	sets := s.request(0, nil)
	sets.MultiplePodTemplates = true
	sets.Spec.Placement = &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	sets.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}
	sets.Spec.Components = []workv1alpha2.Component{
		{Name: "head", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: listOf("cpu", "6")}},
		{Name: "worker", Replicas: 2, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: listOf("cpu", "1")}},
	}
	if got, _ := s.schedule(sets); got != "m2:0" {
		t.Errorf("the components go to %q", got)
	}

	// What was assigned to m2 leaves room for 2 of 8 there.
	assumed := s.request(10, &workv1alpha2.ReplicaRequirements{ResourceRequest: listOf("cpu", "1")})
	assumed.Assumed = map[string][]replicas.Workload{"m2": {{Namespace: "ns", Components: []workv1alpha2.Component{
		{Name: "other", Replicas: 3, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: listOf("cpu", "2")}},
	}}}}
	if got, _ := s.schedule(assumed); got != "m1:8 m2:2" {
		t.Errorf("with an assumed workload: %q", got)
	}
}

// While an estimator does not run, its own cluster has no estimate.
func TestSchedule_AnEstimatorStopsAndRestarts(t *testing.T) {
	a := newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}})
	o1, o2 := NewOptions(), NewOptions()
	o1.ClusterName, o2.ClusterName = "m1", "m2"
	s1, a1 := start(t, a, o1)
	s2, a2 := start(t, newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}}), o2)
	eventually(t, "the clusters are read", func() bool { return s1.cluster.ready() == nil && s2.cluster.ready() == nil })
	addresses := map[string]string{"m1": a1, "m2": a2}
	s := newScheduling(t, addresses)
	r := &workv1alpha2.ReplicaRequirements{ResourceRequest: listOf("cpu", "1")}
	if got, d := s.schedule(s.request(8, r)); got != "m1:4 m2:4" || d.Unestimated() != "" {
		t.Errorf("got %q, %q", got, d.Unestimated())
	}
	a.CloseClientConnections()
	a.setBroken(true)
	eventually(t, "m1 cannot be read", func() bool { return s1.cluster.ready() != nil })
	_, d := s.schedule(s.request(8, r))
	if got := d.Unestimated(); !strings.HasPrefix(got, "No estimate from the scheduler-estimator of m1 (Unavailable: failed to estimate replicas: ") {
		t.Errorf("got %q", got)
	}
	for _, c := range d.Explain().Passes[0].Clusters {
		if (c.EstimatorError != "") != (c.Name == "m1") {
			t.Errorf("%s is explained by %q", c.Name, c.EstimatorError)
		}
	}
	a.setBroken(false)
	eventually(t, "m1 answers again", func() bool {
		got, d := s.schedule(s.request(8, r))
		return got == "m1:4 m2:4" && d.Unestimated() == ""
	})
}

// BenchmarkSchedule reports the 99th percentile of a decision over ten clusters, with and without their estimators, each
// of 100 nodes.
func BenchmarkSchedule(b *testing.B) {
	addresses := map[string]string{}
	for i := range 10 {
		var nodes []any
		for j := range 100 {
			nodes = append(nodes, node(fmt.Sprintf("n%d", j), "64", "110"))
		}
		o := NewOptions()
		o.ClusterName = fmt.Sprintf("m%d", i)
		s, address := start(b, newAPI(b, map[string][]any{"nodes": nodes}), o)
		eventually(b, "the cluster is read", func() bool { return s.cluster.ready() == nil })
		addresses[o.ClusterName] = address
	}
	s := newScheduling(b, addresses)
	r := s.request(100, &workv1alpha2.ReplicaRequirements{ResourceRequest: listOf("cpu", "1", "memory", "1Gi")})
	run := func(b *testing.B, decide func() string) {
		b.Helper()
		var took []time.Duration
		want := decide()
		for b.Loop() {
			from := time.Now()
			if got := decide(); gocmp.Diff(want, got) != "" {
				b.Fatal(got)
			}
			took = append(took, time.Since(from))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
	b.Run("estimators", func(b *testing.B) {
		run(b, func() string { got, _ := s.schedule(r); return got })
	})
	b.Run("summaries", func(b *testing.B) {
		r.Estimates = nil
		run(b, func() string {
			d, err := core.Schedule(s.snapshot, r)
			return fmt.Sprint(len(d.Clusters), err)
		})
	})
}
