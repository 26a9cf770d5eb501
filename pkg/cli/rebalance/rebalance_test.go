package rebalance

import (
	"encoding/json"
	"testing"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// TestDocument pins the names of fields: scripts rely on them.
func TestDocument(t *testing.T) {
	got, err := json.Marshal(document{Rebalancer: "r", Moves: []move{{
		Workload: appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"},
		Before:   []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}, After: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}},
	}}})
	want := `{"rebalancer":"r","moves":[{"workload":{"apiVersion":"apps/v1","kind":"Deployment","name":"web","namespace":"default"},` +
		`"before":[{"name":"m1","replicas":2}],"after":[{"name":"m2","replicas":2}]}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
