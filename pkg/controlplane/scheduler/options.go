package scheduler

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/limit"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	plugins "github.com/karmada-toolkit/karmada/plugins/scheduler"
)

// Options are the settings of the role.
type Options struct {
	// SchedulerName selects the bindings of this scheduler.
	SchedulerName string
	// Plugins selects plugins: "*" stands for all, "-name" takes one out.
	Plugins []string
	// OutOfTree are plugins beside the built-in ones.
	OutOfTree framework.Registry
	// Workers is the number of bindings that are handled at the same time.
	Workers int
	// EmptyWorkloadPropagation sends a workload also to the selected clusters that
	// get no replicas.
	EmptyWorkloadPropagation bool
	// Estimator configures the connections to accurate estimators.
	Estimator EstimatorOptions
	// RateLimiter delays retries when scheduling is not by priority.
	RateLimiter RateLimiterOptions
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Gates are the feature gates.
	Gates *gates.Gates
	// Direct schedules what controllers of the process create and evict. Optional.
	Direct *Direct
}

// EstimatorOptions configure the connections to the accurate estimators of the
// members.
type EstimatorOptions struct {
	Enabled            bool
	DisabledInPullMode bool
	estimator.Options
}

// RateLimiterOptions delay retries.
type RateLimiterOptions struct {
	BaseDelay, MaxDelay time.Duration
	QPS, BucketSize     int
}

// features are the gates of the role.
func features() []featuregate.Feature {
	return []featuregate.Feature{
		gates.Failover, gates.GracefulEviction, gates.CustomizedClusterResourceModeling, gates.PriorityBasedScheduling,
		gates.MultiplePodTemplatesScheduling, gates.ResourceQuotaEstimate, gates.SchedulingOvercommitProtection,
		gates.WorkloadAffinity, gates.FederatedQuotaEnforcement,
	}
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		SchedulerName: policyv1alpha1.DefaultSchedulerName,
		Plugins:       []string{"*"},
		Workers:       16,
		Estimator:     EstimatorOptions{Options: estimator.NewOptions()},
		RateLimiter:   RateLimiterOptions{BaseDelay: 5 * time.Millisecond, MaxDelay: 1000 * time.Second, QPS: 10, BucketSize: 100},
		Gates:         gates.New(features()...),
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	names := strings.Join(plugins.Registry(true).Names(), ", ")
	fs.StringVar(&o.SchedulerName, "scheduler-name", o.SchedulerName, "Name of this scheduler: it handles the bindings whose schedulerName it is.")
	fs.StringSliceVar(&o.Plugins, "plugins", o.Plugins, "Plugins to run: '*' runs all, 'name' one, '-name' takes one out. Built in: "+names)
	fs.IntVar(&o.Workers, "concurrent-binding-syncs", o.Workers, "Bindings that are handled at the same time.")
	fs.BoolVar(&o.EmptyWorkloadPropagation, "enable-empty-workload-propagation", o.EmptyWorkloadPropagation, "Send workloads also to the selected clusters that get none of their replicas.")
	e := &o.Estimator
	fs.BoolVar(&e.Enabled, "enable-scheduler-estimator", e.Enabled, "Use the replicas that fit in a cluster according to its scheduler-estimator.")
	fs.BoolVar(&e.DisabledInPullMode, "disable-scheduler-estimator-in-pull-mode", e.DisabledInPullMode, "Do not call the estimators of clusters in Pull mode.")
	e.AddFlags(fs)
	r := &o.RateLimiter
	fs.DurationVar(&r.BaseDelay, "rate-limiter-base-delay", r.BaseDelay, "First delay of a retry, when the gate PriorityBasedScheduling is off.")
	fs.DurationVar(&r.MaxDelay, "rate-limiter-max-delay", r.MaxDelay, "Longest delay of a retry, when that gate is off.")
	fs.IntVar(&r.QPS, "rate-limiter-qps", r.QPS, "Retries per second over all bindings, when that gate is off.")
	fs.IntVar(&r.BucketSize, "rate-limiter-bucket-size", r.BucketSize, "Retries in a burst over all bindings, when that gate is off.")
	o.Events.AddFlag(fs)
	o.Gates.AddFlag(fs)
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(o.SchedulerName != "", "--scheduler-name must not be empty")
	errs.Require(o.Workers >= 1, "--concurrent-binding-syncs is %d, must be at least 1", o.Workers)
	errs = append(errs, o.Estimator.Validate())
	return errors.Join(errs...)
}

// registry returns the built-in plugins and those out of tree.
func (o *Options) registry() (framework.Registry, error) {
	all := plugins.Registry(o.Gates.Enabled(gates.WorkloadAffinity))
	for _, name := range o.OutOfTree.Names() {
		if err := all.Register(name, o.OutOfTree[name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
