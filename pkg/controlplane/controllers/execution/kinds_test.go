package execution

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// swapped opens one member after the other.
type swapped struct{ access.Members }

// A worker reads what is observed while another one opens a new member.
func TestRunner_ObservesThroughTheNewMember(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.observed(configMapPath)
	o := b.state().objects[0]
	other := accesstest.New(t)
	other.Put(configMapPath, b.member.Get(configMapPath))
	b.member.Remove(configMapPath)
	b.observed(configMapPath)
	m, err := access.NewSingle("m1", other.Config(), meta.NewDefaultRESTMapper([]schema.GroupVersion{}))
	if err != nil {
		t.Fatal(err)
	}
	b.c.deps.Members = swapped{m}
	go func() { _, _ = b.runner.open(b.Context(), nil) }()
	accesstest.Eventually(t, func() error {
		if view, _ := b.runner.view(o.kind, types.NamespacedName{Namespace: "default", Name: "a"}); view.Snapshot == nil || !view.Synced {
			return errors.New("the object is not observed")
		}
		return nil
	})
}

// A cluster that is deleted, or created again with the same name, takes its runner along. Works without a cluster lose their finalizer.
func TestRunner_LivesAsLongAsItsCluster(t *testing.T) {
	b := newBench(t, configMap)
	t.Cleanup(b.c.runners.End)
	first := b.c.runner(b.Context(), b.work())
	if first == nil || b.c.runner(b.Context(), b.work()) != first {
		t.Fatal("the cluster has no runner, or several")
	}
	cluster := memory.Get[*clusterv1alpha1.Cluster](b.Env, memory.Key("", "m1"))
	b.Must(b.Stored.Delete(b.Context(), cluster))
	b.c.runners.OnDelete(cluster)
	b.delete()
	b.c.enqueue(b.Context(), b.work(), false)
	if b.c.runner(b.Context(), b.work()) != nil || b.c.clusterless.Len() != 1 {
		t.Fatal("a cluster that does not exist has a runner")
	}
	<-first.ctx.Done()
	again := build.Cluster("m1", build.Ready(metav1.ConditionTrue))
	again.UID = "again"
	b.Must(b.Stored.Create(b.Context(), again))
	if second := b.c.runner(b.Context(), b.work()); second == nil || second == first || second.ctx.Err() != nil {
		t.Error("the new cluster has no runner")
	}
	b.Must(b.Stored.Delete(b.Context(), again))
	b.c.runners.Sync()
	if _, err := b.c.reconcileClusterless(b.Context(), memory.Key("karmada-es-m1", "w")); err != nil || !b.gone() {
		t.Errorf("the Work is left: %v", err)
	}
}
