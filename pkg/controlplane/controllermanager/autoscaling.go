package controllermanager

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

// The controllers that run only if --controllers names them.
const (
	hpaScaleTargetMarker     = "hpaScaleTargetMarker"
	deploymentReplicasSyncer = "deploymentReplicasSyncer"
)

// Autoscaling configures how replicas follow from metrics and times of day.
type Autoscaling struct {
	autoscaling.Settings
	// SyncPeriod is the time between two passes over a FederatedHPA. Default 15 s.
	SyncPeriod time.Duration
	// CronDeadline is how late a rule of a CronFederatedHPA runs that was missed. Default 0: it does not.
	CronDeadline time.Duration

	upscaleDelay, downscaleDelay time.Duration
}

func newAutoscaling() Autoscaling {
	return Autoscaling{
		Settings:   autoscaling.Settings{DownscaleStabilization: 5 * time.Minute, Tolerance: 0.1, CPUInitialization: 5 * time.Minute, InitialReadiness: 30 * time.Second},
		SyncPeriod: 15 * time.Second, upscaleDelay: 3 * time.Minute, downscaleDelay: 5 * time.Minute,
	}
}

func (a *Autoscaling) addFlags(fs *pflag.FlagSet) {
	const prefix = "horizontal-pod-autoscaler-"
	fs.DurationVar(&a.SyncPeriod, prefix+"sync-period", a.SyncPeriod, "Time between two passes over a FederatedHPA.")
	fs.DurationVar(&a.DownscaleStabilization, prefix+"downscale-stabilization", a.DownscaleStabilization, "How long a recommendation of a FederatedHPA delays a scale-down.")
	fs.Float64Var(&a.Tolerance, prefix+"tolerance", a.Tolerance, "Relative distance between usage and target of a FederatedHPA that changes nothing.")
	fs.DurationVar(&a.CPUInitialization, prefix+"cpu-initialization-period", a.CPUInitialization, "Time after the start of a pod in which CPU usage counts only if it was measured after the pod was ready.")
	fs.DurationVar(&a.InitialReadiness, prefix+"initial-readiness-delay", a.InitialReadiness, "Time after the start of a pod in which a pod that is not ready counts as one that was never ready.")
	fs.DurationVar(&a.upscaleDelay, prefix+"upscale-delay", a.upscaleDelay, "Accepted, without effect.")
	fs.DurationVar(&a.downscaleDelay, prefix+"downscale-delay", a.downscaleDelay, "Accepted, without effect.")
	fs.DurationVar(&a.CronDeadline, "cron-federated-hpa-starting-deadline", a.CronDeadline, "How late a rule of a CronFederatedHPA runs that was missed while no controller ran, such as during a change of the leader; with 0 it does not run.")
}

func (a *Autoscaling) validate() []error {
	var errs limit.Checks
	errs.Require(a.SyncPeriod > 0, "--horizontal-pod-autoscaler-sync-period must be greater than 0, got %s", a.SyncPeriod)
	errs.Require(a.Tolerance >= 0, "--horizontal-pod-autoscaler-tolerance must be at least 0, got %v", a.Tolerance)
	errs.Require(a.DownscaleStabilization >= 0, "--horizontal-pod-autoscaler-downscale-stabilization must be at least 0, got %s", a.DownscaleStabilization)
	errs.Require(a.CPUInitialization >= 0, "--horizontal-pod-autoscaler-cpu-initialization-period must be at least 0, got %s", a.CPUInitialization)
	errs.Require(a.InitialReadiness >= 0, "--horizontal-pod-autoscaler-initial-readiness-delay must be at least 0, got %s", a.InitialReadiness)
	errs.Require(a.CronDeadline >= 0, "--cron-federated-hpa-starting-deadline must be at least 0, got %s", a.CronDeadline)
	return errs
}
