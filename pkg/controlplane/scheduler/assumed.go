package scheduler

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// assumedFor is how long replicas that were assigned count before the members
// show them.
const assumedFor = 5 * time.Minute

// assumptions remember what was just assigned, so that decisions which follow do
// not give the same room away again. It does nothing unless enabled.
type assumptions struct {
	enabled bool
	clock   clock.PassiveClock

	mu    sync.Mutex
	byKey map[key]*assumption
}

type assumption struct {
	expires   time.Time
	byCluster map[string]replicas.Workload
}

// record takes the targets that a binding was given, before being what it had.
func (a *assumptions) record(k key, spec *workv1alpha2.ResourceBindingSpec, before, targets []workv1alpha2.TargetCluster) {
	if !a.enabled || k.Namespace == "" || !spec.IsWorkload() {
		return
	}
	had := make(map[string]int32, len(before))
	for i := range before {
		had[before[i].Name] = before[i].Replicas
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.byKey[k]
	next := &assumption{expires: a.clock.Now().Add(assumedFor), byCluster: map[string]replicas.Workload{}}
	for i := range targets {
		t := &targets[i]
		held, was := had[t.Name]
		more := t.Replicas - held
		switch {
		case was && (more <= 0 || len(spec.Components) > 0):
			// It runs there already; what is assumed of it stays.
			if kept != nil {
				if w, ok := kept.byCluster[t.Name]; ok {
					next.byCluster[t.Name] = w
				}
			}
		default:
			next.byCluster[t.Name] = replicas.Workload{Namespace: k.Namespace, Components: footprint(spec, more)}
		}
	}
	if a.byKey == nil {
		a.byKey = map[key]*assumption{}
	}
	a.byKey[k] = next
}

// footprint returns what n replicas, or one set of components, take.
func footprint(spec *workv1alpha2.ResourceBindingSpec, n int32) []workv1alpha2.Component {
	if len(spec.Components) > 0 {
		return spec.Components
	}
	c := workv1alpha2.Component{Name: spec.Resource.Name, Replicas: n}
	if r := spec.ReplicaRequirements; r != nil {
		c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: r.NodeClaim, ResourceRequest: r.ResourceRequest, PriorityClassName: r.PriorityClassName,
		}
	}
	return []workv1alpha2.Component{c}
}

// observe releases what has become healthy.
func (a *assumptions) observe(k key, was, now *workv1alpha2.ResourceBindingStatus) {
	if !a.enabled {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	assumed, ok := a.byKey[k]
	if !ok {
		return
	}
	for i := range now.AggregatedStatus {
		item := &now.AggregatedStatus[i]
		if item.Health == workv1alpha2.ResourceHealthy && healthIn(was, item.ClusterName) != workv1alpha2.ResourceHealthy {
			delete(assumed.byCluster, item.ClusterName)
		}
	}
}

func healthIn(s *workv1alpha2.ResourceBindingStatus, cluster string) workv1alpha2.ResourceHealth {
	for i := range s.AggregatedStatus {
		if s.AggregatedStatus[i].ClusterName == cluster {
			return s.AggregatedStatus[i].Health
		}
	}
	return ""
}

func (a *assumptions) drop(k key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byKey, k)
}

// sweep forgets what has expired.
func (a *assumptions) sweep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.byKey, func(_ key, assumed *assumption) bool { return a.clock.Now().After(assumed.expires) })
}

// others returns, by cluster, what is assumed of all bindings but one.
func (a *assumptions) others(k key) map[string][]replicas.Workload {
	if !a.enabled {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var out map[string][]replicas.Workload
	for other, assumed := range a.byKey {
		if other == k || a.clock.Now().After(assumed.expires) {
			continue
		}
		for cluster, w := range assumed.byCluster {
			if out == nil {
				out = map[string][]replicas.Workload{}
			}
			out[cluster] = append(out[cluster], w)
		}
	}
	return out
}
