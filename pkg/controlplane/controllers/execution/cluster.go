package execution

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	bindingworks "github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

const (
	// statusDelay is how long a change of the status of an object waits for the next one: controllers in members write several in a row.
	statusDelay = 50 * time.Millisecond
	// leavingWorkers is the number of workers that a cluster gets in addition while it leaves: their requests are small, and users wait for
	// the removal of all its objects.
	leavingWorkers = 20
	// The limit of the objects of one kind, in bytes. It depends on the number of Works only, which a member cannot raise.
	maxSize        = 32 << 20
	maxSizePerWork = 64 << 10
)

// runner reconciles the Works of one cluster while that exists.
type runner struct {
	*Controller
	cluster, namespace string
	rules              Interpreter
	debouncer          *controllers.Debouncer[string]

	ctx     context.Context //nolint:containedctx // the life of the workers and of what is observed
	cancel  context.CancelFunc
	queue   priorityqueue.PriorityQueue[string]
	workers sync.WaitGroup

	// mu guards the maps, the kinds and what is below. The state of a Work belongs to the worker that reconciles it.
	mu      sync.Mutex
	works   map[string]*workState
	kinds   map[schema.GroupVersionResource]*kind
	member  *access.Member
	leaving bool
}

func newRunner(ctx context.Context, c *Controller, cluster string) *runner {
	log := ctrllog.FromContext(ctx).WithName(Name).WithValues("Cluster", klog.KRef("", cluster))
	r := &runner{
		Controller: c, cluster: cluster, namespace: names.ExecutionNamespace(cluster), rules: c.interpreter(cluster),
		debouncer: newDebouncer(), works: map[string]*workState{}, kinds: map[schema.GroupVersionResource]*kind{},
	}
	r.ctx, r.cancel = context.WithCancel(ctrllog.IntoContext(ctx, log))
	tenant := bindingworks.Tenant(ctx, c.client, services.ServiceNamespaceLabel, services.MCSNamespaceLabel)
	r.queue = controllers.NewQueue(controllers.QueueOptions[string]{
		Name: "execution-" + cluster, Workers: c.deps.workers(), RateLimiter: controllers.RateLimiter[string](c.deps.Retry),
		Tenant: func(work string) string {
			return tenant(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.namespace, Name: work}})
		},
	})
	return r
}

// start starts workers.
func (r *runner) start(workers int) {
	for range workers {
		r.workers.Go(func() { controllers.Work(r.ctx, r.queue, r.reconcile) })
	}
}

// leave starts more workers for the removal of the objects of a cluster that is being deleted. A worker calls it.
func (r *runner) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leaving {
		r.leaving = true
		r.start(leavingWorkers)
	}
}

// stop returns when nothing runs any more.
func (r *runner) stop() {
	r.cancel()
	r.queue.ShutDown()
	r.workers.Wait()
	for _, objects := range r.observed(nil) {
		objects.Stop()
	}
}

// add enqueues Works, and addLow behind those that users changed: those that exist at the start, and those that a cluster missed while it was
// not Ready.
func (r *runner) add(works ...string) {
	r.queue.AddWithOpts(priorityqueue.AddOpts{}, works...)
}

func (r *runner) addLow(works ...string) { controllers.AddLowPriority(r.queue, works...) }

// state returns the state of a Work. That of an earlier Work of the same name is dropped.
func (r *runner) state(work *workv1alpha1.Work) *workState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.works[work.Name]
	if s == nil || s.uid != work.UID {
		r.releaseLocked(work.Name, s)
		s = &workState{uid: work.UID}
		r.works[work.Name] = s
	}
	return s
}

// forget drops the state of a Work.
func (r *runner) forget(work string) {
	r.deps.Stuck.clear(r.cluster, work)
	r.debouncer.Forget(work)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releaseLocked(work, r.works[work])
	delete(r.works, work)
}

// release drops the objects of a Work, whose kinds are not observed any more after the last one.
func (r *runner) release(work string, s *workState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releaseLocked(work, s)
}

func (r *runner) releaseLocked(work string, s *workState) {
	if s == nil {
		return
	}
	for _, o := range s.objects {
		if o.kind == nil {
			continue
		}
		if o.kind.works[work]--; o.kind.works[work] <= 0 {
			delete(o.kind.works, work)
		}
		if len(o.kind.works) == 0 {
			o.kind.stop()
			delete(r.kinds, o.kind.gvr)
		}
	}
	s.objects = nil
}

