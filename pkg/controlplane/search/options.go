package search

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	basecompatibility "k8s.io/component-base/compatibility"

	"github.com/karmada-toolkit/karmada/internal/extension"
	"github.com/karmada-toolkit/karmada/internal/limit"
)

// Options are the settings of the role.
type Options struct {
	// StoreOptions are the settings that it shares with other servers.
	extension.StoreOptions
	// Run limits requests and their time.
	Run *genericoptions.ServerRunOptions
	// DisableSearch takes the resource "search" away, DisableProxy the resource "proxying".
	DisableSearch, DisableProxy bool
	// ControlPlaneWrites lets the proxy write kinds that no registry selects: in the control plane. Default: false.
	ControlPlaneWrites bool
	// ClusterAPIQPS and ClusterAPIBurst limit the requests to each member.
	ClusterAPIQPS   limit.Limit
	ClusterAPIBurst int
	// LostClusterGrace is how long the objects of a cluster that is not Ready stay in the caches. Default: 5 min.
	LostClusterGrace time.Duration
	// CacheMemoryLimit is how much all cached objects may take. A kind of a cluster that exceeds it is not cached; 0 means no limit.
	// Default: 1 GiB.
	CacheMemoryLimit resource.QuantityValue
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		StoreOptions: extension.NewStoreOptions(),
		Run:          genericoptions.NewServerRunOptionsForComponent(basecompatibility.DefaultKubeComponent, basecompatibility.NewComponentGlobalsRegistry()),

		ClusterAPIQPS: limit.New(40), ClusterAPIBurst: 60, LostClusterGrace: 5 * time.Minute,
		CacheMemoryLimit: resource.QuantityValue{Quantity: *resource.NewQuantity(1<<30, resource.BinarySI)},
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
	fs.BoolVar(&o.DisableProxy, "disable-proxy", o.DisableProxy, "Do not serve the resource \"proxying\".")
	fs.BoolVar(&o.ControlPlaneWrites, "control-plane-writes", o.ControlPlaneWrites, "Let requests to the proxy write objects of kinds that no ResourceRegistry selects: those of the control plane. It needs the right to impersonate for these verbs, which installers do not give.")
	fs.Var(&o.ClusterAPIQPS, "cluster-api-qps", "Requests per second to each member cluster, when the flag is given; otherwise only the member's API priority and fairness limits them.")
	fs.IntVar(&o.ClusterAPIBurst, "cluster-api-burst", o.ClusterAPIBurst, "Requests in a burst to each member cluster; it matters only together with --cluster-api-qps.")
	fs.DurationVar(&o.LostClusterGrace, "lost-cluster-grace", o.LostClusterGrace, "How long the objects of a cluster that is not Ready stay in the caches.")
	fs.Var(&o.CacheMemoryLimit, "cache-memory-limit", "Memory that all cached objects may take, such as 2Gi; a kind of a cluster that exceeds it is not cached. 0 means no limit.")
}

// serves reports whether the server is to listen.
func (o *Options) serves() bool {
	return o.SecureServing.BindPort != 0 || o.SecureServing.Listener != nil
}

// Validate returns an error for settings that cannot work. Without a port they have no effect.
func (o *Options) Validate() error {
	if !o.serves() {
		return nil
	}
	errs := limit.Checks(append(o.Run.Validate(), o.StoreOptions.Validate()))
	errs.Require(o.LostClusterGrace >= 0, "--lost-cluster-grace must not be negative")
	errs.Require(o.CacheMemoryLimit.Sign() >= 0, "--cache-memory-limit must not be negative")
	return errors.Join(errs...)
}

// applyRun sets the limits of requests.
func (o *Options) applyRun(config *genericapiserver.Config) {
	run := o.Run
	config.CorsAllowedOriginList, config.HSTSDirectives = run.CorsAllowedOriginList, run.HSTSDirectives
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight = run.MaxRequestsInFlight, run.MaxMutatingRequestsInFlight
	config.RequestTimeout, config.MinRequestTimeout = run.RequestTimeout, run.MinRequestTimeout
	// Liveness includes the hooks of readiness, which end after the timeout at the latest.
	config.LivezGracePeriod, config.StorageInitializationTimeout = max(run.LivezGracePeriod, 2*run.StorageInitializationTimeout), run.StorageInitializationTimeout
	config.ShutdownDelayDuration, config.ShutdownSendRetryAfter = run.ShutdownDelayDuration, run.ShutdownSendRetryAfter
	config.GoawayChance, config.PublicAddress = run.GoawayChance, run.AdvertiseAddress
	if run.ExternalHost != "" {
		config.ExternalAddress = run.ExternalHost
	}
}
