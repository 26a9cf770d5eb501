package agent

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestServes_OnlyThisClusterInPullMode(t *testing.T) {
	a := &membership{options: &Options{ClusterName: "m3"}, id: "id-3"}
	tests := []struct {
		name    string
		cluster clusterv1alpha1.Cluster
		want    bool
	}{
		{"its own", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-3"}}, true},
		{"another cluster that took the name", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-4"}}, false},
		{"in Push mode", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, ID: "id-3"}}, false},
		{"another name", clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m4"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id-3"}}, false},
	}
	for _, tt := range tests {
		if got := a.serves(&tt.cluster); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	a.abandoned.Store(true)
	if a.serves(&tests[0].cluster) {
		t.Error("a cluster that was abandoned is served")
	}
}
