package servicestatus

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

const statusPath = "PATCH /apis/multicluster.x-k8s.io/v1alpha1/namespaces/default/serviceexports/web/status"

type members struct{ member *access.Member }

func (m members) Member(context.Context, *clusterv1alpha1.Cluster) (*access.Member, error) {
	return m.member, nil
}

// exportWork returns an applied Work whose ServiceExport has a status that the member lacks.
func exportWork(t *testing.T) *workv1alpha1.Work {
	t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web"}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceExport","metadata":{"namespace":"default","name":"web"}}`)}}}
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	work, _, err := services.WithStatus(work, map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": "True"}}})
	if err != nil {
		t.Fatal(err)
	}
	return work
}

func TestReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		ready    metav1.ConditionStatus
		selected bool
		change   func(*workv1alpha1.Work)
		answer   int
		writes   bool
		want     string
	}{
		"the member lacks the status":        {ready: metav1.ConditionTrue, selected: true, writes: true},
		"the cluster is not Ready":           {ready: metav1.ConditionFalse, selected: true},
		"another process writes the cluster": {ready: metav1.ConditionTrue},
		"the Work is not applied":            {ready: metav1.ConditionTrue, selected: true, change: func(w *workv1alpha1.Work) { w.Status.Conditions = nil }},
		"the object is missing":              {ready: metav1.ConditionTrue, selected: true, answer: http.StatusNotFound, writes: true},
		"the member refuses": {
			ready: metav1.ConditionTrue, selected: true, answer: http.StatusForbidden, writes: true,
			want: "writing the status of ServiceExport default/web in cluster m1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			work := exportWork(t)
			if tc.change != nil {
				tc.change(work)
			}
			server := accesstest.New(t)
			server.Fail(func(r *http.Request) int {
				if strings.HasSuffix(r.URL.Path, "/status") {
					return tc.answer
				}
				return 0
			})
			server.Put(strings.TrimSuffix(strings.TrimPrefix(statusPath, "PATCH "), "/status"), build.Object("multicluster.x-k8s.io/v1alpha1", "ServiceExport", "default", "web"))
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ServiceExport"}, meta.RESTScopeNamespace)
			member, err := access.NewMember("m1", server.Config(), mapper)
			if err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(work, build.Cluster("m1", build.Ready(tc.ready))).Build()
			r := &reconciler{client: c, members: members{member}, selects: func(*clusterv1alpha1.Cluster) bool { return tc.selected }}
			_, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)})
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			if got := slices.Contains(server.Writes(), statusPath); got != tc.writes {
				t.Errorf("writes %v", server.Writes())
			}
		})
	}
}

// TestOfCluster finds the Works whose status a cluster lacks when it becomes Ready.
func TestOfCluster(t *testing.T) {
	other := exportWork(t)
	other.Namespace = "karmada-es-m2"
	without := exportWork(t)
	without.Name, without.Annotations = "none", nil
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(exportWork(t), other, without).Build()
	got := (&reconciler{client: c}).ofCluster(t.Context(), build.Cluster("m1"))
	if len(got) != 1 || got[0].Namespace != "karmada-es-m1" || got[0].Name != "web" {
		t.Errorf("got %v", got)
	}
}
