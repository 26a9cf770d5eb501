package extension

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

// StoreOptions are the settings of servers that store objects in etcd.
type StoreOptions struct {
	// Options are those of all servers.
	Options
	// Etcd configures the storage.
	Etcd *genericoptions.EtcdOptions
	// Gates are the feature gates of the control plane.
	Gates *gates.Gates
	// ShutdownTimeout bounds the wait for connections at the end. Default: 2s.
	ShutdownTimeout time.Duration

	kubernetesGates string
}

// NewStoreOptions returns the defaults, with feature gates of the control plane.
func NewStoreOptions(features ...featuregate.Feature) StoreOptions {
	return StoreOptions{
		Options:         NewOptions(),
		Etcd:            genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil)),
		Gates:           gates.New(features...),
		ShutdownTimeout: 2 * time.Second,
	}
}

// AddFlags adds the flags of the settings.
func (o *StoreOptions) AddFlags(fs *pflag.FlagSet) {
	o.Etcd.AddFlags(fs)
	o.Options.AddFlags(fs)
	fs.Var(&gateFlag{o}, "feature-gates", "Feature gates of the control plane and of Kubernetes API servers, as name=true or name=false, separated by commas.")
}

// Validate returns an error for settings that cannot work.
func (o *StoreOptions) Validate() error {
	errs := o.Etcd.Validate()
	errs = append(errs, o.Options.Validate(), checkKubernetesGates(o.kubernetesGates))
	return errors.Join(errs...)
}

// StoreConfig returns the configuration of a server that stores objects of a version in etcd. It sets the feature gates of
// Kubernetes, which are the process's.
func (o *StoreOptions) StoreConfig(ctx context.Context, controlPlane *rest.Config, serving *genericapiserver.SecureServingInfo, api API, version schema.GroupVersion) (*genericapiserver.Config, error) {
	if err := utilfeature.DefaultMutableFeatureGate.Set(withoutLinked(o.kubernetesGates)); err != nil {
		return nil, fmt.Errorf("setting feature gates: %w", err)
	}
	api.ShutdownTimeout = o.ShutdownTimeout
	config, err := o.Config(ctx, controlPlane, serving, api)
	if err != nil {
		return nil, err
	}
	etcd := *o.Etcd
	etcd.StorageConfig.Codec = api.Codecs.LegacyCodec(version)
	etcd.StorageConfig.EncodeVersioner = runtime.NewMultiGroupVersioner(version)
	if err := etcd.ApplyTo(config); err != nil {
		return nil, fmt.Errorf("preparing the storage: %w", err)
	}
	return config, nil
}

// gateFlag is the flag --feature-gates. It takes the gates of the control plane
// and those of Kubernetes API servers.
type gateFlag struct{ o *StoreOptions }

// String implements pflag.Value.
func (*gateFlag) String() string { return "" }

// Type implements pflag.Value.
func (*gateFlag) Type() string { return "mapStringBool" }

// Set implements pflag.Value.
func (f *gateFlag) Set(text string) error {
	known := utilfeature.DefaultFeatureGate.DeepCopy().GetAll()
	var kubernetes []string
	var errs []error
	for one := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(one), "=")
		if _, ok := known[featuregate.Feature(name)]; ok {
			kubernetes = append(kubernetes, one)
		} else if name != "" {
			errs = append(errs, f.o.Gates.Set(one))
		}
	}
	f.o.kubernetesGates = strings.Trim(strings.Join(append(kubernetes, f.o.kubernetesGates), ","), ",")
	return errors.Join(errs...)
}

// KnownFeatures returns the gates of the control plane, a line each.
func (f *gateFlag) KnownFeatures() []string { return f.o.Gates.Known() }

// checkKubernetesGates reports whether the gates of the server can be set so. They
// are the process's, and set when the server starts.
func checkKubernetesGates(text string) error {
	if err := utilfeature.DefaultFeatureGate.DeepCopy().Set(withoutLinked(text)); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	return nil
}

// linkedGate is a gate of Kubernetes' own API server, which is there if a program links its packages. It is on by default and
// depends on gates that users of other servers may switch off.
const linkedGate = "UnknownVersionInteroperabilityProxy"

// withoutLinked switches linkedGate off in gates unless they set it.
func withoutLinked(text string) string {
	if _, ok := utilfeature.DefaultFeatureGate.DeepCopy().GetAll()[linkedGate]; !ok {
		return text
	}
	return strings.Trim(linkedGate+"=false,"+text, ",")
}
