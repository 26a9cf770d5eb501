package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

// StoreOptions are the settings of servers that store objects in etcd.
type StoreOptions struct {
	// Options are those of all servers.
	Options
	// Etcd configures the storage.
	Etcd *genericoptions.EtcdOptions
	// Gates are the feature gates of the control plane and of Kubernetes. Nothing else in the process has them.
	Gates *gates.Gates
	// ShutdownTimeout bounds the wait for connections at the end. Default: 2s.
	ShutdownTimeout time.Duration
}

// NewStoreOptions returns the defaults, with feature gates of the control plane.
func NewStoreOptions(own ...featuregate.Feature) StoreOptions {
	return StoreOptions{
		Options:         NewOptions(),
		Etcd:            genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil)),
		Gates:           gates.NewWith(utilfeature.DefaultMutableFeatureGate.GetAllVersioned(), own...),
		ShutdownTimeout: 2 * time.Second,
	}
}

// AddFlags adds the flags of the settings.
func (o *StoreOptions) AddFlags(fs *pflag.FlagSet) {
	o.Etcd.AddFlags(fs)
	o.Options.AddFlags(fs)
	fs.Var(o.Gates, "feature-gates", "Feature gates of the control plane and of Kubernetes API servers, as name=true or name=false, separated by commas. Of the latter, only those have an effect that a server has for itself: APIServingWithRoutine and ConstrainedImpersonation.")
}

// Validate returns an error for settings that cannot work.
func (o *StoreOptions) Validate() error {
	errs := o.Etcd.Validate()
	return errors.Join(append(errs, o.Options.Validate())...)
}

// StoreConfig returns the configuration of a server that stores objects of a version in etcd.
func (o *StoreOptions) StoreConfig(ctx context.Context, controlPlane *rest.Config, serving *genericapiserver.SecureServingInfo, api API, version schema.GroupVersion) (*genericapiserver.Config, error) {
	api.ShutdownTimeout = o.ShutdownTimeout
	config, err := o.Config(ctx, controlPlane, serving, api)
	if err != nil {
		return nil, err
	}
	config.FeatureGate = o.Gates.FeatureGate()
	for _, f := range o.Gates.OthersSet() {
		// The library reads all others from the gates of the process, which other servers and clients share.
		if f != features.APIServingWithRoutine && f != features.ConstrainedImpersonation {
			klog.FromContext(ctx).Info("Setting has no effect in this role", "setting", fmt.Sprintf("--feature-gates=%s=%v", f, o.Gates.Enabled(f)))
		}
	}
	etcd := *o.Etcd
	etcd.StorageConfig.Codec = api.Codecs.LegacyCodec(version)
	etcd.StorageConfig.EncodeVersioner = runtime.NewMultiGroupVersioner(version)
	if err := etcd.ApplyTo(config); err != nil {
		return nil, fmt.Errorf("preparing the storage: %w", err)
	}
	return config, nil
}
