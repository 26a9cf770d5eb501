package aggregated

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/karmada-toolkit/karmada/internal/extension"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/limit"
)

// Options are the settings of the role.
type Options struct {
	// StoreOptions are the settings that it shares with other servers.
	extension.StoreOptions

	// MemberTimeout bounds the wait for each member in requests to all clusters.
	MemberTimeout time.Duration
	// MemberMinTLSVersion is the lowest version of TLS towards members.
	MemberMinTLSVersion string
	// LoopbackEndpoints lets agents register clusters at loopback and link-local
	// addresses. Default false: the control plane would connect to its own machine.
	LoopbackEndpoints bool
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		StoreOptions:        extension.NewStoreOptions(append(gates.ControllerManager(), gates.ResourceQuotaEstimate, gates.SchedulingOvercommitProtection)...),
		MemberTimeout:       10 * time.Second,
		MemberMinTLSVersion: "VersionTLS12",
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.StoreOptions.AddFlags(fs)
	fs.DurationVar(&o.MemberTimeout, "member-timeout", o.MemberTimeout, "How long each member is waited for in requests to all clusters.")
	fs.StringVar(&o.MemberMinTLSVersion, "member-tls-min-version", o.MemberMinTLSVersion, "Lowest version of TLS towards members: "+strings.Join(cliflag.TLSPossibleVersions(), ", "))
	fs.BoolVar(&o.LoopbackEndpoints, "allow-loopback-endpoints", o.LoopbackEndpoints, "Let agents of clusters in Pull mode set loopback and link-local addresses as the API endpoint or proxy of their cluster. For federations on one machine: the control plane connects to these addresses.")
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	errs := limit.Checks{o.StoreOptions.Validate()}
	_, err := cliflag.TLSVersion(o.MemberMinTLSVersion)
	errs.Require(err == nil, "--member-tls-min-version: %w", err)
	errs.Require(o.MemberTimeout > 0, "--member-timeout must be positive, got %s", o.MemberTimeout)
	return errors.Join(errs...)
}

// resourceModeling reports whether clusters get resource models.
func (o *Options) resourceModeling() bool {
	return o.Gates.Enabled(gates.CustomizedClusterResourceModeling)
}
