package registry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
)

func TestTable_Cells(t *testing.T) {
	full := internalversion.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", CreationTimestamp: metav1.NewTime(now().Add(-90 * time.Second))},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://a", ProxyURL: "http://p", Provider: "pr", Region: "re", Zones: []string{"z1", "z2"},
		},
		Status: clusterv1alpha1.ClusterStatus{
			KubernetesVersion: "v1.36.0",
			Conditions:        []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}},
		},
	}
	bare := internalversion.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	refused := internalversion.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	refused.Status.Conditions = []metav1.Condition{{Type: "APIEndpointAccepted", Status: metav1.ConditionFalse}}
	secret := internalversion.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m4"}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, ProxyURL: "http://user:hunter2@p:3128", ProxyHeader: map[string]string{"a": "hunter2"},
	}}
	cases := []struct {
		name    string
		cluster internalversion.Cluster
		want    []any
	}{
		{"everything known", full, []any{"m1", "v1.36.0", "Pull", "True", "90s", "z1,z2", "re", "pr", "https://a", "http://p"}},
		{"nothing known", bare, []any{"m2", "", "Push", "Unknown", "<unknown>", "<none>", "<none>", "<none>", "", "<none>"}},
		{"address refused", refused, []any{"m3", "", "Pull", "Unknown", "<unknown>", "<none>", "<none>", "<none>", "<refused>", "<none>"}},
		{"a proxy with a password", secret, []any{"m4", "", "Push", "Unknown", "<unknown>", "<none>", "<none>", "<none>", "", "http://***@p:3128"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := newTable(now).ConvertToTable(t.Context(), &tc.cluster, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Rows[0].Cells); diff != "" {
				t.Error(diff)
			}
			if len(got.ColumnDefinitions) != len(tc.want) {
				t.Errorf("%d columns", len(got.ColumnDefinitions))
			}
		})
	}
	t.Run("a list has a row for each and the place to continue from", func(t *testing.T) {
		list := &internalversion.ClusterList{ListMeta: metav1.ListMeta{Continue: "c", ResourceVersion: "9"}, Items: []internalversion.Cluster{full, bare}}
		got, err := newTable(now).ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Rows) != 2 || got.Continue != "c" || got.ResourceVersion != "9" || got.ColumnDefinitions != nil {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("other objects are refused", func(t *testing.T) {
		if _, err := newTable(now).ConvertToTable(t.Context(), &metav1.Status{}, nil); err == nil {
			t.Error("no error")
		}
	})
	t.Run("the first five columns are shown by default", func(t *testing.T) {
		for i, c := range columns() {
			if want := int32(0); (c.Priority == want) != (i < 5) {
				t.Errorf("column %s has priority %d", c.Name, c.Priority)
			}
		}
	})
}