// kind is what is observed of the objects of a kind that Works own, as long as there are any.
type kind struct {
	gvk schema.GroupVersionKind
	gvr schema.GroupVersionResource
	// works has the number of objects by Work.
	works map[string]int
	// revision counts the changes of the rules of the kind: an object that was applied or observed with another one is so again.
	revision uint64
	objects  *follow.Projection[execution.Snapshot]
	// stop ends the projection. It does not wait for callbacks, which need the lock.
	stop    context.CancelFunc
	started time.Time
}

// open returns the member, through which the kinds are observed from now on.
func (r *runner) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error) {
	m, err := r.deps.Members.Member(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", r.cluster, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member == m || r.member != nil && m.Context().Err() != nil {
		return m, nil
	}
	r.member = m
	m.OnClose(r.reopen)
	for _, k := range r.kinds {
		k.stop()
		r.observeLocked(k) //nolint:contextcheck // it ends with the runner
	}
	return m, nil
}

// reopen enqueues all Works after the member was closed: the first one opens it again.
func (r *runner) reopen() {
	r.mu.Lock()
	works := slices.Collect(maps.Keys(r.works))
	r.mu.Unlock()
	r.addLow(works...)
}

// acquire returns the kind of an object of a Work.
func (r *runner) acquire(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, work string) *kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kinds[gvr]
	if k == nil {
		k = &kind{gvr: gvr, gvk: gvk, works: map[string]int{}}
		r.kinds[gvr] = k
		r.observeLocked(k)
	}
	k.works[work]++
	return k
}

// observeLocked observes the objects of a kind through the member.
func (r *runner) observeLocked(k *kind) {
	k.objects = follow.New(follow.Config[execution.Snapshot]{
		Name:    r.cluster + " " + k.gvr.GroupResource().String(),
		Source:  follow.Objects(r.member, k.gvr, follow.Selection{Labels: workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue}),
		Project: follow.From(r.project),
		Size:    func(s execution.Snapshot) int { return s.Size() },
		MaxSize: r.maxSize,
		Changed: func(_ types.NamespacedName, old, now *execution.Snapshot) { r.changed(old, now) },
		Synced:  func() { r.add(r.using(k)...) },
		Version: func(s execution.Snapshot) string { return s.Version },
	})
	ctx, cancel := context.WithCancel(r.ctx)
	k.stop, k.started = cancel, r.deps.Clock.Now()
	k.objects.Start(ctx)
}

// project takes the snapshot of an object. It shares the content of the old one where only the status changed.
func (r *runner) project(obj *unstructured.Unstructured, old *execution.Snapshot) (execution.Snapshot, error) {
	s, err := r.hasher.Snapshot(obj)
	s.Share(old)
	return s, err
}

func (r *runner) maxSize() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maxSize + maxSizePerWork*len(r.works)
}

// using returns the Works that have objects of a kind.
func (r *runner) using(k *kind) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(k.works))
}

// changed enqueues the Work of an object that changed: at once when its content did, a little later when only its status did.
func (r *runner) changed(old, now *execution.Snapshot) {
	owner := now
	if now == nil || now.Work.Name == "" {
		owner = old
	}
	if owner == nil || owner.Work.Namespace != r.namespace || owner.Work.Name == "" {
		return
	}
	switch {
	case old != nil && (now == nil || old.UID != now.UID || old.Hash != now.Hash):
		r.add(owner.Work.Name)
	case old == nil || !old.SameStatus(now):
		r.queue.AddWithOpts(priorityqueue.AddOpts{After: statusDelay}, owner.Work.Name)
	}
}

// rulesChanged begins another revision of the affected kinds, and enqueues the Works with objects of them.
func (r *runner) rulesChanged(affects func(schema.GroupVersionKind) bool) {
	r.mu.Lock()
	var works []string
	for _, k := range r.kinds {
		if affects(k.gvk) {
			k.revision++
			works = slices.AppendSeq(works, maps.Keys(k.works))
		}
	}
	r.mu.Unlock()
	r.addLow(works...)
}

// observed returns what is observed, in no order: of all kinds, or of one.
func (r *runner) observed(only *kind) (out []*follow.Projection[execution.Snapshot]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kinds {
		if only == nil || k == only {
			out = append(out, k.objects)
		}
	}
	return out
}

// retry ends the backoff of what cannot be observed: of all kinds, or of one.
func (r *runner) retry(only *kind) {
	for _, objects := range r.observed(only) {
		objects.Retry()
	}
}

// view returns what is observed of an object, and the revision of the rules of its kind.
func (r *runner) view(k *kind, key types.NamespacedName) (execution.View, uint64) {
	r.mu.Lock()
	objects, out, revision := k.objects, execution.View{Started: k.started}, k.revision
	r.mu.Unlock()
	out.Synced, out.Version = objects.HasSynced(), objects.Version() // before the snapshot is taken
	out.Snapshot = objects.Get(key)
	return out, revision
}
