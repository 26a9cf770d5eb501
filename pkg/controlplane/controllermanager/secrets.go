package controllermanager

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// secrets reads Secrets from the cache, or from the API server if the cache does not
// have them yet.
func secrets(mgr manager.Manager) access.SecretReader {
	return func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: namespace, Name: name}
		err := mgr.GetClient().Get(ctx, key, secret)
		if apierrors.IsNotFound(err) {
			err = mgr.GetAPIReader().Get(ctx, key, secret)
		}
		if err != nil {
			return nil, err
		}
		return secret, nil
	}
}
