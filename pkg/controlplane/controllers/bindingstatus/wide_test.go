package bindingstatus

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// The status of a binding with many targets is written a few times during a rollout, and soon after its end.
func TestReconcile_WritesTheStatusOfWideBindingsRarely(t *testing.T) {
	const targets = 60
	clusters := make([]string, targets)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("m%03d", i)
	}
	b := newBench(t, scope.NamespacedBinding(), clusters...)
	for _, c := range clusters {
		b.set(workIn(c, "True", "Healthy", `{"replicas":1}`))
	}
	b.want(status.WrittenTTL, "binding", "template")
	b.Clock.Step(time.Minute)
	const step = 20 * time.Millisecond
	again := time.Duration(0)
	for _, c := range clusters { // 1.2 s
		work := workIn(c, "True", "Healthy", `{"replicas":2}`)
		memory.Change(b.Env, client.ObjectKeyFromObject(&work), func(stored *workv1alpha1.Work) { stored.Spec, stored.Status = work.Spec, work.Status })
		var err error
		again, err = b.reconcile()
		b.Must(err)
		b.Clock.Step(step)
	}
	if n := len(b.patches); n > 5 {
		t.Errorf("%d writes: %v", n, b.patches)
	}
	b.patches = nil
	for waited := time.Duration(0); len(b.patches) == 0; waited += again {
		if again <= 0 || waited > time.Second {
			t.Fatalf("the last status is not written after %s", waited)
		}
		b.Clock.Step(again)
		var err error
		again, err = b.reconcile()
		b.Must(err)
	}
	for _, item := range b.status().AggregatedStatus {
		if got := string(item.Status.Raw); got != `{"replicas":2}` {
			t.Fatalf("cluster %s: %s", item.ClusterName, got)
		}
	}
}
