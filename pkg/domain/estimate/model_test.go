package estimate

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// world is a random cluster, once as a model that is updated and once as objects.
type world struct {
	*rand.Rand
	model Model
	nodes map[string]*corev1.Node
	pods  map[string]*corev1.Pod
}

func (w *world) list(most int, pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range pairs {
		if w.IntN(2) == 0 {
			out[corev1.ResourceName(name)] = *resource.NewMilliQuantity(int64(w.IntN(most*1000)), resource.DecimalSI)
		}
	}
	return out
}

func (w *world) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": fmt.Sprint(w.IntN(3))}}}
	n.Status.Allocatable = w.list(40, "cpu", "memory", "example.com/gpu", "example.com/tpu")
	n.Status.Allocatable["pods"] = *resource.NewQuantity(int64(w.IntN(8)), resource.DecimalSI)
	if w.IntN(4) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: fmt.Sprint(w.IntN(2)), Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Spec.Unschedulable = w.IntN(6) == 0
	return n
}

func (w *world) pod() *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: w.anyNode()}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: w.list(6, "cpu", "memory", "example.com/gpu", "unknown.io/x")}}}
	p.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: w.list(8, "cpu")}}}
	if w.IntN(20) == 0 { // sums of these overflow
		p.Spec.Containers[0].Resources.Requests["memory"] = *resource.NewQuantity(1<<62+int64(w.IntN(9)), resource.BinarySI)
	}
	if w.IntN(5) == 0 {
		p.Status.Phase = corev1.PodSucceeded
	}
	return p
}

func (w *world) anyNode() string {
	if w.IntN(8) == 0 {
		return ""
	}
	return fmt.Sprintf("n%02d", w.IntN(14))
}

// step makes one change.
func (w *world) step() {
	switch w.IntN(8) {
	case 0:
		n := w.node(fmt.Sprintf("n%02d", w.IntN(12)))
		if old := w.nodes[n.Name]; old != nil && w.IntN(2) == 0 {
			n.Labels, n.Spec = old.Labels, old.Spec // amounts only
		}
		w.nodes[n.Name] = n
		w.model.SetNode(NodeOf(n))
	case 1:
		name := fmt.Sprintf("n%02d", w.IntN(12))
		delete(w.nodes, name)
		w.model.RemoveNode(name)
	default:
		key := fmt.Sprint(w.IntN(60))
		var old, now *Pod
		if p := w.pods[key]; p != nil {
			if was, ok := PodOf(p); ok {
				old = &was
			}
		}
		delete(w.pods, key)
		if w.IntN(3) > 0 {
			w.pods[key] = w.pod()
			if is, ok := PodOf(w.pods[key]); ok {
				now = &is
			}
		}
		w.model.ReplacePod(old, now)
	}
}

func (w *world) naive() *naive {
	out := &naive{pods: map[string][]*corev1.Pod{}}
	for _, n := range slices.SortedFunc(maps.Values(w.nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) }) {
		out.nodes = append(out.nodes, *n)
	}
	for _, p := range w.pods {
		out.pods[p.Spec.NodeName] = append(out.pods[p.Spec.NodeName], p)
	}
	return out
}

func (w *world) claim() *workv1alpha2.NodeClaim {
	c := &workv1alpha2.NodeClaim{}
	if w.IntN(3) == 0 {
		c.NodeSelector = map[string]string{"zone": fmt.Sprint(w.IntN(3))}
	}
	if w.IntN(3) == 0 {
		c.Tolerations = []corev1.Toleration{{Key: "dedicated", Value: "1"}, {Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
	}
	return c
}

func (w *world) components() []workv1alpha2.Component {
	out := make([]workv1alpha2.Component, 1+w.IntN(3))
	for i := range out {
		out[i].Replicas = int32(1 + w.IntN(4))
		if w.IntN(5) > 0 {
			out[i].ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{NodeClaim: w.claim(), ResourceRequest: w.list(5, "cpu", "memory", "example.com/gpu")}
		}
	}
	return out
}

func TestModel_EqualsAWalkOverAllNodesAndPods(t *testing.T) {
	for seed := range uint64(20) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
		for i := range 400 {
			w.step()
			if w.IntN(3) > 0 {
				continue
			}
			var assumed []replicas.Workload
			if w.IntN(3) == 0 {
				assumed = []replicas.Workload{{Components: w.components()}, {Components: w.components()}}
			}
			plain, snapshot := w.naive(), w.model.Snapshot()
			r := &workv1alpha2.ReplicaRequirements{NodeClaim: w.claim(), ResourceRequest: w.list(5, "cpu", "memory", "example.com/gpu", "example.com/tpu")}
			got, err := snapshot.Replicas(t.Context(), r, assumed)
			if want := plain.replicas(r, assumed); err != nil || got != want {
				t.Fatalf("seed %d, step %d: %d replicas, want %d: %v", seed, i, got, want, err)
			}
			components := w.components()
			got, err = snapshot.Sets(t.Context(), components, assumed)
			if want := plain.sets(components, assumed); err != nil || got != want {
				t.Fatalf("seed %d, step %d: %d sets, want %d: %v", seed, i, got, want, err)
			}
		}
		for key, p := range w.pods {
			if old, ok := PodOf(p); ok {
				w.model.ReplacePod(&old, nil)
			}
			delete(w.pods, key)
		}
		if len(w.model.usage) != 0 {
			t.Fatalf("seed %d: usage is left without pods: %v", seed, w.model.usage)
		}
	}
}

func TestSnapshot_IsImmutable(t *testing.T) {
	w := &world{Rand: rand.New(rand.NewPCG(7, 7)), nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
	for range 100 {
		w.step()
	}
	snapshot, r := w.model.Snapshot(), &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	want, err := snapshot.Replicas(t.Context(), r, nil)
	if err != nil || want == 0 {
		t.Fatalf("%d %v", want, err)
	}
	for range 300 {
		w.step()
		if _, err := w.model.Snapshot().Sets(t.Context(), w.components(), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := snapshot.Replicas(t.Context(), r, nil); got != want || err != nil {
			t.Fatalf("%d, want %d: %v", got, want, err)
		}
	}
}
