package controllermanager

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/applicationfailover"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clustertaint"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/gracefuleviction"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/rebalancer"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/remedy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/taintmanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter"
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
}

func newFailover() Failover {
	return Failover{GracefulTimeout: 10 * time.Minute, TaintManager: true, PurgeMode: string(policyv1alpha1.PurgeModeGracefully), Rate: 0.5}
}

func (f *Failover) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&f.GracefulTimeout, "graceful-eviction-timeout", f.GracefulTimeout, "Time after which an eviction task without a grace period ends.")
	fs.BoolVar(&f.TaintManager, "enable-taint-manager", f.TaintManager, "Run the taint manager, if the feature gate Failover is on.")
	fs.BoolVar(&f.NoExecuteEviction, "enable-no-execute-taint-eviction", f.NoExecuteEviction, "Evict workloads from clusters with NoExecute taints that they do not tolerate.")
	fs.StringVar(&f.PurgeMode, "no-execute-taint-eviction-purge-mode", f.PurgeMode, "How workloads without a failover behavior for clusters are evicted: Gracefully keeps the old replicas until the new ones are healthy, Directly deletes them first.")
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
		Workers:       o.ClusterSyncs, Retry: f.retry,
	})
}

func (f *failover) gracefulEviction(ctx context.Context, mgr manager.Manager) error {
	o := f.options
	return gracefuleviction.Setup(ctx, mgr, gracefuleviction.Deps{
		Timeout: o.Failover.GracefulTimeout, BindingSyncs: o.BindingSyncs, ClusterBindingSyncs: o.ClusterBindingSyncs, Retry: f.retry,
	})
}

func (f *failover) applicationFailover(ctx context.Context, mgr manager.Manager) error {
	o := f.options
	return applicationfailover.Setup(ctx, mgr, applicationfailover.Deps{
		Interpreter:      f.interpreter,
		GracefulEviction: o.Gates.Enabled(gates.GracefulEviction), PreserveState: o.Gates.Enabled(gates.StatefulFailoverInjection),
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
