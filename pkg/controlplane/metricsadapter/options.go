package metricsadapter

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/extension"
	"github.com/karmada-toolkit/karmada/internal/limit"
)

// Options are the settings of the role.
type Options struct {
	// Options are the settings that it shares with other servers.
	extension.Options
	// ClusterAPIQPS and ClusterAPIBurst limit the requests to each member.
	ClusterAPIQPS   limit.Limit
	ClusterAPIBurst int
	// MemberTimeout bounds the wait for each member in a request. Default: 5s.
	MemberTimeout time.Duration
	// ShutdownTimeout bounds the wait for connections at the end.
	ShutdownTimeout time.Duration
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Options:         extension.NewOptions(),
		ClusterAPIQPS:   limit.New(40),
		ClusterAPIBurst: 60,
		MemberTimeout:   5 * time.Second,
		ShutdownTimeout: 2 * time.Second,
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.Var(&o.ClusterAPIQPS, "cluster-api-qps", "Requests per second to each member cluster, when the flag is given; otherwise only the member's API priority and fairness limits them.")
	fs.IntVar(&o.ClusterAPIBurst, "cluster-api-burst", o.ClusterAPIBurst, "Requests in a burst to each member cluster; it matters only together with --cluster-api-qps.")
	fs.DurationVar(&o.MemberTimeout, "member-timeout", o.MemberTimeout, "How long each member may take in a request to all clusters.")
}

// Validate returns an error for settings that cannot work.
func (o *Options) Validate() error {
	errs := []error{o.Options.Validate()}
	if o.MemberTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--member-timeout must be positive, got %s", o.MemberTimeout))
	}
	if o.ClusterAPIBurst < 0 {
		errs = append(errs, fmt.Errorf("--cluster-api-burst must not be negative, got %d", o.ClusterAPIBurst))
	}
	return errors.Join(errs...)
}
