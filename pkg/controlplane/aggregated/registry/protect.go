package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Delete implements rest.GracefulDeleter. The webhook that protects other objects
// does not see clusters, so it is done here.
func (c *Clusters) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return c.Store.Delete(ctx, name, unlessProtected(validate), options)
}

// DeleteCollection implements rest.CollectionDeleter.
func (c *Clusters) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, which *metainternalversion.ListOptions) (runtime.Object, error) {
	return c.Store.DeleteCollection(ctx, unlessProtected(validate), options, which)
}

func unlessProtected(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		c := versioned(obj)
		if c.Labels[workv1alpha2.DeletionProtectionLabel] == workv1alpha2.DeletionProtectionAlways {
			return apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), c.Name,
				errors.New("This resource is protected, please make sure to remove the label: "+workv1alpha2.DeletionProtectionLabel)) //nolint:staticcheck // clients know this text
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}
