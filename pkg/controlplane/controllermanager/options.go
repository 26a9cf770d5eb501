// Package controllermanager is the role that propagates templates to clusters and
// collects their status.
package controllermanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// Options are the settings of the role.
type Options struct {
	// Controllers are the names to run; "*" stands for all, "-name" takes one out.
	Controllers []string
	// SkippedPropagatingAPIs are kinds that are not propagated, beside the built-in
	// ones, separated by semicolons.
	SkippedPropagatingAPIs string
	// SkippedPropagatingNamespaces are regular expressions of namespaces whose
	// objects are not propagated.
	SkippedPropagatingNamespaces []string

	env.Syncs

	// Scheduler is that of the same process. Optional.
	Scheduler env.Scheduler

	// ClusterAPIQPS and ClusterAPIBurst limit the requests to each member, once a
	// value was given; until then the member's own fairness is relied on.
	ClusterAPIQPS   limit.Limit
	ClusterAPIBurst int

	// StatusFrequency is the time between probes of a healthy cluster.
	StatusFrequency time.Duration
	// SuccessThreshold and FailureThreshold are how long probes of a cluster must
	// succeed or fail before its Ready condition changes.
	SuccessThreshold, FailureThreshold time.Duration
	// MonitorPeriod, MonitorGracePeriod and StartupGracePeriod time out clusters
	// whose status is not reported.
	MonitorPeriod, MonitorGracePeriod, StartupGracePeriod time.Duration
	// CacheSyncTimeout bounds the wait for the caches of a member.
	CacheSyncTimeout time.Duration
	// ResourceModeling collects nodes and pods of members for the estimation of
	// capacity.
	ResourceModeling bool

	// QuotaSyncPeriod is the time between two counts of what bindings use of federated
	// quotas, beside those after changes. 0 or less: none.
	QuotaSyncPeriod time.Duration

	// TemplateConditions adds the conditions that clients of Kubernetes wait for to
	// the status of templates. Default true.
	TemplateConditions bool

	// RateLimiter delays retries.
	RateLimiterBaseDelay, RateLimiterMaxDelay time.Duration
	RateLimiterQPS, RateLimiterBucket         int

	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Failover configures when workloads leave clusters.
	Failover Failover
	// Autoscaling configures FederatedHPAs and CronFederatedHPAs.
	Autoscaling Autoscaling
	// Gates are the feature gates.
	Gates *gates.Gates

	// accepted are flags of the contract for parts that are not in yet.
	accepted accepted
}

