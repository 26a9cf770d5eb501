package controllermanager

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/applicationfailover"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clustertaint"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/gracefuleviction"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/massfailure"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/rebalancer"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/remedy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/taintmanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Failover configures when workloads leave clusters.
type Failover struct {
	// GracefulTimeout limits the time of an eviction task without a grace period. Default 10 min.
	GracefulTimeout time.Duration
	// TaintManager runs the taint manager, if the feature gate Failover is on as well. Default true.
	TaintManager bool
	// NoExecuteEviction makes NoExecute taints of clusters evict. Default false.
	NoExecuteEviction bool
	// PurgeMode is the purge mode of bindings without a cluster failover behavior, Gracefully or Directly. Default
	// Gracefully.
	PurgeMode string
	// Rate is the number of evictions per second of a worker of the taint manager. Default 0.5.
	Rate float32
	// MassFailureThreshold is the share of the clusters, from 0 to 1, whose failure at once stops evictions from clusters
	// that are not Ready. 0 never stops them. Default 0.5.
	MassFailureThreshold float64
	// FlapWindow is the time in which the condition Ready of a cluster may change three times; after more changes the
	// cluster gets no new workloads until it has not changed for that time. 0 turns it off. Default 0.
	FlapWindow time.Duration
	// Budget limits the evictions of the federation to a number of bindings per minute, such as "30", or to a share of all
	// bindings, such as "10%". Default: no limit.
	Budget string
	// Schedule is what schedules evicted bindings in the same process, see taintmanager.Deps. Optional.
	Schedule func(ctx context.Context, s *scope.Binding, b workv1alpha2.Binding, spec *workv1alpha2.ResourceBindingSpec) (bool, error)
}

func newFailover() Failover {
	return Failover{GracefulTimeout: 10 * time.Minute, TaintManager: true, PurgeMode: string(policyv1alpha1.PurgeModeGracefully), Rate: 0.5, MassFailureThreshold: 0.5}
}

func (f *Failover) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&f.GracefulTimeout, "graceful-eviction-timeout", f.GracefulTimeout, "Time after which an eviction task without a grace period ends.")
	fs.BoolVar(&f.TaintManager, "enable-taint-manager", f.TaintManager, "Run the taint manager, if the feature gate Failover is on.")
	fs.BoolVar(&f.NoExecuteEviction, "enable-no-execute-taint-eviction", f.NoExecuteEviction, "Evict workloads from clusters with NoExecute taints that they do not tolerate.")
	fs.StringVar(&f.PurgeMode, "no-execute-taint-eviction-purge-mode", f.PurgeMode, "How workloads without a failover behavior for clusters are evicted: Gracefully keeps the old replicas until the new ones are healthy, Directly deletes them first.")
	fs.Float64Var(&f.MassFailureThreshold, "mass-failure-threshold", f.MassFailureThreshold, "Share of the clusters, from 0 to 1, whose failure within a minute stops evictions from clusters that are not Ready; with fewer than 3 clusters only the failure of all does. 0 never stops them.")
	fs.DurationVar(&f.FlapWindow, "flap-window", f.FlapWindow, "A cluster whose condition Ready changed more than 3 times in this time gets no new workloads until it has not changed for as long. 0 turns it off.")
	fs.StringVar(&f.Budget, "eviction-budget", f.Budget, "Most evictions per minute in the whole federation: a number of bindings, or a percentage of all such as 10%. Default: no limit.")
	fs.Float32Var(&f.Rate, "resource-eviction-rate", f.Rate, "Evictions per second of each of the three workers per kind of binding; with 0 a worker waits for 30 minutes after an eviction.")
}

func (f *Failover) validate() []error {
	var errs []error
	if mode := policyv1alpha1.PurgeMode(f.PurgeMode); f.NoExecuteEviction && mode != policyv1alpha1.PurgeModeGracefully && mode != policyv1alpha1.PurgeModeDirectly {
		errs = append(errs, fmt.Errorf("--no-execute-taint-eviction-purge-mode must be Gracefully or Directly, got %q", f.PurgeMode))
	}
	if f.Rate < 0 {
		errs = append(errs, fmt.Errorf("--resource-eviction-rate must be at least 0, got %v", f.Rate))
	}
	if t := f.MassFailureThreshold; math.IsNaN(t) || t < 0 || t > 1 {
		errs = append(errs, fmt.Errorf("--mass-failure-threshold must be from 0 to 1, got %v", f.MassFailureThreshold))
	}
	if _, err := eviction.ParseBudget(f.Budget); err != nil {
		errs = append(errs, fmt.Errorf("--eviction-budget: %w", err))
	}
	if f.FlapWindow < 0 {
		errs = append(errs, fmt.Errorf("--flap-window must be at least 0, got %s", f.FlapWindow))
	}
	if f.GracefulTimeout < 0 {
		errs = append(errs, fmt.Errorf("--graceful-eviction-timeout must be at least 0, got %s", f.GracefulTimeout))
	}
	return errs
}

