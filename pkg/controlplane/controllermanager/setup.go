package controllermanager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentcsr"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentrbac"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cluster"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clusterstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/federatedquota"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/massfailure"
	interpreterdynamic "github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/dynamic"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// shared is what more than one part uses.
type shared struct {
	options     *Options
	retry       controllers.Retry
	store       *templates.Store
	interpreter *interpreter.Interpreter
	pool        *access.Pool
	namespaces  *templates.Namespaces
	guard       *massfailure.Guard
}

// parts are the groups of controllers of the role.
type parts struct {
	propagation *propagation
	clusters    *clusters
	failover    *failover
	quotas      *quotas
	scaling     *scaling
	networking  *networking
}

// Setup adds the controllers to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o *Options) error {
	o.warn(mgr.GetLogger())
	s, err := newShared(ctx, mgr, o)
	if err != nil {
		return err
	}
	// The store starts with the manager; the controllers that read it wait for it.
	if err := mgr.Add(s.store); err != nil {
		return fmt.Errorf("adding the template store: %w", err)
	}
	p, err := newParts(mgr, s)
	if err != nil {
		return err
	}
	return setupControllers(ctx, mgr, o, p.controllers())
}

// controllers is the table of controllers, in the order in which they are added.
func (p *parts) controllers() []controller {
	return []controller{
		{"detector", true, p.propagation.detector},
		{"dependencies", true, p.propagation.dependencies},
		{"agentRights", true, agentrbac.Setup},
		{"agentcsrapproving", false, p.clusters.agentCSR},
		{"binding", false, p.propagation.binding},
		{"execution", false, p.propagation.execution},
		{"bindingStatus", false, p.propagation.bindingStatus},
		{"cluster", false, p.clusters.cluster},
		{"clusterStatus", false, p.clusters.clusterStatus},
		{"cluster", false, p.failover.taintManager},
		{"clustertaintpolicy", false, p.failover.clusterTaint},
		{"remedy", false, p.failover.remedy},
		{"gracefulEviction", false, p.failover.gracefulEviction},
		{"applicationFailover", false, p.failover.applicationFailover},
		{"workloadRebalancer", false, p.failover.workloadRebalancer},
		{"federatedResourceQuotaSync", false, p.quotas.sync},
		{"federatedResourceQuotaStatus", false, p.quotas.status},
		{"federatedResourceQuotaEnforcement", false, p.quotas.enforcement},
		{"federatedHorizontalPodAutoscaler", false, p.scaling.federatedHPA},
		{"cronFederatedHorizontalPodAutoscaler", false, p.scaling.cronFederatedHPA},
		{hpaScaleTargetMarker, false, p.scaling.hpaTarget},
		{deploymentReplicasSyncer, false, p.scaling.replicasSync},
		{"namespace", false, p.propagation.namespace},
		{"unifiedAuth", false, p.propagation.unifiedAuth},
		{"collect", true, p.networking.collect},
		{"serviceExport", false, p.networking.serviceExport},
		{"endpointSlice", false, p.networking.endpointSlice},
		{"serviceImport", false, p.networking.serviceImport},
		{"multiclusterservice", false, p.networking.multiClusterService},
		{"endpointsliceDispatch", true, p.networking.dispatch},
	}
}

// controller is a row of the table of controllers.
type controller struct {
	name string
	// always is true for a controller that --controllers does not select.
	always bool
	setup  func(context.Context, manager.Manager) error
}

