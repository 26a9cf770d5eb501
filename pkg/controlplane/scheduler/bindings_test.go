package scheduler

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func version(scope *scope, v string) workv1alpha2.Binding {
	b := fill(scope.New(), scope, dividedPlacement())
	b.SetResourceVersion(v)
	return b
}

func TestBindings_VersionsOutOfOrder(t *testing.T) {
	for _, scope := range bothScopes() {
		b := newBench(t).bindings
		k := keyOf(version(scope, "1"))
		expect := func(when, want string) {
			t.Helper()
			if got, _ := b.get(k); got.Binding == nil || got.GetResourceVersion() != want {
				t.Errorf("%s/%s: got %v, want version %s", scope.Kind, when, got.Binding, want)
			}
		}
		b.observe(scope, version(scope, "1"))
		b.record(scope, version(scope, "3"))
		expect("a write", "3")
		b.observe(scope, version(scope, "2"))
		expect("the informer lags", "3")
		b.observe(scope, version(scope, "3"))
		expect("the informer caught up", "3")
		b.observe(scope, version(scope, "2"))
		expect("etcd was restored", "2")
		b.observe(scope, version(scope, "5"))
		b.record(scope, version(scope, "4"))
		expect("the informer was faster than the response", "5")
		again := version(scope, "1")
		again.SetUID(types.UID("u2"))
		b.observe(scope, again)
		expect("deleted and created again", "1")
		b.remove(k)
		b.record(scope, version(scope, "6"))
		if _, ok := b.get(k); ok {
			t.Errorf("%s: the response of a write brought a deleted binding back", scope.Kind)
		}
	}
}

// A write that a restore of etcd undid is not waited for forever.
func TestBindings_RestoreThatUndoesAWrite(t *testing.T) {
	scope := namespacedScope()
	b := newBench(t, fill(scope.New(), scope, dividedPlacement()))
	b.observer.clusterChanged(cluster("m1", 10), true)
	undone := b.see(scope)
	b.settle()
	b.observer.bindingChanged(scope, b.see(scope), undone)
	b.settle()
	b.bindings.record(scope, version(scope, "100000"))
	b.observer.bindingChanged(scope, undone, undone)
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
