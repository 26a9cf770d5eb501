package scheduler

import (
	"cmp"
	"sync"

	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/resourceversion"
	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// known is a binding with its scope.
type known struct {
	workv1alpha2.Binding
	scope *scope.Binding
	// owned is set for those that this scheduler schedules; others count as peers
	// only.
	owned bool
}

// lead is a binding of which a later version is stored than the informer reports.
type lead struct {
	written status.Written[workv1alpha2.Binding]
	// reported is what the informer reported since; nil for nothing.
	reported workv1alpha2.Binding
}

// bindings holds the bindings as the informers report them, or later versions that
// the API server returned. They are shared and read-only.
type bindings struct {
	schedulerName string
	clock         clock.PassiveClock
	// written holds the versions that the last two writes of the scheduler made.
	written *status.Memory[key, [2]string]
	// created are those that were created with targets, and whose status waits.
	created *status.Memory[key, creation]
	waiting controllers.Backlog[key]

	mu    sync.RWMutex
	byKey map[key]known
	leads map[key]*lead
}

func newBindings(schedulerName string, c clock.PassiveClock) *bindings {
	return &bindings{
		schedulerName: schedulerName, clock: c, written: status.NewMemory[key, [2]string](0), created: status.NewMemory[key, creation](0),
		byKey: map[key]known{}, leads: map[key]*lead{},
	}
}

// observe stores a binding that the informer reports, unless a later version is
// stored.
func (b *bindings) observe(s *scope.Binding, binding workv1alpha2.Binding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.store(keyOf(binding), s, binding)
}

// store is observe under the lock. It reports whether it stored the binding.
func (b *bindings) store(k key, s *scope.Binding, binding workv1alpha2.Binding) bool {
	if l := b.leads[k]; l != nil {
		if latest, _ := l.written.Latest(binding, binding, b.clock.Now()); latest != binding {
			l.reported = binding
			return false
		}
		delete(b.leads, k)
	}
	b.byKey[k] = b.known(s, binding)
	return true
}

func (b *bindings) known(s *scope.Binding, binding workv1alpha2.Binding) known {
	return known{Binding: binding, scope: s, owned: owned(binding, b.schedulerName)}
}

// record stores a binding that the API server returned to a read or a write, unless
// it is gone or a later version is stored. It returns the binding.
func (b *bindings) record(s *scope.Binding, binding workv1alpha2.Binding) known {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := keyOf(binding), b.clock.Now()
	recorded := b.known(s, binding)
	have, ok := b.byKey[k]
	if !ok || have.GetResourceVersion() == binding.GetResourceVersion() ||
		have.GetUID() == binding.GetUID() && resourceversion.Newer(have.GetResourceVersion(), binding.GetResourceVersion()) {
		return recorded
	}
	l := &lead{}
	l.written.Record(binding, binding, now)
	b.byKey[k], b.leads[k] = recorded, l
	return recorded
}

// expire replaces the bindings that the informer still reports with an earlier
// version a while after the write, as after a restore of etcd, and returns them.
func (b *bindings) expire() []known {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []known
	for k, l := range b.leads {
		if l.reported != nil && b.store(k, b.byKey[k].scope, l.reported) {
			out = append(out, b.byKey[k])
		}
	}
	return out
}

// wrote records the version that a write of the scheduler made.
func (b *bindings) wrote(k key, version string) {
	b.written.Update(k, func(last [2]string, _ bool) ([2]string, bool) { return [2]string{last[1], version}, true })
}

// wroteVersion reports whether one of the last writes of the scheduler made the
// version.
func (b *bindings) wroteVersion(k key, version string) bool {
	last, _ := b.written.Get(k)
	return version != "" && (last[0] == version || last[1] == version)
}

func (b *bindings) remove(k key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byKey, k)
	delete(b.leads, k)
	b.written.Delete(k)
	b.forgetCreated(k)
}

// forgetCreated ends the wait of a binding that was created with targets.
func (b *bindings) forgetCreated(k key) {
	b.created.Delete(k)
	b.waiting.Forget(k)
}

func (b *bindings) get(k key) (known, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	found, ok := b.byKey[k]
	return found, ok
}

// matching returns the bindings that a function selects, also those of other schedulers.
func (b *bindings) matching(selected func(known) bool) []known {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []known
	for _, candidate := range b.byKey {
		if selected(candidate) {
			out = append(out, candidate)
		}
	}
	return out
}

// owned reports whether a scheduler of this name handles the binding.
func owned(b workv1alpha2.Binding, schedulerName string) bool {
	return assigned(b, schedulerName) && !b.GetSpec().SchedulingSuspended() && scope.Claimed(b)
}

// assigned reports whether the binding names the scheduler of this name.
func assigned(b workv1alpha2.Binding, schedulerName string) bool {
	return cmp.Or(b.GetSpec().SchedulerName, policyv1alpha1.DefaultSchedulerName) == schedulerName
}
