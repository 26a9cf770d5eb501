package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

func TestTaintToleration_TolerationSeconds(t *testing.T) {
	added := time.Unix(1000, 0)
	taint := func(effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: "k", Effect: effect, TimeAdded: &metav1.Time{Time: added}}
	}
	seconds := []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(30))}}
	for _, tc := range []struct {
		name        string
		taint       corev1.Taint
		tolerations []corev1.Toleration
		targets     []workv1alpha2.TargetCluster
		now         time.Time
		want        bool
	}{
		{"before the end", taint(corev1.TaintEffectNoExecute), seconds, nil, added.Add(29 * time.Second), true},
		{"at the end the binding would be evicted", taint(corev1.TaintEffectNoExecute), seconds, nil, added.Add(30 * time.Second), false},
		{"a target is left to the taint manager", taint(corev1.TaintEffectNoExecute), seconds, []workv1alpha2.TargetCluster{{Name: "m1"}}, added.Add(time.Hour), true},
		{"NoSchedule does not evict", taint(corev1.TaintEffectNoSchedule), seconds, nil, added.Add(time.Hour), true},
		{"without seconds for ever", taint(corev1.TaintEffectNoExecute), []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, nil, added.Add(time.Hour), true},
		{"a taint without time does not evict", corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}, seconds, nil, added, true},
		{"a decision without time", taint(corev1.TaintEffectNoExecute), seconds, nil, time.Time{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			cluster.Spec.Taints = []corev1.Taint{tc.taint}
			facts := framework.Facts{}
			snapshot := framework.NewSnapshot([]*framework.Cluster{facts.Cluster(cluster)})
			pass := &framework.Pass{}
			pass.Start(&framework.Binding{Now: tc.now, Spec: &workv1alpha2.ResourceBindingSpec{
				Placement: &policyv1alpha1.Placement{ClusterTolerations: tc.tolerations}, Clusters: tc.targets,
			}}, snapshot)
			if got := (taintToleration{}).Filter(pass, snapshot.At(0)); (got.Reason == "") != tc.want {
				t.Errorf("the verdict is %+v", got)
			}
		})
	}
}
