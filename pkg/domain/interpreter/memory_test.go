package interpreter

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// heap returns the live bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What the control plane holds of 10,000 objects of a Lua kind: the templates, the
// statuses of two members each, and the virtual machines that answered for them.
func TestLua_TenThousandObjectsCostNoMoreThan100MiB(t *testing.T) {
	const objects, most = 10_000, 100 << 20
	var c configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict([]byte(customizationYAML), &c); err != nil {
		t.Fatal(err)
	}
	before := heap()
	engine := NewLuaEngine(lua.DefaultLimits())
	layer := NewDeclarative(engine)
	layer.Load([]*configv1alpha1.ResourceInterpreterCustomization{&c})
	in := New(WithLayer(layer))
	template := parse(t, deploymentYAML)
	held := make([]any, objects)
	var workers sync.WaitGroup
	next := make(chan int)
	for range 20 {
		workers.Go(func() {
			for i := range next {
				obj := template.DeepCopy()
				obj.SetName(fmt.Sprint("nginx-", i))
				replicas, requirements, err := in.GetReplicas(obj)
				var status *apiruntime.RawExtension
				if err == nil {
					status, err = in.ReflectStatus(obj)
				}
				items := []workv1alpha2.AggregatedStatusItem{
					{ClusterName: "m1", Status: status, Applied: true}, {ClusterName: "m2", Status: status.DeepCopy(), Applied: true},
				}
				if err == nil {
					obj, err = in.AggregateStatus(obj, items)
				}
				if err != nil {
					t.Error(err)
				}
				held[i] = []any{obj, items, replicas, requirements}
			}
		})
	}
	for i := range objects {
		next <- i
	}
	close(next)
	workers.Wait()
	cost := heap() - before
	stats := engine.PoolStats()
	t.Logf("%d objects: %d MiB live; %d machines made, %d kept at the end", objects, cost>>20, stats.Created, stats.Created-stats.Dropped)
	if cost > most {
		t.Errorf("%d bytes", cost)
	}
	if kept := stats.Created - stats.Dropped; kept > 10 {
		t.Errorf("%d machines are kept", kept)
	}
	runtime.KeepAlive(held)
}
