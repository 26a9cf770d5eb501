package rebalance

import (
	"encoding/json"
	"testing"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

func TestExplained(t *testing.T) {
	workloads := []appsv1alpha1.ObjectReference{{Kind: "Deployment", Namespace: "shop", Name: "web"}}
	got := explained(&env.Env{Name: "kubectl karmada"}, workloads)
	if want := `; "kubectl karmada why deployment web -n shop" explains it`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDocument pins the names of fields: scripts rely on them.
func TestDocument(t *testing.T) {
	got, err := json.Marshal(document{Rebalancer: "r", Moves: []move{{
		Workload: appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"},
		Before:   []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}, After: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}},
		Notes: []string{"m3 is flapping"},
	}}})
	want := `{"rebalancer":"r","moves":[{"workload":{"apiVersion":"apps/v1","kind":"Deployment","name":"web","namespace":"default"},` +
		`"before":[{"name":"m1","replicas":2}],"after":[{"name":"m2","replicas":2}],"notes":["m3 is flapping"]}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}
