package interpreter

import (
	"encoding/json"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

type (
	object = unstructured.Unstructured
	item   = workv1alpha2.AggregatedStatusItem
)

// memberStatus decodes the status of an item and reports whether it has one. What
// cannot be decoded counts as no status: one member must not keep the template from
// showing what the others have.
func memberStatus(it *item, into any) bool {
	if it.Status == nil || len(it.Status.Raw) == 0 {
		return false
	}
	fresh := reflect.New(reflect.TypeOf(into).Elem())
	if quantity.CheckJSON(it.Status.Raw, fresh.Type()) != nil || json.Unmarshal(it.Status.Raw, fresh.Interface()) != nil {
		return false
	}
	reflect.ValueOf(into).Elem().Set(fresh.Elem())
	return true
}

// replaceStatus returns the object with a new status, or the object itself when
// that equals the old one. Both statuses are pointers to the same type.
func replaceStatus(obj *object, was, status any) (*object, error) {
	if reflect.DeepEqual(was, status) {
		return obj, nil
	}
	tree, err := encode(status)
	if err != nil {
		return nil, err
	}
	return withStatus(obj, tree), nil
}

// withStatus returns the object with a new status; all but the top level and the
// metadata is shared.
func withStatus(obj *object, status map[string]any) *object {
	top := make(map[string]any, len(obj.Object)+1)
	maps.Copy(top, obj.Object)
	if metadata, ok := top["metadata"].(map[string]any); ok {
		top["metadata"] = pickAll(metadata)
	}
	top["status"] = status
	return &object{Object: top}
}

func pickAll(m map[string]any) map[string]any {
	c := make(map[string]any, len(m))
	maps.Copy(c, m)
	return c
}

// workload is how the status of a kind of workload adds up. S is the status as
// it is collected.
type workload[S any] struct {
	// counters are the fields that are summed.
	counters func(*S) []*int32
	// observed is the observed generation.
	observed func(*S) *int64
	// generations are those of a member's status.
	generations func(*S) *generations
	// memberGeneration compares the generation of the template that a member has
	// with that of the member's own object, as the reference does for
	// StatefulSets.
	memberGeneration bool
}

// aggregate sums the counters, keeps the other fields of the template's status,
// and takes its generation for observed once every member has caught up.
func (w workload[S]) aggregate(obj *object, items []item) (*object, error) {
	var was, status S
	old := child(obj.Object, "status")
	if err := decode(old, &was); err != nil {
		return nil, err
	}
	if err := decode(old, &status); err != nil {
		return nil, err
	}
	*w.generations(&was), *w.generations(&status) = generations{}, generations{}
	totals := w.counters(&status)
	for _, total := range totals {
		*total = 0
	}
	generation, caughtUp := obj.GetGeneration(), 0
	for i := range items {
		var member S
		if !memberStatus(&items[i], &member) {
			continue
		}
		for j, counter := range w.counters(&member) {
			*totals[j] += *counter
		}
		if w.caughtUp(&member, generation) {
			caughtUp++
		}
	}
	if caughtUp == len(items) {
		*w.observed(&status) = generation
	}
	return replaceStatus(obj, &was, &status)
}

func (w workload[S]) caughtUp(member *S, generation int64) bool {
	g := w.generations(member)
	if w.memberGeneration {
		generation = g.Generation
	}
	return *w.observed(member) >= g.Generation && g.ResourceTemplateGeneration >= generation
}

func aggregateDeployment(obj *object, items []item) (*object, error) {
	return workload[deploymentStatus]{
		counters: func(s *deploymentStatus) []*int32 {
			return []*int32{&s.Replicas, &s.UpdatedReplicas, &s.ReadyReplicas, &s.AvailableReplicas, &s.UnavailableReplicas}
		},
		observed:    func(s *deploymentStatus) *int64 { return &s.ObservedGeneration },
		generations: func(s *deploymentStatus) *generations { return &s.generations },
	}.aggregate(obj, items)
}

func aggregateReplicaSet(obj *object, items []item) (*object, error) {
	return workload[replicaSetStatus]{
		counters: func(s *replicaSetStatus) []*int32 {
			return []*int32{&s.Replicas, &s.ReadyReplicas, &s.AvailableReplicas}
		},
		observed:    func(s *replicaSetStatus) *int64 { return &s.ObservedGeneration },
		generations: func(s *replicaSetStatus) *generations { return &s.generations },
	}.aggregate(obj, items)
}

func aggregateDaemonSet(obj *object, items []item) (*object, error) {
	return workload[daemonSetStatus]{
		counters: func(s *daemonSetStatus) []*int32 {
			return []*int32{
				&s.CurrentNumberScheduled, &s.DesiredNumberScheduled, &s.NumberAvailable, &s.NumberMisscheduled,
				&s.NumberReady, &s.UpdatedNumberScheduled, &s.NumberUnavailable,
			}
		},
		observed:    func(s *daemonSetStatus) *int64 { return &s.ObservedGeneration },
		generations: func(s *daemonSetStatus) *generations { return &s.generations },
	}.aggregate(obj, items)
}

func aggregateStatefulSet(lenient bool) func(*object, []item) (*object, error) {
	return workload[statefulSetStatus]{
		counters: func(s *statefulSetStatus) []*int32 {
			return []*int32{&s.AvailableReplicas, &s.CurrentReplicas, &s.ReadyReplicas, &s.Replicas, &s.UpdatedReplicas}
		},
		observed:         func(s *statefulSetStatus) *int64 { return &s.ObservedGeneration },
		generations:      func(s *statefulSetStatus) *generations { return &s.generations },
		memberGeneration: !lenient,
	}.aggregate
}
