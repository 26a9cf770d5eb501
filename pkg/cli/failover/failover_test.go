package failover

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

func TestPrintReport(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cluster := func(name string, ready metav1.ConditionStatus, conditions ...string) clusterv1alpha1.Cluster {
		c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-90 * time.Second))}}
		for _, name := range conditions {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue})
		}
		return c
	}
	tainted := func(c clusterv1alpha1.Cluster) clusterv1alpha1.Cluster {
		c.Spec.Taints = []corev1.Taint{{Key: "example.com/not-ready", Effect: corev1.TaintEffectNoExecute}}
		return c
	}
	for name, r := range map[string]*failover.Report{
		"nothing": {},
		"silent":  {Silent: now.Add(-5 * time.Minute)},
		"stopped": {
			MassFailure: eviction.MassFailureState{Since: now.Add(-3 * time.Minute), Failed: 2, Total: 3},
			Clusters: []clusterv1alpha1.Cluster{
				tainted(cluster("m1", metav1.ConditionFalse, clusterv1alpha1.ClusterConditionEvictionsStopped)),
				cluster("m2", metav1.ConditionUnknown), tainted(cluster("m3", metav1.ConditionTrue)),
				{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
			},
			Evictions: []failover.Eviction{
				{Namespace: "shop", Workload: "deployment/web", Cluster: "m3", Replicas: 2, Phase: failover.UnderWay, Reason: "TaintUntolerated", At: now.Add(-10 * time.Second), Until: now.Add(590 * time.Second), Nowhere: true},
				{Namespace: "shop", Workload: "deployment/db", Cluster: "m3", Phase: failover.UnderWay, Reason: "ApplicationFailure"},
				{Namespace: "shop", Workload: "deployment/later", Cluster: "m3", Replicas: 1, Phase: failover.Pending, At: now.Add(29600 * time.Millisecond)},
				{Workload: "clusterrole/reader", Cluster: "m3", Phase: failover.Pending, At: now},
				{Namespace: "shop", Workload: "deployment/api", Cluster: "m1", Replicas: 4, Priority: 100, Phase: failover.Stopped, At: now},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := printReport(&out, "karmadactl", r, now); err != nil {
				t.Fatal(err)
			}
			build.AssertGolden(t, "status-"+name, out.String())
			out.Reset()
			e := &env.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}}
			if err := errors.Join(e.PrintDocument("json", newDocument(r)), e.PrintDocument("yaml", newDocument(r))); err != nil {
				t.Fatal(err)
			}
			build.AssertGolden(t, "document-"+name, out.String())
		})
	}
}
