// Package managed connects the roles of the control plane to estimators. It is apart from package client, so that the command
// line does not link controller-runtime's managers.
package managed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
)

// NewPool returns a pool whose connections end with the manager. The Services are read live: they are few, and needed
// only to connect.
func NewPool(mgr manager.Manager, o client.Options) (*client.Pool, error) {
	live := mgr.GetAPIReader()
	o.Services = func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
		service := &corev1.Service{}
		err := live.Get(ctx, ctrlclient.ObjectKey{Namespace: namespace, Name: name}, service)
		return service, err
	}
	pool, err := client.NewPool(o)
	if err != nil {
		return nil, fmt.Errorf("estimators: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		pool.Close()
		return nil
	})); err != nil {
		return nil, fmt.Errorf("estimators: %w", err)
	}
	return pool, nil
}