func setupControllers(ctx context.Context, mgr manager.Manager, o *Options, table []controller) error {
	for _, line := range o.losses() {
		log.FromContext(ctx).Info(line)
	}
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

func newParts(mgr manager.Manager, s *shared) (*parts, error) {
	f, err := newFailoverParts(mgr, s)
	if err != nil {
		return nil, err
	}
	members := &clusters{options: s.options, members: s.pool, guard: s.guard, wentBack: func(string, string, string) {}}
	return &parts{
		propagation: &propagation{
			wentBack: func(cluster, from, to string) { members.wentBack(cluster, from, to) },
			options:  s.options, store: s.store, interpreter: s.interpreter, members: s.pool, skipped: s.namespaces, retry: s.retry,
		},
		clusters: members,
		failover: f,
		quotas:   newQuotas(s.options, s.retry),
		scaling: &scaling{
			settings: &s.options.Autoscaling, cacheSyncTimeout: s.options.CacheSyncTimeout,
			store: s.store, members: s.pool, retry: s.retry,
		},
		networking: &networking{options: s.options, store: s.store, members: s.pool, retry: s.retry, conditions: status.For(
			mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{},
			func(m *networkingv1alpha1.MultiClusterService) *corev1.ServiceStatus { return &m.Status }, "conditions")},
	}, nil
}

func newShared(ctx context.Context, mgr manager.Manager, o *Options) (*shared, error) {
	apis, err := templates.ParseAPIs(o.SkippedPropagatingAPIs)
	if err != nil {
		return nil, fmt.Errorf("--skipped-propagating-apis: %w", err)
	}
	namespaces, err := templates.ParseNamespaces(o.SkippedPropagatingNamespaces)
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
	guard, err := newGuard(mgr, o)
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
	return &shared{
		options:     o,
		retry:       controllers.Retry{BaseDelay: o.RateLimiterBaseDelay, MaxDelay: o.RateLimiterMaxDelay},
		guard:       guard,
		interpreter: interp,
		namespaces:  namespaces,
		store: templates.New(templates.Config{
			Discovery: disc, Dynamic: dyn, Mapper: mgr.GetRESTMapper(),
			SkippedAPIs: apis, SkippedNamespaces: namespaces,
		}),
		pool: pool,
	}, nil
}

// clusters sets up the controllers that admit clusters and observe them.
type clusters struct {
	// wentBack is called when a cluster was found to be restored from an older copy.
	wentBack func(cluster, from, to string)
	options  *Options
	members  *access.Pool
	// guard receives what is observed.
	guard *massfailure.Guard
}

func (c *clusters) agentCSR(ctx context.Context, mgr manager.Manager) error {
	return agentcsr.Setup(ctx, mgr, agentcsr.Deps{Grant: agentrbac.NewGranter(mgr).Grant})
}

func (c *clusters) cluster(ctx context.Context, mgr manager.Manager) error {
	o := c.options
	return cluster.Setup(ctx, mgr, cluster.Deps{
		Workers: o.ClusterSyncs, MonitorPeriod: o.MonitorPeriod,
		MonitorGracePeriod: o.MonitorGracePeriod, StartupGracePeriod: o.StartupGracePeriod,
		FlapWindow: o.Failover.FlapWindow, Reported: c.guard.Observe,
	})
}

func (c *clusters) clusterStatus(ctx context.Context, mgr manager.Manager) error {
	o := c.options
	lost, err := orphans.Setup(mgr, orphans.Deps{Member: func(ctx context.Context, cluster *clusterv1alpha1.Cluster) (orphans.API, error) {
		return c.members.Member(ctx, cluster)
	}})
	if err != nil {
		return err
	}
	c.wentBack = lost.WentBack
	return clusterstatus.Setup(ctx, mgr, clusterstatus.Deps{
		Members: c.members, Frequency: o.StatusFrequency, Conditions: lost.Conditions, Probed: c.guard.Observe,
		SuccessThreshold: o.SuccessThreshold, FailureThreshold: o.FailureThreshold,
		Resources: o.ResourceModeling,
		Modeling:  o.Gates.Enabled(gates.CustomizedClusterResourceModeling),
	})
}

// quotas sets up the controllers of federated quotas.
type quotas struct {
	deps federatedquota.Deps
}

func newQuotas(o *Options, retry controllers.Retry) *quotas {
	return &quotas{federatedquota.Deps{
		Enforcement: o.Gates.Enabled(gates.FederatedQuotaEnforcement), SyncPeriod: o.QuotaSyncPeriod, Events: o.Events, Retry: retry,
	}}
}

func (q *quotas) sync(ctx context.Context, mgr manager.Manager) error {
	return federatedquota.SetupSync(ctx, mgr, q.deps)
}

func (q *quotas) status(ctx context.Context, mgr manager.Manager) error {
	return federatedquota.SetupStatus(ctx, mgr, q.deps)
}

// enforcement follows the feature gate FederatedQuotaEnforcement.
func (q *quotas) enforcement(ctx context.Context, mgr manager.Manager) error {
	if !q.deps.Enforcement {
		return nil
	}
	return federatedquota.SetupEnforcement(ctx, mgr, q.deps)
}
