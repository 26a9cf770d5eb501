package search

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/karmada-toolkit/karmada/internal/extension"
)

// Options are the settings of the role.
type Options struct {
	// StoreOptions are the settings that it shares with other servers.
	extension.StoreOptions
	// Run limits requests and their time.
	Run *genericoptions.ServerRunOptions
	// DisableSearch takes the resource "search" away.
	DisableSearch bool
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		StoreOptions: extension.NewStoreOptions(),
		Run:          genericoptions.NewServerRunOptionsForComponent(basecompatibility.DefaultKubeComponent, basecompatibility.NewComponentGlobalsRegistry()),
	}
}

// notOwn are flags of genericoptions.ServerRunOptions about the versions of Kubernetes that a server emulates.
func notOwn() []string {
	return []string{"feature-gates", "emulated-version", "min-compatibility-version", "emulation-forward-compatible", "runtime-config-emulation-forward-compatible", "shutdown-watch-termination-grace-period"}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.StoreOptions.AddFlags(fs)
	run := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.Run.AddUniversalFlags(run)
	run.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notOwn(), f.Name) {
			fs.AddFlag(f)
		}
	})
	fs.BoolVar(&o.DisableSearch, "disable-search", o.DisableSearch, "Do not serve the resource \"search\".")
}

// Validate returns an error for settings that cannot work.
func (o *Options) Validate() error {
	return errors.Join(append(o.Run.Validate(), o.StoreOptions.Validate())...)
}

// applyRun sets the limits of requests.
func (o *Options) applyRun(config *genericapiserver.Config) {
	run := o.Run
	config.CorsAllowedOriginList, config.HSTSDirectives = run.CorsAllowedOriginList, run.HSTSDirectives
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight = run.MaxRequestsInFlight, run.MaxMutatingRequestsInFlight
	config.RequestTimeout, config.MinRequestTimeout = run.RequestTimeout, run.MinRequestTimeout
	config.LivezGracePeriod, config.StorageInitializationTimeout = run.LivezGracePeriod, run.StorageInitializationTimeout
	config.ShutdownDelayDuration, config.ShutdownSendRetryAfter = run.ShutdownDelayDuration, run.ShutdownSendRetryAfter
	config.GoawayChance, config.PublicAddress = run.GoawayChance, run.AdvertiseAddress
	if run.ExternalHost != "" {
		config.ExternalAddress = run.ExternalHost
	}
}
