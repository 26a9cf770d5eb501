package descheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/events"
	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
)

// Options are the settings of the role.
type Options struct {
	// Interval is the time between two passes over all bindings. Default: 2 minutes.
	Interval time.Duration
	// Threshold is how long a replica must have been unschedulable before it is taken back. Default: 5 minutes.
	Threshold time.Duration
	// DryRun logs what would be taken back, and writes nothing.
	DryRun bool
	// Estimator configures the connections to estimators.
	Estimator estimator.Options
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Interval: 2 * time.Minute, Threshold: 5 * time.Minute, Estimator: estimator.NewOptions()}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.Interval, "descheduling-interval", o.Interval, "Time between two passes over all workloads.")
	fs.DurationVar(&o.Threshold, "unschedulable-threshold", o.Threshold, "How long a replica must have been unschedulable before it is taken from its cluster.")
	fs.BoolVar(&o.DryRun, "dry-run", o.DryRun, "Log what would be taken from clusters, and change nothing.")
	o.Estimator.AddFlags(fs)
	o.Events.AddFlag(fs)
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs []error
	if o.Interval <= 0 {
		errs = append(errs, fmt.Errorf("--descheduling-interval is %s, must be greater than 0", o.Interval))
	}
	if o.Threshold < 0 {
		errs = append(errs, fmt.Errorf("--unschedulable-threshold is %s, must not be negative", o.Threshold))
	}
	return errors.Join(append(errs, o.Estimator.Validate())...)
}
