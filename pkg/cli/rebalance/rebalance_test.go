package rebalance

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

func TestCapacityHint(t *testing.T) {
	workloads := []appsv1alpha1.ObjectReference{{Kind: "Deployment", Namespace: "shop", Name: "web"}}
	e := &env.Env{Name: "kubectl karmada"}
	got := capacityHint(e, workloads, errors.New("deployment/web: Clusters available replicas 3 are not enough to schedule"))
	if want := `; "kubectl karmada capacity --for deployment/web -n shop" shows`; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := capacityHint(e, workloads, errors.New("deployment/web is not scheduled yet")); got != "" {
		t.Errorf("got %q", got)
	}
}

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
