// Package aggregated is the API server of the member clusters: it stores Cluster
// objects in etcd and carries requests to the clusters' own API servers. It
// stands behind the control plane's API server as an aggregated API.
package aggregated

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
)

// Setup adds the aggregated API server to the manager. It listens at once, so that
// a port that is taken shows here.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	serving, err := o.Serving()
	if err != nil {
		return err
	}
	s := &server{
		options:      o,
		controlPlane: mgr.GetConfig(),
		secret:       secrets(mgr.GetClient(), mgr.GetAPIReader()),
		now:          clock.RealClock{}.Now,
		serving:      serving,
	}
	if err := mgr.Add(controllers.Everywhere(s.run)); err != nil {
		return fmt.Errorf("adding the aggregated API server: %w", err)
	}
	return nil
}

// secrets reads Secrets from the cache. One that is not there, or not yet, is
// read from the API server.
func secrets(cached, live client.Reader) func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: namespace, Name: name}
		err := cached.Get(ctx, key, secret)
		var starting *cache.ErrCacheNotStarted
		if apierrors.IsNotFound(err) || errors.As(err, &starting) {
			err = live.Get(ctx, key, secret)
		}
		if err != nil {
			return nil, err
		}
		return secret, nil
	}
}

// gateFlag is the flag --feature-gates. It takes the gates of the control plane
// and those of Kubernetes API servers.
type gateFlag struct{ o *Options }

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
	if err := utilfeature.DefaultFeatureGate.DeepCopy().Set(text); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	return nil
}

// resourceModeling reports whether clusters get resource models.
func (o *Options) resourceModeling() bool {
	return o.Gates.Enabled(gates.CustomizedClusterResourceModeling)
}
