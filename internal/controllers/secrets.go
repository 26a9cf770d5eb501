package controllers

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Secrets returns a function that reads Secrets from a cache that watches them. One that is not there, or not yet, is read
// from the API server.
func Secrets(cached, live client.Reader) func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: namespace, Name: name}
		err := cached.Get(ctx, key, secret)
		if _, starting := errors.AsType[*cache.ErrCacheNotStarted](err); starting || apierrors.IsNotFound(err) {
			err = live.Get(ctx, key, secret)
		}
		if err != nil {
			return nil, err
		}
		return secret, nil
	}
}
