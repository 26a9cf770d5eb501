package execution

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// condition returns the condition ObjectsStuck of the cluster.
func (b *bench) stuck() string {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	for _, condition := range b.c.deps.Stuck.Conditions(c) {
		return string(condition.Status) + " " + condition.Message
	}
	return ""
}

// removed returns the condition Removed of the Work.
func (b *bench) removed() string {
	if c := meta.FindStatusCondition(b.work().Status.Conditions, workv1alpha1.WorkRemoved); c != nil {
		return string(c.Status) + " " + c.Reason + " " + c.Message
	}
	return ""
}

// TestRemove_RefusedByTheMember deletes a Work whose object the member does not delete: it is reported once, with the words of the member.
func TestRemove_RefusedByTheMember(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.Events()
	b.delete()
	b.member.Fail(func(r *http.Request) int {
		if r.Method == http.MethodDelete {
			return http.StatusForbidden
		}
		return 0
	})
	for range 2 {
		if _, err := b.sync(); err == nil || b.gone() {
			t.Fatalf("gone %v, %v", b.gone(), err)
		}
	}
	if got, want := b.removed(), "False RemovalFailed deleting ConfigMap default/a in cluster m1: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := b.stuck(), "True 1 of the objects that leave the cluster stay, such as: deleting ConfigMap default/a in cluster m1: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := b.Events(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning RemovalFailed The objects of work(karmada-es-m1/w) stay in cluster(m1): deleting ConfigMap") {
		t.Errorf("events %q", got)
	}
	b.member.Fail(nil)
	b.mustSync()
	if !b.gone() || b.stuck() != "" {
		t.Errorf("gone %v, %s", b.gone(), b.stuck())
	}
}

// TestRemove_Finalizers deletes a Work whose object has a finalizer in the member: the Work stays as long as the object, and reports it after
// a while, unless the cluster is removed.
func TestRemove_Finalizers(t *testing.T) {
	for name, leaves := range map[string]bool{"a Work is deleted": false, "the cluster is removed": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, configMap)
			b.mustSync()
			obj := b.member.Get(configMapPath)
			obj.SetFinalizers([]string{"example.io/f"})
			b.member.Put(configMapPath, obj)
			b.observed(configMapPath)
			b.delete()
			if leaves {
				b.cluster(func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{"f"} })
				if err := b.Client.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}); err != nil {
					t.Fatal(err)
				}
				b.mustSync()
				if !b.gone() {
					t.Error("it waits")
				}
				return
			}
			if wait := b.mustSync(); wait != emptyRetry || b.gone() || b.removed() != "" {
				t.Fatalf("wait %s, gone %v, %s", wait, b.gone(), b.removed())
			}
			obj.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			obj.SetUID(types.UID("anew"))
			b.member.Put(configMapPath, obj)
			b.Clock.SetTime(time.Now().Add(finalizingGrace))
			wait := b.mustSync()
			if want := "False WaitingForFinalizers ConfigMap default/a waits for example.io/f"; b.removed() != want || wait < emptyRetry {
				t.Errorf("got %s, want %s; wait %s", b.removed(), want, wait)
			}
			b.member.Remove(configMapPath)
			b.mustSync()
			if !b.gone() || b.stuck() != "" {
				t.Errorf("gone %v, %s", b.gone(), b.stuck())
			}
		})
	}
}

// TestStuck_WorksWithoutBindings reports namespaces and other objects without a binding that are not applied on the cluster.
func TestStuck_WorksWithoutBindings(t *testing.T) {
	b := newBench(t, configMap)
	foreign := decode(t, configMap)
	b.member.Put(configMapPath, foreign)
	if _, err := b.sync(); err == nil {
		t.Fatal("it was applied")
	}
	if got, want := b.stuck(), "True 1 of the objects that no binding has are not applied, such as: default/a: resource(kind=ConfigMap, default/a) already exists"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	b.member.Remove(configMapPath)
	b.mustSync()
	if b.stuck() != "" {
		t.Errorf("got %s", b.stuck())
	}
}
