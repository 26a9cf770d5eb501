package controllermanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentcsr"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentrbac"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/applicationfailover"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/binding"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/bindingstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cluster"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clusterstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clustertaint"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cronfederatedhpa"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/dependencies"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/detector"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslice"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslicecollect"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslicedispatch"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/federatedhpa"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/federatedquota"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/gracefuleviction"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/hpatarget"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/massfailure"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/multiclusterservice"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/namespacesync"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/rebalancer"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/remedy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/replicassync"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/serviceexport"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/serviceimport"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/servicestatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/unifiedauth"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	interpreterdynamic "github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/dynamic"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// setup sets up the controllers of the role.
type setup struct {
	*env.Env
	options     *Options
	interpreter *interpreter.Interpreter
	// skipped are the namespaces that are not propagated.
	skipped *propagation.Namespaces
	// guard receives what is observed of clusters.
	guard  *massfailure.Guard
	limits evictions.Limits
	// conditions writes those of MultiClusterServices, so that each of the two controllers sees what the other wrote.
	conditions *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]
	// stuck are the objects that are stuck in clusters.
	stuck execution.Stuck
}

// Setup adds the controllers to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o *Options) error {
	o.warn(mgr.GetLogger())
	s, err := newSetup(ctx, mgr, o)
	if err != nil {
		return err
	}
	// The store starts with the manager; the controllers that read it wait for it.
	if err := mgr.Add(s.Store); err != nil {
		return fmt.Errorf("adding the template store: %w", err)
	}
	return setupControllers(ctx, s.Env, o, s.controllers())
}

// controllers is the table of controllers, in the order in which they are added.
func (s *setup) controllers() []controller {
	return []controller{
		{"detector", true, detector.Setup},
		{"dependencies", true, gated(gates.PropagateDeps, dependencies.Setup)},
		{"agentRights", true, agentrbac.Setup},
		{"certificateEvents", true, setupCertificateEvents},
		{"agentcsrapproving", false, func(ctx context.Context, e *env.Env) error {
			return agentcsr.Setup(ctx, e, agentrbac.NewGranter(e).Grant)
		}},
		{"binding", false, binding.Setup},
		{"execution", false, s.execution},
		{"bindingStatus", false, s.bindingStatus},
		{"cluster", false, s.cluster},
		{"clusterStatus", false, s.clusterStatus},
		{"cluster", false, gated(gates.Failover, s.taintManager)},
		{"clustertaintpolicy", false, gated(gates.Failover, clustertaint.Setup)},
		{"remedy", false, remedy.Setup},
		{"gracefulEviction", false, func(ctx context.Context, e *env.Env) error {
			return gracefuleviction.Setup(ctx, e, s.options.Failover.GracefulTimeout)
		}},
		{"applicationFailover", false, func(ctx context.Context, e *env.Env) error { return applicationfailover.Setup(ctx, e, s.limits) }},
		{"workloadRebalancer", false, rebalancer.Setup},
		{"federatedResourceQuotaSync", false, federatedquota.SetupSync},
		{"federatedResourceQuotaStatus", false, federatedquota.SetupStatus},
		{"federatedResourceQuotaEnforcement", false, gated(gates.FederatedQuotaEnforcement, func(ctx context.Context, e *env.Env) error {
			return federatedquota.SetupEnforcement(ctx, e, s.options.QuotaSyncPeriod)
		})},
		{"federatedHorizontalPodAutoscaler", false, s.federatedHPA},
		{"cronFederatedHorizontalPodAutoscaler", false, func(ctx context.Context, e *env.Env) error {
			return cronfederatedhpa.Setup(ctx, e, s.options.Autoscaling.CronDeadline)
		}},
		{hpaScaleTargetMarker, false, hpatarget.Setup},
		{deploymentReplicasSyncer, false, replicassync.Setup},
		{"namespace", false, func(ctx context.Context, e *env.Env) error { return namespacesync.Setup(ctx, e, s.skipped) }},
		{"unifiedAuth", false, unifiedauth.Setup},
		{"collect", true, s.collect},
		{"serviceExport", false, func(ctx context.Context, e *env.Env) error {
			return errors.Join(serviceexport.Setup(ctx, e), servicestatus.Setup(ctx, e, pushed))
		}},
		{"endpointSlice", false, endpointslice.Setup},
		{"serviceImport", false, serviceimport.Setup},
		{"multiclusterservice", false, gated(gates.MultiClusterService, func(ctx context.Context, e *env.Env) error {
			return multiclusterservice.Setup(ctx, e, s.conditions)
		})},
		{"endpointsliceDispatch", true, s.dispatch},
	}
}

// controller is a row of the table of controllers.
type controller struct {
	name string
	// always is true for a controller that --controllers does not select.
	always bool
	setup  func(context.Context, *env.Env) error
}

// gated sets up a controller if a feature gate is on.
func gated(gate featuregate.Feature, setup func(context.Context, *env.Env) error) func(context.Context, *env.Env) error {
	return func(ctx context.Context, e *env.Env) error {
		if !e.Gates.Enabled(gate) {
			return nil
		}
		return setup(ctx, e)
	}
}

func setupControllers(ctx context.Context, e *env.Env, o *Options, table []controller) error {
	for _, line := range o.losses() {
		log.FromContext(ctx).Info(line)
	}
	for _, c := range table {
		if !c.always && !o.Enabled(c.name) {
			continue
		}
		if err := c.setup(ctx, e); err != nil {
			return fmt.Errorf("setting up controller %q: %w", c.name, err)
		}
	}
	return nil
}