// accepted holds the values of flags that existing manifests pass, and which
// nothing reads yet.
type accepted struct {
	resyncPeriod                     time.Duration
	clusterAPIKubeconfig, apiContext string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Controllers:                  []string{"*"},
		SkippedPropagatingNamespaces: []string{"kube-.*"},
		Syncs: env.Syncs{
			ClusterSyncs: 5, WorkSyncs: 5, BindingSyncs: 5, ClusterBindingSyncs: 5, TemplateSyncs: 5,
			NamespaceSyncs: 1, PolicySyncs: 1, ClusterPolicySyncs: 1, DependentSyncs: 2,
		},
		ClusterAPIQPS: limit.New(40), ClusterAPIBurst: 60,
		StatusFrequency:      10 * time.Second,
		SuccessThreshold:     30 * time.Second,
		FailureThreshold:     30 * time.Second,
		MonitorPeriod:        5 * time.Second,
		MonitorGracePeriod:   40 * time.Second,
		StartupGracePeriod:   time.Minute,
		CacheSyncTimeout:     2 * time.Minute,
		ResourceModeling:     true,
		TemplateConditions:   true,
		RateLimiterBaseDelay: 5 * time.Millisecond,
		RateLimiterMaxDelay:  1000 * time.Second,
		RateLimiterQPS:       10,
		RateLimiterBucket:    100,
		Gates:                gates.New(gates.ControllerManager()...),
		Failover:             newFailover(),
		Autoscaling:          newAutoscaling(),
		QuotaSyncPeriod:      5 * time.Minute,
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "Controllers to run: '*' runs all but "+hpaScaleTargetMarker+" and "+deploymentReplicasSyncer+", 'name' one, '-name' takes one out. All: "+strings.Join(ControllerNames(), ", "))
	fs.StringVar(&o.SkippedPropagatingAPIs, "skipped-propagating-apis", o.SkippedPropagatingAPIs, "Kinds that are not propagated, separated by semicolons: <group>, <group>/<version>, or <group>/<version>/<kind>,<kind>; v1/<kind> for the core group.")
	fs.StringSliceVar(&o.SkippedPropagatingNamespaces, "skipped-propagating-namespaces", o.SkippedPropagatingNamespaces, "Regular expressions of namespaces whose objects are not propagated.")
	o.addWorkerFlags(fs)
	fs.Var(&o.ClusterAPIQPS, "cluster-api-qps", "Requests per second to each member cluster, when the flag is given; otherwise only the member's API priority and fairness limits them.")
	fs.IntVar(&o.ClusterAPIBurst, "cluster-api-burst", o.ClusterAPIBurst, "Requests in a burst to each member cluster.")
	for _, name := range []string{"cluster-lease-duration", "cluster-lease-renew-interval-fraction"} { // of v1.17 and before
		fs.String(name, "", "Not used.")
		_ = fs.MarkDeprecated(name, "it has no effect: agents have it")
	}
	fs.DurationVar(&o.StatusFrequency, "cluster-status-update-frequency", o.StatusFrequency, "Time between two status collections of a healthy cluster.")
	fs.DurationVar(&o.SuccessThreshold, "cluster-success-threshold", o.SuccessThreshold, "How long a cluster must be healthy before it is Ready again.")
	fs.DurationVar(&o.FailureThreshold, "cluster-failure-threshold", o.FailureThreshold, "How long a cluster must be unhealthy before it is not Ready.")
	fs.DurationVar(&o.MonitorPeriod, "cluster-monitor-period", o.MonitorPeriod, "Time between checks for clusters whose status is not updated.")
	fs.DurationVar(&o.MonitorGracePeriod, "cluster-monitor-grace-period", o.MonitorGracePeriod, "Time without an update of its status after which a cluster is Unknown.")
	fs.DurationVar(&o.StartupGracePeriod, "cluster-startup-grace-period", o.StartupGracePeriod, "The same for a cluster whose status was never updated.")
	fs.DurationVar(&o.CacheSyncTimeout, "cluster-cache-sync-timeout", o.CacheSyncTimeout, "How long to wait for the caches of a member cluster.")
	fs.BoolVar(&o.ResourceModeling, "enable-cluster-resource-modeling", o.ResourceModeling, "Collect nodes and pods of members for the estimation of capacity.")
	fs.BoolVar(&o.TemplateConditions, "template-conditions", o.TemplateConditions, "Add to the status of templates the conditions that clients of Kubernetes wait for, such as Available and Progressing of Deployments.")
	fs.DurationVar(&o.RateLimiterBaseDelay, "rate-limiter-base-delay", o.RateLimiterBaseDelay, "First delay of a retry.")
	fs.DurationVar(&o.RateLimiterMaxDelay, "rate-limiter-max-delay", o.RateLimiterMaxDelay, "Longest delay of a retry.")
	fs.IntVar(&o.RateLimiterQPS, "rate-limiter-qps", o.RateLimiterQPS, "Retries per second over all objects of a controller.")
	fs.IntVar(&o.RateLimiterBucket, "rate-limiter-bucket-size", o.RateLimiterBucket, "Retries in a burst over all objects of a controller.")
	fs.DurationVar(&o.QuotaSyncPeriod, "federated-resource-quota-sync-period", o.QuotaSyncPeriod, "Time between two counts of what the workloads of a namespace use of its FederatedResourceQuotas, in addition to those after changes; 0 or less turns them off.")
	o.Events.AddFlag(fs)
	o.Failover.addFlags(fs)
	o.Autoscaling.addFlags(fs)
	o.Gates.AddFlag(fs)
	o.addAcceptedFlags(fs)
}

func (o *Options) addWorkerFlags(fs *pflag.FlagSet) {
	for _, f := range []struct {
		value *int
		name  string
	}{
		{&o.ClusterSyncs, "cluster"},
		{&o.WorkSyncs, "work"},
		{&o.BindingSyncs, "resourcebinding"},
		{&o.ClusterBindingSyncs, "clusterresourcebinding"},
		{&o.TemplateSyncs, "resource-template"},
		{&o.NamespaceSyncs, "namespace"},
		{&o.PolicySyncs, "propagation-policy"},
		{&o.ClusterPolicySyncs, "cluster-propagation-policy"},
		{&o.DependentSyncs, "dependent-resource"},
	} {
		fs.IntVar(f.value, "concurrent-"+f.name+"-syncs", *f.value, "Objects of this kind handled at the same time.")
	}
}

