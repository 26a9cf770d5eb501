package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func terminating(name string) *clusterv1alpha1.Cluster {
	c := cluster(name, 10)
	c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return c
}

// placed returns a binding whose replicas m1 and m2 have.
func placed(sc *scope.Binding, placement *policyv1alpha1.Placement) workv1alpha2.Binding {
	b := fill(sc.New(), sc, placement)
	b.GetSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}}
	return b
}

func TestRelease(t *testing.T) {
	yes := true
	for name, tc := range map[string]struct {
		change func(workv1alpha2.Binding)
		want   []workv1alpha2.TargetCluster
	}{
		"the policy was deleted: the placement of the binding decides": {
			func(b workv1alpha2.Binding) { b.SetLabels(nil) },
			[]workv1alpha2.TargetCluster{{Name: "m2", Replicas: 3}},
		},
		"no policy and no placement: the target goes": {
			func(b workv1alpha2.Binding) { b.SetLabels(nil); b.GetSpec().Placement = nil },
			[]workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}},
		},
		"scheduling is suspended: the target goes": {
			func(b workv1alpha2.Binding) { b.GetSpec().Suspension = &workv1alpha2.Suspension{Scheduling: &yes} },
			[]workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}},
		},
		"the affinity does not select the cluster": {
			func(b workv1alpha2.Binding) {
				b.GetSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
				b.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "unparsable"})
			},
			[]workv1alpha2.TargetCluster{{Name: "m2", Replicas: 3}},
		},
		"another scheduler's": {
			func(b workv1alpha2.Binding) { b.GetSpec().SchedulerName = "other" },
			[]workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}},
		},
	} {
		for how, leave := range map[string]func(b *bench){
			"being deleted":         func(b *bench) { b.observer.clusterChanged(terminating("m1"), false) },
			"gone":                  func(b *bench) { b.observer.clusterDeleted("m1") },
			"gone before the start": nil,
		} {
			for _, sc := range scope.Bindings() {
				t.Run(sc.Kind+"/"+how+"/"+name, func(t *testing.T) {
					binding := placed(sc, dividedPlacement())
					tc.change(binding)
					b := newBench(t, binding)
					b.observer.clusterChanged(cluster("m2", 10), true)
					if leave != nil {
						b.observer.clusterChanged(cluster("m1", 10), true)
					}
					b.see(sc)
					if leave != nil {
						if tc.want[0].Name != "m1" && len(binding.GetLabels()) == 0 && len(b.runQueue()) > 0 {
							t.Fatalf("wrote %v before a cluster left", b.writes)
						}
						leave(b)
					}
					b.runQueue()
					after := b.see(sc)
					if diff := cmp.Diff(tc.want, after.GetSpec().Clusters); diff != "" {
						t.Error(diff)
					}
					if writes := b.runQueue(); len(writes) > 0 {
						t.Errorf("wrote again: %v", writes)
					}
				})
			}
		}
	}
}

// A complete division whose policy was deleted stays where it is while other
// clusters come and change.
func TestRelease_UnclaimedBindingsFollowNoOtherChange(t *testing.T) {
	sc := scope.NamespacedBinding()
	for name, placement := range map[string]*policyv1alpha1.Placement{"divided": dividedPlacement(), "duplicated": {}} {
		binding := placed(sc, placement)
		binding.SetLabels(nil)
		b := newBench(t, binding)
		b.observer.clusterChanged(cluster("m1", 10), true)
		b.observer.clusterChanged(cluster("m2", 10), true)
		b.see(sc)
		b.observer.clusterChanged(cluster("m3", 10), false)
		labeled := cluster("m1", 10)
		labeled.Labels, labeled.Generation = map[string]string{"a": "b"}, 2
		b.observer.clusterChanged(labeled, false)
		if writes := b.runQueue(); len(writes) > 0 {
			t.Errorf("%s: wrote %v", name, writes)
		}
	}
}

// A target that was not observed yet but exists is no reason to move anything.
func TestRelease_AClusterThatWasNotObservedYetStays(t *testing.T) {
	sc := scope.NamespacedBinding()
	for name, labels := range map[string]map[string]string{"claimed": {policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}, "unclaimed": nil} {
		binding := placed(sc, dividedPlacement())
		binding.SetLabels(labels)
		binding.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "unparsable"})
		b := newBench(t, binding, cluster("m1", 10))
		b.observer.clusterChanged(cluster("m2", 10), true)
		b.see(sc)
		b.runQueue()
		if got := b.see(sc).GetSpec().Clusters; len(got) != 2 {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
