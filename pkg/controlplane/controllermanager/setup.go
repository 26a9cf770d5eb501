package controllermanager

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentcsr"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentrbac"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/binding"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/bindingstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cluster"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clusterstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/dependencies"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/detector"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/massfailure"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/namespacesync"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/unifiedauth"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter"
	interpreterdynamic "github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/dynamic"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// parts is what the controllers share.
type parts struct {
	options     *Options
	store       *templates.Store
	interpreter *interpreter.Interpreter
	pool        *access.Pool
	namespaces  *templates.Namespaces
	guard       *massfailure.Guard
}

// Setup adds the controllers to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o *Options) error {
	o.warn(mgr.GetLogger())
	p, err := newParts(ctx, mgr, o)
	if err != nil {
		return err
	}
	// The store starts with the manager; the controllers that read it wait for it.
	if err := mgr.Add(p.store); err != nil {
		return fmt.Errorf("adding the template store: %w", err)
	}
	f, err := newFailoverParts(mgr, p)
	if err != nil {
		return err
	}
	return setupControllers(ctx, mgr, o, []controller{
		{"detector", true, p.detector},
		{"dependencies", true, p.dependencies},
		{"agentRights", true, agentrbac.Setup},
		{"agentcsrapproving", false, p.agentCSR},
		{"binding", false, p.binding},
		{"execution", false, p.execution},
		{"bindingStatus", false, p.bindingStatus},
		{"cluster", false, p.cluster},
		{"clusterStatus", false, p.clusterStatus},
		{"cluster", false, f.taintManager},
		{"clustertaintpolicy", false, f.clusterTaint},
		{"remedy", false, f.remedy},
		{"gracefulEviction", false, f.gracefulEviction},
		{"applicationFailover", false, f.applicationFailover},
		{"workloadRebalancer", false, f.workloadRebalancer},
		{"federatedResourceQuotaSync", false, p.quotaSync},
		{"federatedResourceQuotaStatus", false, p.quotaStatus},
		{"federatedResourceQuotaEnforcement", false, p.quotaEnforcement},
		{"federatedHorizontalPodAutoscaler", false, p.federatedHPA},
		{"cronFederatedHorizontalPodAutoscaler", false, p.cronFederatedHPA},
		{hpaScaleTargetMarker, false, p.hpaTarget},
		{deploymentReplicasSyncer, false, p.replicasSync},
		{"namespace", false, p.namespace},
		{"unifiedAuth", false, p.unifiedAuth},
		{"collect", true, p.collect},
		{"serviceExport", false, p.serviceExport},
		{"endpointSlice", false, p.endpointSlice},
		{"serviceImport", false, p.serviceImport},
		{"multiclusterservice", false, p.multiClusterService},
		{"endpointsliceDispatch", true, p.dispatch},
	})
}

// controller is a row of the table of controllers.
type controller struct {
	name string
	// always is true for a controller that --controllers does not select.
	always bool
	setup  func(context.Context, manager.Manager) error
}

func setupControllers(ctx context.Context, mgr manager.Manager, o *Options, table []controller) error {
	for _, c := range table {
		if !c.always && !o.Enabled(c.name) {
			continue
		}
		if err := c.setup(ctx, mgr); err != nil {
			return fmt.Errorf("setting up controller %q: %w", c.name, err)
		}
	}
	return nil
}

func newParts(ctx context.Context, mgr manager.Manager, o *Options) (*parts, error) {
	apis, err := templates.ParseAPIs(o.SkippedPropagatingAPIs)
	if err != nil {
		return nil, fmt.Errorf("--skipped-propagating-apis: %w", err)
	}
	namespaces, err := templates.ParseNamespaces(o.SkippedPropagatingNamespaces)
	if err != nil {
		return nil, fmt.Errorf("--skipped-propagating-namespaces: %w", err)
	}
	interp, err := interpreterdynamic.NewInterpreter(ctx, mgr)
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
	guard, err := newGuard(mgr, o)
	if err != nil {
		return nil, err
	}
	return &parts{
		options:     o,
		guard:       guard,
		interpreter: interp,
		namespaces:  namespaces,
		store: templates.New(templates.Config{
			Discovery: disc, Dynamic: dyn, Mapper: mgr.GetRESTMapper(),
			SkippedAPIs: apis, SkippedNamespaces: namespaces,
		}),
		pool: access.NewPool(access.Options{
			Secrets: secrets(mgr), Mapper: mgr.GetRESTMapper(),
			QPS: o.ClusterAPIQPS.QPS(), Burst: o.ClusterAPIBurst,
		}),
	}, nil
}

