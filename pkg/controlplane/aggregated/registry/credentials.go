package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// credentials checks the Secrets that a cluster refers to: the control plane sends
// what is in them to the endpoint of the cluster.
type credentials struct {
	authorizer authorizer.Authorizer
	secret     func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// check refuses a cluster whose Secrets the requester may not read itself, or that
// belong to another cluster. A nil old is a creation.
func (c *credentials) check(ctx context.Context, updated, old *clusterv1alpha1.Cluster) error {
	if c.authorizer == nil || old != nil && sameAccess(&updated.Spec, &old.Spec) {
		return nil
	}
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{updated.Spec.SecretRef, updated.Spec.ImpersonatorSecretRef} {
		if ref == nil || !extension.PossibleSecret(*ref) {
			continue
		}
		if err := c.readable(ctx, updated.Name, ref); err != nil {
			return err
		}
		if err := c.unowned(ctx, updated.Name, ref); err != nil {
			return err
		}
	}
	return nil
}

// sameAccess reports whether two specs use the same credentials in the same way.
// What schedules workloads does not matter, and every other field does.
func sameAccess(a, b *clusterv1alpha1.ClusterSpec) bool {
	without := func(spec *clusterv1alpha1.ClusterSpec) *clusterv1alpha1.ClusterSpec {
		out := spec.DeepCopy()
		out.ID, out.Provider, out.Region, out.Zone = "", "", "", ""
		out.Zones, out.Taints, out.ResourceModels = nil, nil, nil
		return out
	}
	return equality.Semantic.DeepEqual(without(a), without(b))
}

// readable returns an error unless the requester may read a Secret of the control
// plane.
func (c *credentials) readable(ctx context.Context, cluster string, ref *clusterv1alpha1.LocalSecretReference) error {
	err := extension.CheckReadsSecret(ctx, c.authorizer, *ref, "which the cluster refers to: its token would go to the cluster's endpoint")
	return extension.Refuse(clusterv1alpha1.Resource("clusters"), cluster, err)
}

// unowned refuses a Secret that belongs to another cluster.
func (c *credentials) unowned(ctx context.Context, cluster string, ref *clusterv1alpha1.LocalSecretReference) error {
	if c.secret == nil {
		return nil
	}
	secret, err := c.secret(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reading Secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	if owner := clusterv1alpha1.OtherOwner(secret, cluster); owner != "" {
		return forbidden(cluster, "Secret %s/%s belongs to cluster %q", ref.Namespace, ref.Name, owner)
	}
	return nil
}

func forbidden(cluster, format string, args ...any) error {
	return apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), cluster, fmt.Errorf(format, args...))
}
