package evictions

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func bindings(s *scope.Binding, n int, tasks ...workv1alpha2.GracefulEvictionTask) []client.Object {
	var out []client.Object
	for i := range n {
		b := s.New()
		if s.Namespaced {
			b.SetNamespace("default")
		}
		b.SetName(fmt.Sprintf("b%d", i))
		b.GetSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
		if i == 0 {
			b.GetSpec().GracefulEvictionTasks = tasks
		}
		out = append(out, b)
	}
	return out
}

func ledger(t *testing.T, budget eviction.Budget, objs ...client.Object) (*Ledger, *clocktesting.FakeClock) {
	t.Helper()
	m := memory.New(t, objs...)
	return NewLedger(m.Client, budget, m.Clock), m.Clock
}

func take(t *testing.T, l *Ledger, want time.Duration) {
	t.Helper()
	if after, err := l.Take(t.Context()); err != nil || after != want {
		t.Fatalf("%s %v, want %s", after, err, want)
	}
}

func TestLedger_Take(t *testing.T) {
	l, clock := ledger(t, eviction.Budget{Bindings: 2})
	take(t, l, 0)
	clock.SetTime(now.Add(10 * time.Second))
	take(t, l, 0)
	take(t, l, 50*time.Second)
	l.Return()
	take(t, l, 0)
	clock.SetTime(now.Add(time.Minute))
	take(t, l, 0)
	take(t, l, 10*time.Second)
}

func TestLedger_PercentOfBothKinds(t *testing.T) {
	objs := append(bindings(scope.NamespacedBinding(), 10), bindings(scope.ClusterBinding(), 10)...)
	l, _ := ledger(t, eviction.Budget{Percent: 10}, objs...)
	take(t, l, 0)
	take(t, l, 0)
	take(t, l, time.Minute)
}

func TestLedger_ARestartDoesNotRenewTheBudget(t *testing.T) {
	task := func(age time.Duration) workv1alpha2.GracefulEvictionTask {
		return workv1alpha2.GracefulEvictionTask{FromCluster: "m", CreationTimestamp: &metav1.Time{Time: now.Add(-age)}}
	}
	objs := append(bindings(scope.NamespacedBinding(), 1, task(20*time.Second), task(time.Hour)), bindings(scope.ClusterBinding(), 1, workv1alpha2.GracefulEvictionTask{FromCluster: "m"})...)
	l, _ := ledger(t, eviction.Budget{Bindings: 2}, objs...)
	take(t, l, 40*time.Second)
	l, _ = ledger(t, eviction.Budget{Bindings: 3}, objs...)
	take(t, l, 0)
	take(t, l, 40*time.Second)
}

func TestLedger_ATimeToComeCountsAsNow(t *testing.T) {
	task := workv1alpha2.GracefulEvictionTask{FromCluster: "m", CreationTimestamp: &metav1.Time{Time: now.Add(24 * time.Hour)}}
	l, clock := ledger(t, eviction.Budget{Bindings: 1}, bindings(scope.NamespacedBinding(), 1, task)...)
	take(t, l, eviction.BudgetWindow)
	clock.SetTime(now.Add(eviction.BudgetWindow))
	take(t, l, 0)
}