func (p *parts) retry() controllers.Retry {
	return controllers.Retry{BaseDelay: p.options.RateLimiterBaseDelay, MaxDelay: p.options.RateLimiterMaxDelay}
}

func (p *parts) detector(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return detector.Setup(ctx, mgr, detector.Deps{
		Store: p.store, Interpreter: p.interpreter,
		Gates: detector.Gates{
			Preemption:       o.Gates.Enabled(gates.PropagationPolicyPreemption),
			Priority:         o.Gates.Enabled(gates.PriorityBasedScheduling),
			Components:       o.Gates.Enabled(gates.MultiplePodTemplatesScheduling),
			WorkloadAffinity: o.Gates.Enabled(gates.WorkloadAffinity),
			Quota:            o.Gates.Enabled(gates.ResourceQuotaEstimate),
		},
		Events:          o.Events,
		TemplateWorkers: o.TemplateSyncs, PolicyWorkers: o.PolicySyncs, ClusterPolicyWorkers: o.ClusterPolicySyncs,
		Retry: p.retry(),
	})
}

// dependencies follows the feature gate PropagateDeps.
func (p *parts) dependencies(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	if !o.Gates.Enabled(gates.PropagateDeps) {
		return nil
	}
	return dependencies.Setup(ctx, mgr, dependencies.Deps{
		Store: p.store, Interpreter: p.interpreter, Workers: o.DependentSyncs, Events: o.Events,
		Retry: p.retry(),
	})
}

func (p *parts) agentCSR(ctx context.Context, mgr manager.Manager) error {
	return agentcsr.Setup(ctx, mgr, agentcsr.Deps{Grant: agentrbac.NewGranter(mgr).Grant})
}

func (p *parts) binding(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return binding.Setup(ctx, mgr, binding.Deps{
		Store: p.store, Interpreter: p.interpreter,
		StatefulFailover: o.Gates.Enabled(gates.StatefulFailoverInjection),
		Events:           o.Events,
		Workers:          o.BindingSyncs, ClusterWorkers: o.ClusterBindingSyncs,
		Retry: p.retry(),
	})
}

func (p *parts) execution(ctx context.Context, mgr manager.Manager) error {
	return execution.Setup(ctx, mgr, execution.Deps{
		Members: p.pool, Interpreter: p.interpreter, Workers: p.options.WorkSyncs, EventMode: p.options.Events,
	})
}

func (p *parts) bindingStatus(ctx context.Context, mgr manager.Manager) error {
	return bindingstatus.Setup(ctx, mgr, bindingstatus.Deps{
		Templates: p.store, Interpreter: p.interpreter, Events: p.options.Events, TemplateConditions: p.options.TemplateConditions,
	})
}

func (p *parts) cluster(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return cluster.Setup(ctx, mgr, cluster.Deps{
		Workers: o.ClusterSyncs, MonitorPeriod: o.MonitorPeriod,
		MonitorGracePeriod: o.MonitorGracePeriod, StartupGracePeriod: o.StartupGracePeriod,
		FlapWindow: o.Failover.FlapWindow, Reported: p.guard.Observe, Gone: p.pool.Forget,
	})
}

func (p *parts) clusterStatus(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	lost, err := orphans.Setup(mgr, orphans.Deps{Member: func(ctx context.Context, cluster *clusterv1alpha1.Cluster) (orphans.API, error) {
		return p.pool.Member(ctx, cluster)
	}})
	if err != nil {
		return err
	}
	return clusterstatus.Setup(ctx, mgr, clusterstatus.Deps{
		Members: p.pool, Frequency: o.StatusFrequency, Conditions: lost.Conditions, Probed: p.guard.Observe,
		SuccessThreshold: o.SuccessThreshold, FailureThreshold: o.FailureThreshold,
		Resources: o.ResourceModeling,
		Modeling:  o.Gates.Enabled(gates.CustomizedClusterResourceModeling),
	})
}

func (p *parts) namespace(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return namespacesync.Setup(ctx, mgr, namespacesync.Deps{
		Store: p.store, SkippedNamespaces: p.namespaces, NamespaceSyncs: o.NamespaceSyncs,
		Retry: p.retry(),
	})
}

func (p *parts) unifiedAuth(ctx context.Context, mgr manager.Manager) error {
	o := p.options
	return unifiedauth.Setup(ctx, mgr, unifiedauth.Deps{
		Store: p.store, Events: o.Events, Retry: p.retry(),
	})
}