func (o *Options) addAcceptedFlags(fs *pflag.FlagSet) {
	a := &o.accepted
	const later = "Accepted for the manifests that pass it; it has no effect yet."
	fs.DurationVar(&a.resyncPeriod, "resync-period", 0, later)
	fs.StringVar(&a.clusterAPIKubeconfig, "cluster-api-kubeconfig", "", later)
	fs.StringVar(&a.apiContext, "cluster-api-context", "", later)
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(o.StatusFrequency > 0, "--cluster-status-update-frequency must be greater than 0, got %s", o.StatusFrequency)
	errs.Require(o.MonitorPeriod > 0, "--cluster-monitor-period must be greater than 0, got %s", o.MonitorPeriod)
	errs.Require(o.MonitorGracePeriod > 0, "--cluster-monitor-grace-period must be greater than 0, got %s", o.MonitorGracePeriod)
	errs.Require(o.StartupGracePeriod > 0, "--cluster-startup-grace-period must be greater than 0, got %s", o.StartupGracePeriod)
	_, err := templates.ParseAPIs(o.SkippedPropagatingAPIs)
	errs.Require(err == nil, "--skipped-propagating-apis: %w", err)
	_, err = propagation.ParseNamespaces(o.SkippedPropagatingNamespaces)
	errs.Require(err == nil, "--skipped-propagating-namespaces: %w", err)
	errs = append(errs, o.Failover.validate()...)
	errs = append(errs, o.Autoscaling.validate()...)
	if err := o.checkControllers(); err != nil {
		errs = append(errs, err)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// ControllerNames are the names that --controllers knows.
func ControllerNames() []string {
	return []string{
		"agentcsrapproving", "applicationFailover", "binding", "bindingStatus", "cluster", "clusterStatus", "clustertaintpolicy",
		"cronFederatedHorizontalPodAutoscaler", deploymentReplicasSyncer, "endpointSlice", "endpointsliceCollect", "endpointsliceDispatch",
		"execution", "federatedHorizontalPodAutoscaler", "federatedResourceQuotaEnforcement", "federatedResourceQuotaStatus", "federatedResourceQuotaSync",
		"gracefulEviction", hpaScaleTargetMarker, "multiclusterservice", "namespace", "remedy", "serviceExport", "serviceImport", "unifiedAuth",
		"workStatus", "workloadRebalancer",
	}
}

// Enabled reports whether --controllers includes a controller: the first entry that
// names it decides, then "*", which leaves out two.
func (o *Options) Enabled(name string) bool {
	all, named := false, name == hpaScaleTargetMarker || name == deploymentReplicasSyncer
	for _, entry := range o.Controllers {
		switch entry {
		case name:
			return true
		case "-" + name:
			return false
		case "*":
			all = !named
		}
	}
	return all
}

// losses returns a line for each flag whose value replaces a default that most users want to keep.
func (o *Options) losses() []string {
	var out []string
	var off []string
	for _, name := range ControllerNames() {
		if name != hpaScaleTargetMarker && name != deploymentReplicasSyncer && !o.Enabled(name) {
			off = append(off, name)
		}
	}
	if len(off) > 0 {
		out = append(out, "--controllers replaces its default, \"*\": these controllers do not run: "+strings.Join(off, ", "))
	}
	if skipped, err := propagation.ParseNamespaces(o.SkippedPropagatingNamespaces); err == nil && !skipped.Matches("kube-system") {
		out = append(out, "--skipped-propagating-namespaces replaces its default, \"kube-.*\": policies propagate objects of the namespace kube-system")
	}
	return out
}

// checkControllers returns an error for names that --controllers does not know.
func (o *Options) checkControllers() error {
	known := ControllerNames()
	for _, entry := range o.Controllers {
		if name := strings.TrimPrefix(entry, "-"); entry != "*" && !slices.Contains(known, name) {
			return fmt.Errorf("--controllers: unknown controller %q; known are *, %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// withoutEffect returns the settings without effect in this version: flags and
// feature gates.
func (o *Options) withoutEffect() []string {
	var out []string
	for _, f := range o.Gates.Changed(gates.ControllersWithoutEffect()...) {
		out = append(out, fmt.Sprintf("--feature-gates=%s=%v", f, o.Gates.Enabled(f)))
	}
	given, standard := o.accepted, NewOptions().accepted
	for _, f := range []struct {
		name            string
		value, standard any
	}{
		{"resync-period", given.resyncPeriod, standard.resyncPeriod},
		{"cluster-api-kubeconfig", given.clusterAPIKubeconfig, standard.clusterAPIKubeconfig},
		{"cluster-api-context", given.apiContext, standard.apiContext},
	} {
		if f.value != f.standard {
			out = append(out, fmt.Sprintf("--%s=%v", f.name, f.value))
		}
	}
	return out
}

// warn logs the settings without effect.
func (o *Options) warn(log logr.Logger) {
	for _, setting := range o.withoutEffect() {
		log.Info("Setting has no effect in this version", "setting", setting)
	}
}