// failover sets up the controllers that decide where workloads no longer run.
type failover struct {
	options     *Options
	interpreter *interpreter.Interpreter
	retry       controllers.Retry
	guard       *massfailure.Guard
	// budget is nil without a limit.
	budget taintmanager.Budget
}

func newFailoverParts(mgr manager.Manager, s *shared) (*failover, error) {
	budget, err := eviction.ParseBudget(s.options.Failover.Budget)
	if err != nil {
		return nil, fmt.Errorf("--eviction-budget: %w", err)
	}
	f := &failover{options: s.options, interpreter: s.interpreter, retry: s.retry, guard: s.guard}
	if !budget.Unlimited() {
		f.budget = evictions.NewLedger(mgr.GetClient(), budget, clock.RealClock{})
	}
	return f, nil
}

// newGuard returns the Guard that the controllers of evictions and those that observe clusters share.
func newGuard(mgr manager.Manager, o *Options) (*massfailure.Guard, error) {
	d := massfailure.Deps{Threshold: o.Failover.MassFailureThreshold, GracefulTimeout: o.Failover.GracefulTimeout}
	if !o.Enabled("clusterStatus") { // then clusters with sync mode Push are not probed
		d.Observed = func(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode == clusterv1alpha1.Pull }
	}
	return massfailure.Setup(mgr, d)
}

// taintManager follows the feature gate Failover.
func (f *failover) taintManager(ctx context.Context, mgr manager.Manager) error {
	o := f.options
	if !o.Gates.Enabled(gates.Failover) || !o.Failover.TaintManager {
		return nil
	}
	return taintmanager.Setup(ctx, mgr, taintmanager.Deps{
		Evict: o.Failover.NoExecuteEviction, PurgeMode: policyv1alpha1.PurgeMode(o.Failover.PurgeMode), Rate: o.Failover.Rate,
		PreserveState: o.Gates.Enabled(gates.StatefulFailoverInjection),
		Hold:          f.guard.Hold, Budget: f.budget, Schedule: o.Failover.Schedule,
		Workers: o.ClusterSyncs, Retry: f.retry,
	})
}

func (f *failover) gracefulEviction(ctx context.Context, mgr manager.Manager) error {
	o := f.options
	return gracefuleviction.Setup(ctx, mgr, gracefuleviction.Deps{
		Timeout: o.Failover.GracefulTimeout, BindingSyncs: o.BindingSyncs, ClusterBindingSyncs: o.ClusterBindingSyncs, Events: o.Events, Retry: f.retry,
	})
}

func (f *failover) applicationFailover(ctx context.Context, mgr manager.Manager) error {
	o := f.options
	return applicationfailover.Setup(ctx, mgr, applicationfailover.Deps{
		Interpreter:      f.interpreter,
		GracefulEviction: o.Gates.Enabled(gates.GracefulEviction), PreserveState: o.Gates.Enabled(gates.StatefulFailoverInjection),
		Hold: f.guard.Hold, Budget: f.budget,
		BindingSyncs: o.BindingSyncs, ClusterBindingSyncs: o.ClusterBindingSyncs, Retry: f.retry,
	})
}

// clusterTaint follows the feature gate Failover.
func (f *failover) clusterTaint(ctx context.Context, mgr manager.Manager) error {
	if !f.options.Gates.Enabled(gates.Failover) {
		return nil
	}
	return clustertaint.Setup(ctx, mgr, clustertaint.Deps{Workers: f.options.ClusterSyncs, Retry: f.retry})
}

func (f *failover) remedy(ctx context.Context, mgr manager.Manager) error {
	return remedy.Setup(ctx, mgr, remedy.Deps{Retry: f.retry})
}

func (f *failover) workloadRebalancer(ctx context.Context, mgr manager.Manager) error {
	return rebalancer.Setup(ctx, mgr, rebalancer.Deps{Retry: f.retry})
}
