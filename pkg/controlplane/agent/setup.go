package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clusterstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslicecollect"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/servicestatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/dynamic"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Name is the source of the events about the cluster.
const Name = "karmada-agent"

// agent is the agent of one cluster.
type agent struct {
	options *Options
	mgr     manager.Manager
	clock   clock.Clock
	log     logr.Logger
	// kube is a client for leases and certificate requests of the control plane.
	kube       kubernetes.Interface
	member     *access.Single
	membership *membership
	retry      retrier

	// recorder records events about the cluster.
	recorder record.EventRecorder
	// failing reports whether the last probe of the cluster failed.
	failing atomic.Bool
}

// Setup adds the agent to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o *Options) error {
	o.warn(mgr.GetLogger())
	a, err := newAgent(ctx, mgr, o)
	if err != nil {
		return err
	}
	o.plane.setLogger(a.log)
	if err := mgr.Add(manager.RunnableFunc(a.run)); err != nil {
		return fmt.Errorf("adding the agent: %w", err)
	}
	if err := mgr.AddReadyzCheck("registered", a.ready); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	return nil
}

func newAgent(ctx context.Context, mgr manager.Manager, o *Options) (*agent, error) {
	logger := log.FromContext(ctx).WithName("agent").WithValues("Cluster", o.ClusterName)
	retry := retrier{log: logger}
	a := &agent{options: o, mgr: mgr, clock: clock.RealClock{}, log: logger, retry: retry}
	a.membership = &membership{options: o, clock: a.clock, log: logger, retry: retry}
	var err error
	if a.membership.memberConfig, err = o.memberConfig(); err != nil {
		return nil, err
	}
	a.membership.memberConfig.Wrap(controllers.FenceOf(mgr).Wrap)
	if a.member, err = access.NewSingle(o.ClusterName, a.membership.memberConfig, nil); err != nil {
		return nil, err
	}
	if a.membership.member, err = member.NewMemberClient(a.membership.memberConfig); err != nil {
		return nil, fmt.Errorf("connecting to the member cluster: %w", err)
	}
	if a.membership.plane, err = member.NewClient(mgr.GetConfig()); err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	if a.kube, err = kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return a, nil
}

// ready is the readiness check. A replica that is not the leader is ready.
func (a *agent) ready(*http.Request) error {
	select {
	case <-a.mgr.Elected():
	default:
		return nil // another replica works
	}
	if !a.membership.registered.Load() {
		return errors.New("the cluster is not registered yet")
	}
	return nil
}

// run registers the cluster and serves it until ctx ends.
func (a *agent) run(ctx context.Context) error {
	ctx = log.IntoContext(ctx, a.log)
	if err := a.membership.register(ctx); err != nil {
		return ended(ctx, err)
	}
	a.recorder = a.events(Name)
	interpreter, err := a.interpreter(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	o := a.options
	var lease sync.Once
	lost := &orphanSearch{Tracker: orphans.NewTracker(a.clock), agent: a, Trigger: controllers.NewTrigger()}
	stuck := &execution.Stuck{}
	permitted := &rights{reader: a.mgr.GetAPIReader(), cluster: o.ClusterName, clock: a.clock}
	if o.Enabled(controllerClusterStatus) {
		err = errors.Join(err, clusterstatus.Setup(ctx, a.mgr, clusterstatus.Deps{
			Members: a, Select: a.membership.serves, Frequency: o.StatusFrequency,
			SuccessThreshold: o.SuccessThreshold, FailureThreshold: o.FailureThreshold,
			Resources: o.ResourceModeling, Modeling: o.Gates.Enabled(gates.CustomizedClusterResourceModeling),
			Probed:  func(_ *clusterv1alpha1.Cluster, healthy bool, _ time.Time) { a.failing.Store(!healthy) },
			Healthy: func(*clusterv1alpha1.Cluster) { lease.Do(func() { go a.renewLease(ctx) }) },
			Conditions: func(c *clusterv1alpha1.Cluster) []metav1.Condition {
				return slices.Concat(lost.Conditions(c), a.membership.conditions(c), permitted.conditions(c), stuck.Conditions(c))
			},
		}), a.mgr.Add(manager.RunnableFunc(permitted.run)))
	}
	if o.Enabled(controllerExecution) {
		err = errors.Join(err, execution.Setup(ctx, a.mgr, execution.Deps{
			Members: a, Interpreter: interpreter, Accept: a.membership.serves, Workers: o.WorkSyncs,
			Retry:  controllers.Retry{BaseDelay: o.RateLimiterBaseDelay, MaxDelay: min(o.RateLimiterMaxDelay, 30*time.Second)},
			Events: a.events, EventMode: o.Events, Stuck: stuck,
		}), a.mgr.Add(manager.RunnableFunc(lost.run)))
	}
	err = errors.Join(err, a.collect(ctx))
	if err = errors.Join(err, a.mgr.Add(manager.RunnableFunc(a.rotate))); err != nil {
		return fmt.Errorf("setting up the agent: %w", err)
	}
	clusters, err := a.mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return ended(ctx, fmt.Errorf("watching the cluster: %w", err))
	}
	return a.membership.run(ctx, clusters)
}

