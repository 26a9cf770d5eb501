package aggregated

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/karmada-toolkit/karmada/internal/extension"
	"github.com/karmada-toolkit/karmada/internal/gates"
)

// Options are the settings of the role.
type Options struct {
	// Etcd configures the storage of clusters.
	Etcd *genericoptions.EtcdOptions
	// Options are the settings that it shares with other servers.
	extension.Options
	// Gates are the feature gates.
	Gates *gates.Gates

	// MemberTimeout bounds the wait for each member in requests to all clusters.
	MemberTimeout time.Duration
	// MemberMinTLSVersion is the lowest version of TLS towards members.
	MemberMinTLSVersion string
	// LoopbackEndpoints lets agents register clusters at loopback and link-local
	// addresses. Default false: the control plane would connect to its own machine.
	LoopbackEndpoints bool
	// ShutdownTimeout bounds the wait for connections at the end.
	ShutdownTimeout time.Duration

	kubernetesGates string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	etcd := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil))
	return &Options{
		Etcd:                etcd,
		Options:             extension.NewOptions(),
		Gates:               gates.New(append(gates.ControllerManager(), gates.ResourceQuotaEstimate, gates.SchedulingOvercommitProtection)...),
		MemberTimeout:       10 * time.Second,
		MemberMinTLSVersion: "VersionTLS12",
		ShutdownTimeout:     2 * time.Second,
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Etcd.AddFlags(fs)
	o.Options.AddFlags(fs)
	fs.Var(&gateFlag{o}, "feature-gates", "Feature gates of the control plane and of Kubernetes API servers, as name=true or name=false, separated by commas.")
	fs.DurationVar(&o.MemberTimeout, "member-timeout", o.MemberTimeout, "How long each member is waited for in requests to all clusters.")
	fs.StringVar(&o.MemberMinTLSVersion, "member-tls-min-version", o.MemberMinTLSVersion, "Lowest version of TLS towards members: "+strings.Join(cliflag.TLSPossibleVersions(), ", "))
	fs.BoolVar(&o.LoopbackEndpoints, "allow-loopback-endpoints", o.LoopbackEndpoints, "Let agents of clusters in Pull mode set loopback and link-local addresses as the API endpoint or proxy of their cluster. For federations on one machine: the control plane connects to these addresses.")
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs []error
	errs = append(errs, o.Etcd.Validate()...)
	errs = append(errs, o.Options.Validate())
	if _, err := cliflag.TLSVersion(o.MemberMinTLSVersion); err != nil {
		errs = append(errs, fmt.Errorf("--member-tls-min-version: %w", err))
	}
	if o.MemberTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--member-timeout must be positive, got %s", o.MemberTimeout))
	}
	errs = append(errs, checkKubernetesGates(o.kubernetesGates))
	return errors.Join(errs...)
}
