// Package execution carries the objects of Works to their cluster and brings
// their status back into the Work. It runs in the control plane for clusters
// that are pushed to, and in the agent of a cluster that pulls.
//
// Every cluster has a queue, workers and clients of its own, so that one that is
// slow or gone delays nobody else. A Work of a cluster that is not Ready waits
// for the cluster, not for a timer. The status of a Work, conditions and the
// status of its objects, is written by one function and as seldom as possible.
package execution

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	recording "github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Name is the source of the events.
const Name = "execution-controller"

// StatusName is the source of the events about the status of objects.
const StatusName = "work-status-controller"

// Members opens clusters.
type Members interface {
	// Member returns the open cluster; the same one until it must not be used any
	// longer.
	Member(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error)
}

// Interpreter knows what objects mean.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Retain(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
	ReflectStatus(obj *unstructured.Unstructured) (*runtime.RawExtension, error)
	InterpretHealth(obj *unstructured.Unstructured) (bool, error)
}

// Deps is what the controller needs.
type Deps struct {
	Members     Members
	Interpreter Interpreter
	// Accept says which clusters are served. Default: those with sync mode Push.
	Accept func(*clusterv1alpha1.Cluster) bool
	// Workers is the number of Works whose objects are applied at a time per
	// cluster, and as many report their status meanwhile. Default 5.
	Workers int
	// Pace says how long status waits for more of it.
	Pace Pace
	// RetryBase and RetryMax bound the delay of retries. Default 5 ms and 30 s; a
	// cluster that becomes Ready, or serves more types, is tried at once.
	RetryBase, RetryMax time.Duration
	// Timeout bounds a request to a member. Default access.Timeout.
	Timeout time.Duration
	// Events returns what the events of a source are published with. Default: the
	// manager's recorders.
	Events func(source string) record.EventRecorder
	// EventMode selects which successes are recorded. Default: Transitions.
	EventMode recording.Mode
	// Clock defaults to the real one.
	Clock clock.PassiveClock
	// Metrics defaults to the registry of controller-runtime.
	Metrics prometheus.Registerer
}

func (d *Deps) complete() {
	if d.Accept == nil {
		d.Accept = func(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode == clusterv1alpha1.Push }
	}
	if d.Workers <= 0 {
		d.Workers = 5
	}
	if d.RetryBase <= 0 {
		d.RetryBase = 5 * time.Millisecond
	}
	if d.RetryMax <= 0 {
		d.RetryMax = 30 * time.Second
	}
	if d.Timeout <= 0 {
		d.Timeout = access.Timeout
	}
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
	if d.Metrics == nil {
		d.Metrics = ctrlmetrics.Registry
	}
	d.Pace.complete()
}

// Controller serves the Works of all clusters.
type Controller struct {
	deps    Deps
	client  client.Client
	live    client.Reader
	events  events
	metrics *metrics
	seed    maphash.Seed

	// mayNotPatch says that the control plane refused to have a Work patched.
	mayNotPatch atomic.Bool

	editions editions
	relays   relays

	mu      sync.Mutex
	runners map[string]*runner
}

// New returns a controller that writes with c and reads what must be fresh with
// live.
func New(c client.Client, live client.Reader, applied, observed record.EventRecorder, d Deps) (*Controller, error) {
	d.complete()
	m, err := newMetrics(d.Metrics)
	if err != nil {
		return nil, err
	}
	return &Controller{
		deps: d, client: c, live: live, metrics: m, seed: maphash.MakeSeed(),
		events:  events{applied: recording.Plain(applied), observed: recording.Plain(observed), all: d.EventMode.All()},
		runners: map[string]*runner{},
	}, nil
}

// Setup adds the controller to the manager. It works while the manager leads.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	if d.Events == nil {
		d.Events = mgr.GetEventRecorderFor
	}
	c, err := New(mgr.GetClient(), mgr.GetAPIReader(), d.Events(Name), d.Events(StatusName), d)
	if err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return c.run(ctx, mgr.GetCache()) })); err != nil {
		return fmt.Errorf("adding the %s: %w", Name, err)
	}
	return nil
}

// cluster returns the Cluster from the cache, or nil.
func (c *Controller) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.client.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return cluster, nil
}

// runner returns what serves a cluster; it is made when asked for first.
func (c *Controller) runner(ctx context.Context, cluster string) *runner {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runners[cluster]
	if r == nil {
		r = newRunner(ctx, c, cluster)
		c.runners[cluster] = r
		r.start(2 * c.deps.Workers)
	}
	return r
}

// known returns what serves a cluster, or nil.
func (c *Controller) known(cluster string) *runner {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runners[cluster]
}

// drop stops what serves a cluster that is gone.
func (c *Controller) drop(cluster string) {
	c.mu.Lock()
	r := c.runners[cluster]
	delete(c.runners, cluster)
	c.mu.Unlock()
	if r != nil {
		r.stop()
	}
}

// retire stops what serves a cluster that is gone with its last Work. Should the
// cluster be back by then, its Works are taken up by a successor.
func (c *Controller) retire(r *runner) {
	if c.known(r.cluster) != r {
		return
	}
	c.drop(r.cluster)
	if r.base.Err() == nil {
		c.wake(r.base, r.cluster)
	}
}
