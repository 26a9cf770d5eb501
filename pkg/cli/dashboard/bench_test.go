package dashboard

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/build"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

// BenchmarkOverview computes the state of 1,000 workloads in each of 50 clusters, as after a change, and the page.
func BenchmarkOverview(b *testing.B) {
	facts := &snapshot.Federation{Now: time.Unix(1000, 0)}
	var targets []workv1alpha2.TargetCluster
	for i := range 50 {
		name := fmt.Sprintf("member%02d", i)
		facts.Clusters = append(facts.Clusters, build.Cluster(name, build.Ready(metav1.ConditionTrue)))
		targets = append(targets, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
	}
	for i := range 1000 {
		w := binding(fmt.Sprintf("ns%02d", i%20), fmt.Sprintf("workload%04d", i))
		w.Spec.Clusters = targets
		for _, t := range targets {
			w.Status.AggregatedStatus = append(w.Status.AggregatedStatus, item(t.Name, "Healthy", `{"availableReplicas":2,"generation":1,"observedGeneration":1,"readyReplicas":2,"replicas":2,"resourceTemplateGeneration":1,"updatedReplicas":2}`))
		}
		facts.Bindings = append(facts.Bindings, w)
	}
	s := testServer(b, facts)
	for b.Loop() {
		s.live.set(facts, nil, false)
		if code, body := s.page(b, "?from=500"); code != http.StatusOK || len(body) < 100_000 {
			b.Fatalf("%d: %s", code, body)
		}
	}
}
