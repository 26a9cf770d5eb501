package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clusterstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/dynamic"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Name is the source of the events about the cluster.
const Name = "karmada-agent"

// started is when the start is over, and with it the need for much of the program.
const started = 10 * time.Second

// trimInterval is the time after which what was needed of the program is let go of
// again.
const trimInterval = 5 * time.Minute

// followInterval is the time between looks at the kubeconfig of the control plane.
const followInterval = 10 * time.Second

// agent is the agent of one cluster.
type agent struct {
	options *Options
	mgr     manager.Manager
	clock   clock.Clock
	log     logr.Logger
	// plane and memberAPI are clients for registration; kube is one for leases and
	// certificate requests of the control plane.
	plane, memberAPI client.Client
	kube             kubernetes.Interface
	memberConfig     *rest.Config
	member           *access.Member

	// recorder publishes events about the cluster.
	recorder record.EventRecorder

	// id is the identity of the member, once known.
	id         string
	registered atomic.Bool
	// abandoned says that the control plane gave the cluster up.
	abandoned atomic.Bool
}

// Setup adds the agent to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o *Options) error {
	o.warn(mgr.GetLogger())
	a, err := newAgent(ctx, mgr, o)
	if err != nil {
		return err
	}
	o.plane.logTo(a.log)
	for _, r := range []manager.Runnable{everywhere(a.followKubeconfig), everywhere(a.trim), manager.RunnableFunc(a.run)} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("adding the agent: %w", err)
		}
	}
	if err := mgr.AddReadyzCheck("registered", a.ready); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	return nil
}

func newAgent(ctx context.Context, mgr manager.Manager, o *Options) (*agent, error) {
	a := &agent{options: o, mgr: mgr, clock: clock.RealClock{}, log: log.FromContext(ctx).WithName("agent").WithValues("Cluster", o.ClusterName)}
	var err error
	if a.memberConfig, err = o.memberConfig(); err != nil {
		return nil, err
	}
	if a.member, err = access.NewMember(o.ClusterName, rest.CopyConfig(a.memberConfig), nil); err != nil {
		return nil, err
	}
	if a.memberAPI, err = member.NewMemberClient(a.memberConfig); err != nil {
		return nil, fmt.Errorf("connecting to the member cluster: %w", err)
	}
	if a.plane, err = member.NewClient(mgr.GetConfig()); err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	if a.kube, err = kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return a, nil
}

// everywhere is a runnable of every replica, whoever leads.
type everywhere func(context.Context)

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error {
	e(ctx)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

func (a *agent) followKubeconfig(ctx context.Context) { a.options.plane.follow(ctx, followInterval) }

// trim keeps the memory of an agent small: it runs beside the workloads of others.
func (a *agent) trim(ctx context.Context) {
	go memory.Trim(ctx)
	for pause := started; ; pause = trimInterval {
		select {
		case <-ctx.Done():
			return
		case <-a.clock.After(pause):
		}
		if err := memory.DropProgram(); err != nil {
			a.log.V(2).Info("Giving memory back failed", "err", err.Error())
		}
	}
}

// ready is the readiness of the replica that leads, or would.
func (a *agent) ready(*http.Request) error {
	select {
	case <-a.mgr.Elected():
	default:
		return nil // another replica works
	}
	if !a.registered.Load() {
		return errors.New("the cluster is not registered yet")
	}
	return nil
}

// run registers the cluster and serves it until ctx ends.
func (a *agent) run(ctx context.Context) error {
	ctx = log.IntoContext(ctx, a.log)
	if err := a.register(ctx); err != nil {
		return ended(ctx, err)
	}
	a.registered.Store(true)
	a.recorder = a.events(Name)
	interpreter, err := a.interpreter(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	o := a.options
	var lease sync.Once
	lost := newOrphanSearch(a)
	if o.Enabled(controllerClusterStatus) {
		err = errors.Join(err, clusterstatus.Setup(ctx, a.mgr, clusterstatus.Deps{
			Members: a, Select: a.serves, Frequency: o.StatusFrequency,
			SuccessThreshold: o.SuccessThreshold, FailureThreshold: o.FailureThreshold,
			Resources: o.ResourceModeling, Modeling: o.Gates.Enabled(gates.CustomizedClusterResourceModeling),
			Healthy:    func(*clusterv1alpha1.Cluster) { lease.Do(func() { go a.renewLease(ctx) }) },
			Conditions: lost.Conditions,
		}))
	}
	if o.Enabled(controllerExecution) {
		err = errors.Join(err, execution.Setup(ctx, a.mgr, execution.Deps{
			Members: a, Interpreter: interpreter, Accept: a.serves, Workers: o.WorkSyncs,
			Retry:  controllers.Retry{BaseDelay: o.RateLimiterBaseDelay, MaxDelay: min(o.RateLimiterMaxDelay, 30*time.Second)},
			Events: a.events, EventMode: o.Events,
		}), a.mgr.Add(manager.RunnableFunc(lost.run)))
	}
	if o.Enabled(controllerCertRotation) {
		err = errors.Join(err, a.mgr.Add(manager.RunnableFunc(a.rotate)))
	}
	if err != nil {
		return fmt.Errorf("setting up the agent: %w", err)
	}
	return a.watchAbandoned(ctx)
}

// ended makes the end of ctx no error.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// serves says whether a Cluster is the one that this agent is for: of its name, in
// Pull mode and not another cluster that took the name.
func (a *agent) serves(cluster *clusterv1alpha1.Cluster) bool {
	return !a.abandoned.Load() && cluster.Name == a.options.ClusterName && cluster.Spec.SyncMode == clusterv1alpha1.Pull && cluster.Spec.ID == a.id
}

// Member returns the agent's own cluster.
func (a *agent) Member(context.Context, *clusterv1alpha1.Cluster) (*access.Member, error) {
	return a.member, nil
}

// interpreter waits until it knows what users taught the control plane.
func (a *agent) interpreter(ctx context.Context) (execution.Interpreter, error) {
	var out execution.Interpreter
	err := a.insist(ctx, "Reading interpreter customizations", func() error {
		in, err := dynamic.NewInterpreter(ctx, a.mgr)
		out = in
		return err
	})
	return out, err
}

// insist tries until fn succeeds, fails for good or ctx ends.
func (a *agent) insist(ctx context.Context, what string, fn func() error) error {
	said := ""
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := fn()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if permanent(err) {
			return err
		}
		if text := err.Error(); text != said {
			said = text
			a.log.Info(what+" failed, trying again", "err", text)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.clock.After(pause):
		}
	}
}

// renewLease keeps the lease of the cluster until ctx ends.
func (a *agent) renewLease(ctx context.Context) {
	newLease(ctx, a).Run(ctx)
}

// rotate renews the client certificate until ctx ends.
func (a *agent) rotate(ctx context.Context) error {
	if a.options.plane.current() == nil {
		a.log.Info("The kubeconfig of the control plane has no client certificate; there is nothing to renew")
		return nil
	}
	var store kubeconfigStore
	err := a.insist(ctx, "Looking for the kubeconfig of the control plane", func() (err error) {
		store, err = openStore(ctx, a.options.plane, a.member.Core(), a.options.KubeconfigNamespace, a.options.ClusterName)
		return err
	})
	if err != nil {
		return ended(ctx, err)
	}
	r := &rotation{
		plane: a.options.plane, store: store, requests: a.kube.CertificatesV1().CertificateSigningRequests(),
		interval: a.options.RotationInterval, threshold: a.options.RotationThreshold, clock: a.clock, log: a.log,
	}
	r.run(ctx)
	return nil
}
