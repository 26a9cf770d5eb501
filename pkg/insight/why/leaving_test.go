package why

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// leavingSince is a Work of Deployment web that is being deleted since a time, with what it waits for, if anything.
func leavingSince(at int64, waits string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m2", Name: "w", DeletionTimestamp: &metav1.Time{Time: time.Unix(at, 0)}}}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ns","name":"web"}}`)}}}
	if waits != "" {
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkRemoved, Status: metav1.ConditionFalse, Message: waits}}
	}
	return w
}

func TestLeaves(t *testing.T) {
	const denied = `deleting Deployment ns/web in cluster m2: admission webhook "x" denied the request`
	for name, tc := range map[string]struct {
		work  *workv1alpha1.Work
		cause Cause
		// answer is that about a template, gone that about one that does not exist any more.
		answer, gone string
	}{
		"it just left":                 {leavingSince(995, ""), Working, "1 of 2 replicas ready in 1 of 1 clusters", "it was deleted in the control plane, and leaves 1 cluster: m2: since 5s"},
		"it leaves for long":           {leavingSince(700, ""), NotRemoved, "1 of 2 replicas ready in 1 of 1 clusters, but it does not leave cluster m2: since 5m", "it was deleted in the control plane, and leaves 1 cluster: m2: since 5m"},
		"the member refuses to delete": {leavingSince(995, denied), NotRemoved, "1 of 2 replicas ready in 1 of 1 clusters, but it does not leave cluster m2: since 5s: " + denied, "it was deleted in the control plane, and leaves 1 cluster: m2: since 5s: " + denied},
	} {
		t.Run(name, func(t *testing.T) {
			template, objects := world()
			b := objects[1].(*workv1alpha2.ResourceBinding)
			b.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceHealthy
			works := map[string]*workv1alpha1.Work{"m2": tc.work}
			a := Template(&snapshot.Facts{
				Now: time.Unix(1000, 0), Template: template, Binding: b, Clusters: []*clusterv1alpha1.Cluster{objects[3].(*clusterv1alpha1.Cluster)},
				Works: map[string]*workv1alpha1.Work{"m1": objects[2].(*workv1alpha1.Work)}, Leaving: works,
			}, "karmadactl")
			if a.Cause != tc.cause || a.Answer != "Deployment ns/web: "+tc.answer || a.Stages[len(a.Stages)-1].Name != "leaves" {
				t.Errorf("%s: %s\n%+v", a.Cause, a.Answer, a.Stages)
			}
			next := "karmadactl get deployment web -C m2 -o yaml -n ns"
			if tc.cause != Working && a.Next != next {
				t.Errorf("next %s", a.Next)
			}
			if g := Gone(a.Object, works, time.Unix(1000, 0), "karmadactl"); g.Answer != "Deployment ns/web: "+tc.gone || g.Next != next || g.Cause != NotRemoved {
				t.Errorf("%s: %s, next %s", g.Cause, g.Answer, g.Next)
			}
		})
	}
}

// TestCluster_Problems explains a cluster with objects that stay in it, and one that is being removed.
func TestCluster_Problems(t *testing.T) {
	c := cluster("m2", nil)
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionObjectsStuck, Status: metav1.ConditionTrue, Message: "1 of the objects that leave the cluster stay, such as: x"})
	f := &snapshot.ClusterFacts{Now: time.Unix(1000, 0), Cluster: c, Leaving: []*workv1alpha1.Work{leavingSince(700, "denied")}}
	a := Cluster(f, "karmadactl")
	if want := "Cluster m2: Ready, but ObjectsStuck: 1 of the objects that leave the cluster stay, such as: x"; a.Answer != want || a.Cause != ClusterProblem {
		t.Errorf("%s: %s, want %s", a.Cause, a.Answer, want)
	}
	last := a.Stages[len(a.Stages)-1]
	if last.Name != "leaves" || len(last.Details) != 1 || last.Details[0] != (Detail{"Deployment ns/web", "since 5m: denied"}) {
		t.Errorf("%+v", a.Stages)
	}
	c.DeletionTimestamp = &metav1.Time{Time: f.Now}
	if a := Cluster(f, "karmadactl"); !strings.HasPrefix(a.Answer, "Cluster m2: it is being removed: 1 object left") {
		t.Error(a.Answer)
	}
}