func newSetup(ctx context.Context, mgr manager.Manager, o *Options) (*setup, error) {
	apis, err := templates.ParseAPIs(o.SkippedPropagatingAPIs)
	if err != nil {
		return nil, fmt.Errorf("--skipped-propagating-apis: %w", err)
	}
	namespaces, err := propagation.ParseNamespaces(o.SkippedPropagatingNamespaces)
	if err != nil {
		return nil, fmt.Errorf("--skipped-propagating-namespaces: %w", err)
	}
	interp, err := interpreterdynamic.NewInterpreter(ctx, mgr, interpreter.WithPriorityClassName(o.Gates.Enabled(gates.ResourceQuotaEstimate)))
	if err != nil {
		return nil, err
	}
	// The store watches every type there is; that some are deprecated is no news.
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.WarningHandler = rest.NoWarnings{}
	disc, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	dyn, err := dynamic.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	e := env.New(mgr)
	e.Retry, e.Events = controllers.Retry{BaseDelay: o.RateLimiterBaseDelay, MaxDelay: o.RateLimiterMaxDelay}, o.Events
	e.Gates, e.Syncs, e.Interpreter, e.Scheduler = o.Gates, o.Syncs, interp, o.Scheduler
	e.Store = templates.New(templates.Config{Discovery: disc, Dynamic: dyn, Mapper: mgr.GetRESTMapper(), SkippedAPIs: apis, SkippedNamespaces: namespaces})
	guard, limits, err := newLimits(e, o)
	if err != nil {
		return nil, err
	}
	pool := access.NewPool(access.Options{
		Clusters: mgr.GetClient(), Secrets: controllers.Secrets(mgr.GetClient(), mgr.GetAPIReader()), Mapper: mgr.GetRESTMapper(),
		QPS: o.ClusterAPIQPS.QPS(), Burst: o.ClusterAPIBurst,
		Wrap: controllers.FenceOf(mgr).Wrap,
	})
	if err := controllers.Follow(mgr, &clusterv1alpha1.Cluster{}, pool); err != nil {
		return nil, err
	}
	e.Members = pool
	return &setup{
		Env: e, options: o, interpreter: interp, skipped: namespaces, guard: guard, limits: limits,
		conditions: status.For(e.Client, e.Live, e.Clock, func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status }, "conditions"),
	}, nil
}

func (s *setup) execution(ctx context.Context, e *env.Env) error {
	return execution.Setup(ctx, e.Manager, execution.Deps{
		Members: e.Members, Interpreter: s.interpreter, Workers: e.WorkSyncs, EventMode: e.Events, ReadBindings: true, Stuck: &s.stuck,
	})
}

func (s *setup) bindingStatus(ctx context.Context, e *env.Env) error {
	return bindingstatus.Setup(ctx, e, bindingstatus.Options{
		Templates: e.Store, TemplateConditions: s.options.TemplateConditions, EndEvictions: s.options.Enabled("gracefulEviction"),
	})
}

func (s *setup) cluster(ctx context.Context, e *env.Env) error {
	o := s.options
	return cluster.Setup(ctx, e, cluster.Options{
		MonitorPeriod: o.MonitorPeriod, MonitorGracePeriod: o.MonitorGracePeriod, StartupGracePeriod: o.StartupGracePeriod,
		FlapWindow: o.Failover.FlapWindow, Reported: s.guard.Observe,
	})
}

func (s *setup) clusterStatus(ctx context.Context, e *env.Env) error {
	o := s.options
	lost, err := orphans.Setup(e.Manager, orphans.Deps{Member: func(ctx context.Context, cluster *clusterv1alpha1.Cluster) (orphans.API, error) {
		return e.Members.Member(ctx, cluster)
	}})
	if err != nil {
		return err
	}
	return clusterstatus.Setup(ctx, e.Manager, clusterstatus.Deps{
		Members: e.Members, Frequency: o.StatusFrequency, Probed: s.guard.Observe,
		SuccessThreshold: o.SuccessThreshold, FailureThreshold: o.FailureThreshold,
		Resources: o.ResourceModeling,
		Modeling:  o.Gates.Enabled(gates.CustomizedClusterResourceModeling),
		Conditions: func(c *clusterv1alpha1.Cluster) []metav1.Condition { //nolint:contextcheck // it only reads memory
			return slices.Concat(lost.Conditions(c), s.stuck.Conditions(c))
		},
	})
}

func (s *setup) federatedHPA(ctx context.Context, e *env.Env) error {
	return federatedhpa.Setup(ctx, e, federatedhpa.Options{
		Settings: s.options.Autoscaling.Settings, SyncPeriod: s.options.Autoscaling.SyncPeriod, CacheSyncTimeout: s.options.CacheSyncTimeout,
	})
}

// collect collects slices for the enabled ones of two controllers, which share their
// watches.
func (s *setup) collect(ctx context.Context, e *env.Env) error {
	var managers []services.Manager
	if s.options.Enabled("serviceExport") {
		managers = append(managers, services.Export)
	}
	if s.options.Enabled("endpointsliceCollect") && e.Gates.Enabled(gates.MultiClusterService) {
		managers = append(managers, services.MCS)
	}
	if len(managers) == 0 {
		return nil
	}
	return endpointslicecollect.Setup(ctx, e, pushed, managers...)
}

func pushed(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode != clusterv1alpha1.Pull }

// dispatch dispatches slices if that is enabled. Otherwise it lets go of the Works that
// were collected before, whose finalizers would hold their clusters.
func (s *setup) dispatch(ctx context.Context, e *env.Env) error {
	enabled := s.options.Enabled("endpointsliceDispatch") && e.Gates.Enabled(gates.MultiClusterService)
	return endpointslicedispatch.Setup(ctx, e, enabled, s.conditions)
}
