package execution

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/apply"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
	bindingworks "github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// statusDelay is how long a change of the status of an object waits for the next one:
// controllers in members write several in a row.
const statusDelay = 50 * time.Millisecond

// leavingWorkers is the number of workers that a cluster gets in addition while it leaves: their requests are small, and
// users wait for the removal of all its objects.
const leavingWorkers = 20

// runner reconciles the Works of one cluster.
type runner struct {
	c                  *Controller
	cluster, namespace string
	base               context.Context //nolint:containedctx // the life of the controller
	ctx                context.Context //nolint:containedctx // the life of the workers and informers
	cancel             context.CancelFunc

	queue     *queue
	works     *works
	informers *member.Informers
	applier   *applier
	reporter  *reporter
	leaving   sync.Once
}

func newRunner(ctx context.Context, c *Controller, cluster string) *runner {
	log := ctrllog.FromContext(ctx).WithName(Name).WithValues("Cluster", klog.KRef("", cluster))
	tenant := bindingworks.Tenant(ctx, c.client, services.ServiceNamespaceLabel, services.MCSNamespaceLabel)
	r := &runner{
		c: c, cluster: cluster, namespace: names.ExecutionNamespace(cluster), base: ctx,
		queue:    newQueue(cluster, c.deps.workers(), c.deps.Retry, tenant, log),
		works:    &works{hasher: c.hasher, byName: map[string]*workState{}},
		reporter: &reporter{c: c, cluster: cluster, debouncer: workstatus.NewDebouncer(c.deps.Policy)},
	}
	r.ctx, r.cancel = context.WithCancel(ctrllog.IntoContext(ctx, log))
	r.informers = member.NewInformers(r.ctx, member.Config{ //nolint:contextcheck // they end with the runner
		Cluster: cluster, Hasher: c.hasher, Clock: c.deps.Clock,
		Works: r.works.len, Changed: r.changed, Synced: func(works []string) { r.queue.add(works...) },
		WentBack: r.wentBack,
	})
	r.works.informers = r.informers
	r.applier = &applier{c: c, works: r.works, config: apply.Config{
		Cluster: cluster, Timeout: c.deps.Timeout, Hasher: c.hasher, Clock: c.deps.Clock, Metrics: c.writes,
		Written:  func(obj *unstructured.Unstructured) { c.events.objectApplied(obj, cluster) },
		WentBack: r.informers.WentBack,
	}}
	return r
}

func (r *runner) start(workers int) { r.queue.start(r.ctx, workers, r.reconcile) }

// leave starts more workers for the removal of the objects of a cluster that is being deleted.
func (r *runner) leave() {
	r.leaving.Do(func() { r.start(leavingWorkers) })
}

func (r *runner) stop() {
	r.cancel()
	r.queue.stop()
	r.informers.Wait()
}

// changed enqueues the Work of an object that changed: at once when its content did, a
// little later when only its status did.
func (r *runner) changed(old, now *member.Snapshot) {
	owner := now
	if now == nil || now.Work.Name == "" {
		owner = old
	}
	if owner == nil || owner.Work.Namespace != r.namespace || owner.Work.Name == "" {
		return
	}
	work := owner.Work.Name
	replaced := old != nil && (now == nil || old.UID != now.UID)
	if replaced {
		r.works.deleted(work, old.UID)
	}
	switch {
	case replaced, old != nil && old.Hash != now.Hash:
		r.queue.add(work)
	case old == nil || !old.SameStatus(now):
		r.queue.addAfter(work, statusDelay)
	}
}

// wentBack drops what is known of the member after it was found to be restored from an
// older copy of its store, and compares the objects of all Works with it.
func (r *runner) wentBack(from, to string) {
	r.works.epoch.Add(1)
	ctrllog.FromContext(r.ctx).Info("The store of the cluster went back, comparing all objects", "from", from, "to", to)
	r.queue.addLow(r.works.names()...)
	r.c.deps.WentBack(r.cluster, from, to)
}

// forget drops the state of a Work.
func (r *runner) forget(work string) {
	r.reporter.debouncer.Forget(work)
	r.works.forget(work)
}