// collect adds the controllers that collect EndpointSlices, as far as they are enabled.
func (a *agent) collect(ctx context.Context) error {
	var managers []services.Manager
	o := a.options
	e := env.New(a.mgr)
	e.Members, e.Retry = a, controllers.Retry{BaseDelay: o.RateLimiterBaseDelay, MaxDelay: min(o.RateLimiterMaxDelay, 30*time.Second)}
	if o.Enabled(controllerServiceExport) {
		managers = append(managers, services.Export)
		if err := servicestatus.Setup(ctx, e, a.membership.serves); err != nil {
			return err
		}
	}
	if o.Enabled(controllerCollect) && o.Gates.Enabled(gates.MultiClusterService) {
		managers = append(managers, services.MCS)
	}
	if len(managers) == 0 {
		return nil
	}
	return endpointslicecollect.Setup(ctx, e, a.membership.serves, managers...)
}

// ended returns the error, or nil if ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// Member returns the agent's own cluster.
func (a *agent) Member(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error) {
	return a.member.Member(ctx, cluster)
}

// interpreter returns the interpreter once it has read the customizations of the
// control plane.
func (a *agent) interpreter(ctx context.Context) (execution.Interpreter, error) {
	var out execution.Interpreter
	err := a.retry.until(ctx, "Reading interpreter customizations", func(context.Context) error {
		in, err := dynamic.NewInterpreter(ctx, a.mgr)
		out = in
		return err
	})
	return out, err
}

// renewLease keeps the lease of the cluster until ctx ends.
func (a *agent) renewLease(ctx context.Context) {
	newLease(ctx, a).Run(ctx)
}

// rotate follows the authorities of the control plane until ctx ends, and renews the client certificate: before it ends if the
// controller is enabled, and when another authority signs.
func (a *agent) rotate(ctx context.Context) error {
	credentials, threshold := a.options.plane.credentials, a.options.RotationThreshold
	if credentials.Certificate() == nil {
		a.log.Info("The kubeconfig of the control plane has no client certificate; there is nothing to renew")
	}
	if len(credentials.Authorities()) == 0 {
		a.log.Info("The kubeconfig of the control plane has no authorities; there are none to exchange")
	}
	if !a.options.Enabled(controllerCertRotation) {
		threshold = 0
	}
	var store kubeconfigStore
	err := a.retry.until(ctx, "Finding the kubeconfig of the control plane", func(ctx context.Context) error {
		member, err := a.Member(ctx, nil)
		if err != nil {
			return err
		}
		store, err = openStore(ctx, a.options.plane, member.Core(), a.options.KubeconfigNamespace, a.options.ClusterName)
		return err
	})
	if err != nil {
		return ended(ctx, err)
	}
	r := &rotation{
		credentials: credentials, store: store, requests: a.kube.CertificatesV1().CertificateSigningRequests(),
		interval: a.options.RotationInterval, threshold: threshold, clock: a.clock, log: a.log,
		follower: &follower{plane: a.options.plane, store: store, log: a.log},
	}
	r.run(ctx)
	return nil
}

// events returns the publisher for the events of a source about the agent's own
// cluster and Works. The agent has no permissions in the namespaces of templates; the
// control plane records their events from the Works.
func (a *agent) events(source string) record.EventRecorder {
	return &recorder{
		EventRecorder: events.Plain(a.mgr.GetEventRecorderFor(source)), scheme: a.mgr.GetScheme(),
		own: names.ExecutionNamespace(a.options.ClusterName),
	}
}

// recorder leaves out the events that the control plane would refuse.
type recorder struct {
	record.EventRecorder
	scheme *runtime.Scheme
	own    string
}

// Event implements record.EventRecorder.
func (r *recorder) Event(obj runtime.Object, kind, reason, message string) {
	if r.allowed(obj) {
		r.EventRecorder.Event(obj, kind, reason, message)
	}
}

// Eventf implements record.EventRecorder.
func (r *recorder) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	if r.allowed(obj) {
		r.EventRecorder.Eventf(obj, kind, reason, format, args...)
	}
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorder) AnnotatedEventf(obj runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	if r.allowed(obj) {
		r.EventRecorder.AnnotatedEventf(obj, annotations, kind, reason, format, args...)
	}
}

func (r *recorder) allowed(obj runtime.Object) bool {
	ref, err := reference.GetReference(r.scheme, obj)
	return err == nil && (ref.Namespace == r.own || isCluster(ref))
}

func isCluster(ref *corev1.ObjectReference) bool {
	return ref.Kind == "Cluster" && ref.GroupVersionKind().Group == clusterv1alpha1.GroupName
}
