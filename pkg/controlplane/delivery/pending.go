package delivery

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

// SchedulerWait is how long what a binding delivers stays as it is at most while the scheduler has to choose targets anew.
const SchedulerWait = 2 * time.Second

// Pending knows which bindings wait for the scheduler.
type Pending struct {
	clock   clock.PassiveClock
	waiting *status.Memory[types.NamespacedName, wait]
}

// wait is that of a generation of a binding.
type wait struct {
	generation int64
	until      time.Time
}

// NewPending returns a Pending that knows of no binding.
func NewPending(c clock.PassiveClock) *Pending {
	return &Pending{clock: c, waiting: status.NewMemory[types.NamespacedName, wait](0)}
}

// Wait returns how long to wait for the scheduler, which is about to choose the targets of a binding anew, as placement or replicas have
// changed: what is written before would be written again, and would reach clusters that the binding leaves.
func (p *Pending) Wait(b workv1alpha2.Binding) time.Duration {
	key := client.ObjectKeyFromObject(b)
	spec, status, applied := b.GetSpec(), b.GetStatus(), b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	if spec.Placement == nil || applied == "" || spec.SchedulingSuspended() || meta.IsStatusConditionFalse(status.Conditions, workv1alpha2.Scheduled) ||
		!core.PlacementChanged(spec.Placement, applied, status.SchedulerObservedAffinityName) && !core.ReplicasChanged(spec, false) {
		p.Forget(key)
		return 0
	}
	w, _ := p.waiting.Get(key)
	if w.generation != b.GetGeneration() {
		w = wait{b.GetGeneration(), p.clock.Now().Add(SchedulerWait)}
		p.waiting.Set(key, w)
	}
	return w.until.Sub(p.clock.Now())
}

// PlacementApplied reports whether the scheduler has applied another placement to a binding, perhaps with the same targets as before: the
// wait is over.
func PlacementApplied(before, now client.Object) bool {
	return now.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation] != before.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
}

// Forget forgets a binding that is gone.
func (p *Pending) Forget(key types.NamespacedName) { p.waiting.Delete(key) }
