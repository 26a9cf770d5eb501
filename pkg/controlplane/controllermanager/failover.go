package controllermanager

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/limit"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/massfailure"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/taintmanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
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
	var errs limit.Checks
	mode := policyv1alpha1.PurgeMode(f.PurgeMode)
	errs.Require(!f.NoExecuteEviction || mode == policyv1alpha1.PurgeModeGracefully || mode == policyv1alpha1.PurgeModeDirectly,
		"--no-execute-taint-eviction-purge-mode must be Gracefully or Directly, got %q", f.PurgeMode)
	errs.Require(f.Rate >= 0, "--resource-eviction-rate must be at least 0, got %v", f.Rate)
	errs.Require(f.MassFailureThreshold >= 0 && f.MassFailureThreshold <= 1, "--mass-failure-threshold must be from 0 to 1, got %v", f.MassFailureThreshold)
	_, err := eviction.ParseBudget(f.Budget)
	errs.Require(err == nil, "--eviction-budget: %w", err)
	errs.Require(f.FlapWindow >= 0, "--flap-window must be at least 0, got %s", f.FlapWindow)
	errs.Require(f.GracefulTimeout >= 0, "--graceful-eviction-timeout must be at least 0, got %s", f.GracefulTimeout)
	return errs
}

// newLimits returns the Guard that the controllers of evictions and those that observe clusters share, and what stops evictions.
func newLimits(e *env.Env, o *Options) (*massfailure.Guard, evictions.Limits, error) {
	budget, err := eviction.ParseBudget(o.Failover.Budget)
	if err != nil {
		return nil, evictions.Limits{}, fmt.Errorf("--eviction-budget: %w", err)
	}
	guard, err := massfailure.Setup(e, massfailure.Options{
		Threshold: o.Failover.MassFailureThreshold, GracefulTimeout: o.Failover.GracefulTimeout, PullOnly: !o.Enabled("clusterStatus"),
	})
	if err != nil {
		return nil, evictions.Limits{}, err
	}
	limits := evictions.Limits{Hold: guard.Hold}
	if !budget.Unlimited() {
		limits.Budget = evictions.NewLedger(e.Client, budget, e.Clock)
	}
	return guard, limits, nil
}

func (s *setup) taintManager(ctx context.Context, e *env.Env) error {
	f := &s.options.Failover
	if !f.TaintManager {
		return nil
	}
	return taintmanager.Setup(ctx, e, taintmanager.Options{
		Evict: f.NoExecuteEviction, PurgeMode: policyv1alpha1.PurgeMode(f.PurgeMode), Rate: f.Rate, Limits: s.limits,
	})
}
