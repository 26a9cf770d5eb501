//go:build integration

package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/applicationfailover"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/binding"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/bindingstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cluster"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clustertaint"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/detector"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/gracefuleviction"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/taintmanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// planeTimeout is the usual time of an eviction task without a grace period on the plane.
const planeTimeout = 5 * time.Second

// namespace has the templates.
const namespace = "default"

// plane is a control plane with the real controllers, whose members the test simulates.
type plane struct {
	*testing.T
	cluster *testenv.Cluster
	client  client.WithWatch // uncached
	writes  *writes
	members *members
	watched *watched
	*process
}

// process is the running control plane; the parts of a test share it.
type process struct {
	// rate is the eviction rate of a worker, timeout the time of an eviction task without a grace period.
	rate    float32
	timeout time.Duration
	stop    func()
}

// writes counts what the controllers write, events aside.
type writes struct {
	mu    sync.Mutex
	count map[string]int
}

type counting struct {
	next http.RoundTripper
	*writes
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "/events") {
		body := ""
		if req.GetBody != nil {
			if r, err := req.GetBody(); err == nil {
				data, _ := io.ReadAll(r)
				body = string(data)
			}
		}
		c.mu.Lock()
		c.count[req.Method+" "+req.URL.Path+" "+body]++
		c.mu.Unlock()
	}
	return c.next.RoundTrip(req)
}

func (w *writes) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.count
	w.count = map[string]int{}
	return out
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	p := &plane{T: t, cluster: testenv.Start(t, testenv.ControlPlane()), writes: &writes{count: map[string]int{}}, process: &process{rate: 10_000, timeout: planeTimeout}}
	c, err := client.NewWithWatch(p.cluster.Config, client.Options{Scheme: kube.NewScheme()})
	p.must(err)
	p.client = c
	planetest.Install(p.T, p.client)
	p.members = startMembers(t, c)
	p.watched = startWatching(t, c)
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// in returns the plane for a part of the test.
func (p *plane) in(t *testing.T) *plane {
	out := *p
	out.T = t
	return &out
}

func (p *plane) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// start runs the controllers, as a new process would.
func (p *plane) start() {
	p.Helper()
	cfg := rest.CopyConfig(p.cluster.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, p.writes} })
	var store *templates.Store
	undelayed := bindingstatus.DefaultPolicy()
	undelayed.Failure, undelayed.Interval = time.Millisecond, 10*time.Millisecond
	undelayed.Pending, undelayed.Moving = 20*time.Millisecond, 20*time.Millisecond
	undelayed.Stable = controllers.Debounce{Stable: 20 * time.Millisecond, StableMax: 20 * time.Millisecond}
	set := gates.New(gates.StatefulFailoverInjection, gates.GracefulEviction)
	p.must(set.Set("StatefulFailoverInjection=true"))
	scheduling := scheduler.NewOptions()
	scheduling.Direct = &scheduler.Direct{}
	stop := planetest.Start(p.T, cfg, func(ctx context.Context, mgr manager.Manager) error {
		store = planetest.Templates(p.T, mgr)
		e := env.New(mgr)
		e.Store, e.Interpreter, e.Gates = store, interpreter.New(), set
		direct := *e
		direct.Scheduler = scheduling.Direct
		return errors.Join(
			mgr.Add(store),
			detector.Setup(ctx, &direct),
			scheduler.Setup(ctx, mgr, scheduling),
			binding.Setup(ctx, e),
			bindingstatus.Setup(ctx, &direct, bindingstatus.Options{Templates: store, Policy: undelayed, EndEvictions: true}),
			cluster.Setup(ctx, e, cluster.Options{LeavingPeriod: 20 * time.Millisecond}),
			taintmanager.Setup(ctx, e, taintmanager.Options{Evict: true, Rate: p.rate}),
			gracefuleviction.Setup(ctx, e, p.timeout),
			applicationfailover.Setup(ctx, e, evictions.Limits{}),
			clustertaint.Setup(ctx, e),
		)
	})
	p.must(store.WaitForSync(p.Context()))
	p.stop = func() {
		if err := stop(); err != nil {
			p.Errorf("stopping the controllers: %v", err)
		}
	}
}

// restartWith starts the controllers again with other settings.
func (p *plane) restartWith(rate float32, timeout time.Duration) {
	p.Helper()
	p.stop()
	p.rate, p.timeout = rate, timeout
	p.start()
}

// restart starts the controllers again and fails if they write anything: nothing changed. What the end of the process
// interrupted is written after the first start only, so there are several.
func (p *plane) restart() {
	p.Helper()
	var written []string
	for range 3 {
		if written = p.writtenByRestart(); len(written) == 0 {
			return
		}
	}
	p.Errorf("a restart writes %s", strings.Join(written, "\n"))
}

// writtenByRestart starts the controllers again and returns what they write. It ignores the bindings whose eviction tasks
// end with time, and those that are not scheduled: the reason is renewed.
func (p *plane) writtenByRestart() (written []string) {
	p.Helper()
	p.stop()
	p.writes.take()
	list := &workv1alpha2.ResourceBindingList{}
	p.must(p.client.List(p.Context(), list))
	p.start()
	select {
	case <-time.After(time.Second):
	case <-p.Context().Done():
	}
	for what, n := range p.writes.take() {
		if !slices.ContainsFunc(list.Items, func(b workv1alpha2.ResourceBinding) bool {
			restless := len(b.Spec.GracefulEvictionTasks) > 0 || !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled)
			return restless && strings.Contains(what, b.Spec.Resource.Name)
		}) {
			written = append(written, fmt.Sprintf("%d times %s", n, what))
		}
	}
	return written
}

// change changes an object as it is, whatever the controllers write to it meanwhile. A deleted object stays deleted.
func (p *plane) change(obj client.Object, change func()) {
	p.Helper()
	p.must(client.IgnoreNotFound(planetest.Change(p.Context(), p.client, obj, change)))
}

func (p *plane) changeStatus(obj client.Object, change func()) {
	p.Helper()
	p.must(client.IgnoreNotFound(planetest.ChangeStatus(p.Context(), p.client, obj, change)))
}

func (p *plane) join(name string) {
	p.Helper()
	p.members.set(name, true)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	p.must(p.client.Create(p.Context(), c))
	p.changeStatus(c, func() {
		c.Status = clusterv1alpha1.ClusterStatus{
			APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}},
			Conditions:     []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(1000, resource.DecimalSI), corev1.ResourcePods: *resource.NewQuantity(1000, resource.DecimalSI),
			}},
		}
	})
}

// deploy creates a Deployment and its policy.
func (p *plane) deploy(name string, replicas int32, placement *policyv1alpha1.Placement, failover *policyv1alpha1.FailoverBehavior) {
	p.Helper()
	labels := map[string]string{"app": name}
	p.must(p.client.Create(p.Context(), &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Finalizers: []string{policyv1alpha1.PropagationPolicyFinalizer},
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}},
			PropagateDeps:     true, Placement: *placement, Failover: failover, SchedulerName: policyv1alpha1.DefaultSchedulerName,
		},
	}))
	p.must(p.client.Create(p.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
			}},
		},
	}))
}

func (p *plane) binding(ctx context.Context, name string) (*workv1alpha2.ResourceBinding, error) {
	b := &workv1alpha2.ResourceBinding{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-deployment"}, b); err != nil {
		return nil, fmt.Errorf("binding of %s: %w", name, err)
	}
	return b, nil
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
