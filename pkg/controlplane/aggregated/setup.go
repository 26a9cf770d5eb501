// Package aggregated is the API server of the member clusters: it stores Cluster
// objects in etcd and carries requests to the clusters' own API servers. It
// stands behind the control plane's API server as an aggregated API.
package aggregated

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
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
