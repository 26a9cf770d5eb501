package scheduler

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func version(sc *scope.Binding, v string) workv1alpha2.Binding {
	b := fill(sc.New(), sc, dividedPlacement())
	b.SetResourceVersion(v)
	return b
}

func TestBindings_VersionsOutOfOrder(t *testing.T) {
	for _, sc := range scope.Bindings() {
		b := newBench(t).bindings
		k := keyOf(version(sc, "1"))
		expect := func(when, want string) {
			t.Helper()
			if got, _ := b.get(k); got.Binding == nil || got.GetResourceVersion() != want {
				t.Errorf("%s/%s: got %v, want version %s", sc.Kind, when, got.Binding, want)
			}
		}
		b.observe(sc, version(sc, "1"))
		b.record(sc, version(sc, "3"))
		expect("a write", "3")
		b.observe(sc, version(sc, "2"))
		expect("the informer lags", "3")
		b.observe(sc, version(sc, "3"))
		expect("the informer caught up", "3")
		b.observe(sc, version(sc, "2"))
		expect("etcd was restored", "2")
		b.observe(sc, version(sc, "5"))
		b.record(sc, version(sc, "4"))
		expect("the informer was faster than the response", "5")
		again := version(sc, "1")
		again.SetUID(types.UID("u2"))
		b.observe(sc, again)
		expect("deleted and created again", "1")
		b.remove(k)
		b.record(sc, version(sc, "6"))
		if _, ok := b.get(k); ok {
			t.Errorf("%s: the response of a write brought a deleted binding back", sc.Kind)
		}
	}
}

// A write that a restore of etcd undid is not waited for forever.
func TestBindings_RestoreThatUndoesAWrite(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 10), true)
	undone := b.see(sc)
	b.runQueue()
	b.observer.bindingChanged(sc, b.see(sc), undone)
	b.runQueue()
	b.bindings.record(sc, version(sc, "100000"))
	b.observer.bindingChanged(sc, undone, undone)
	b.observer.sweep()
	if active, _, _ := b.queue.Pending(); active > 0 {
		t.Error("an earlier version was queued at once")
	}
	b.clock.Step(status.WrittenTTL)
	b.observer.sweep()
	if got, _ := b.bindings.get(keyOf(undone)); got.GetResourceVersion() != undone.GetResourceVersion() {
		t.Errorf("version %s is stored, the informer reports %s", got.GetResourceVersion(), undone.GetResourceVersion())
	}
	if active, _, _ := b.queue.Pending(); active != 1 {
		t.Error("it is not scheduled again")
	}
}
