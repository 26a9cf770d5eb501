package get

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// governed is a control plane with a cordoned cluster, policies and bindings.
func governed(t *testing.T) *federation {
	const label = "propagationpolicy.karmada.io/permanent-id"
	claimed := map[string]any{label: "1"}
	f := newFederation(t, &fakeCluster{objects: []object{
		{resource: "propagationpolicies", namespace: "default", name: "busy", labels: claimed},
		{resource: "propagationpolicies", namespace: "default", name: "idle", labels: map[string]any{label: "2"}},
		{resource: "propagationpolicies", namespace: "default", name: "new"},
		{resource: "resourcebindings", namespace: "default", name: "a", labels: claimed, spec: map[string]any{
			"clusters": []any{map[string]any{"name": "m1", "replicas": 2}, map[string]any{"name": "m2"}},
		}},
		{resource: "resourcebindings", namespace: "default", name: "b", labels: claimed, spec: map[string]any{"gracefulEvictionTasks": []any{
			map[string]any{"fromCluster": "m2", "reason": "TaintUntolerated"},
		}}},
		{resource: "resourcebindings", namespace: "default", name: "dependent"},
	}}, nil)
	taint := func(key, value, effect string) any {
		return map[string]any{"key": key, "value": value, "effect": effect}
	}
	f.clusters[""].objects = append(f.clusters[""].objects,
		object{resource: "clusters", name: "m1", ready: "True", spec: map[string]any{"taints": []any{
			taint("cluster.karmada.io/unschedulable", "", "NoSchedule"), taint("dedicated", "gpu", "NoExecute"),
		}}},
		object{resource: "clusters", name: "m2", ready: "True", status: map[string]any{"resourceSummary": map[string]any{
			"allocatable": map[string]any{"cpu": "32", "memory": "64Gi", "pods": "110"}, "allocated": map[string]any{"cpu": "250m", "memory": "1Gi", "pods": "7"},
		}}},
	)
	return f
}

func TestMarks(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{}
	if got := marks(cluster); got != "" {
		t.Errorf("got %q", got)
	}
	cluster.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if got := marks(cluster); got != ",Terminating" {
		t.Errorf("got %q", got)
	}
	cluster.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	if got := marks(cluster); got != ",SchedulingDisabled,Terminating" {
		t.Errorf("got %q", got)
	}
}

func TestGet_DecoratesTablesOfTheControlPlane(t *testing.T) {
	for name, line := range map[string]string{
		"clusters-cordoned": "clusters",
		"clusters-wide":     "clusters -o wide",
		"cluster-wide":      "clusters m1 -o wide",
		"policies":          "propagationpolicies",
		"policies-wide":     "propagationpolicies -o wide",
		"bindings-wide":     "resourcebindings -o wide",
	} {
		t.Run(name, func(t *testing.T) {
			build.AssertGolden(t, "decorated-"+name, "$ get "+line+"\n"+governed(t).run(t, strings.Fields(line)...).String())
		})
	}
	t.Run("a count that may not be read is unknown", func(t *testing.T) {
		f := governed(t)
		f.clusters[""].without = []string{"clusterresourcebindings"}
		if o := f.run(t, "propagationpolicies", "-o", "wide"); strings.Count(o.stdout, "<unknown>") != 3 || o.err != "" {
			t.Errorf("got %s", o)
		}
	})
}
