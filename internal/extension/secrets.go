package extension

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// PossibleSecret reports whether there can be a Secret of a name, so that somebody may be asked about it.
func PossibleSecret(ref clusterv1alpha1.LocalSecretReference) bool {
	return len(utilvalidation.IsDNS1123Label(ref.Namespace)) == 0 && len(utilvalidation.IsDNS1123Subdomain(ref.Name)) == 0
}

// CheckReadsSecret returns an error unless the requester may get a Secret of the control plane to which an object refers.
// consequence is what would happen otherwise, for the error: the server reads the Secret with its own rights.
func CheckReadsSecret(ctx context.Context, by authorizer.Authorizer, ref clusterv1alpha1.LocalSecretReference, consequence string) error {
	user, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return &notReadable{fmt.Sprintf("the requester of the reference to Secret %s/%s is not known", ref.Namespace, ref.Name)}
	}
	decision, _, err := by.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "get", APIVersion: "v1", Resource: "secrets", Namespace: ref.Namespace, Name: ref.Name, ResourceRequest: true,
	})
	if err != nil && decision != authorizer.DecisionAllow {
		return apierrors.NewInternalError(fmt.Errorf("asking whether %q may read Secret %s/%s: %w", user.GetName(), ref.Namespace, ref.Name, err))
	}
	if decision != authorizer.DecisionAllow {
		return &notReadable{fmt.Sprintf("user %q cannot get Secret %s/%s, %s", user.GetName(), ref.Namespace, ref.Name, consequence)}
	}
	return nil
}

// notReadable is why a requester may not refer to a Secret.
type notReadable struct{ text string }

// Error implements error.
func (e *notReadable) Error() string { return e.text }

// Refuse returns an error Forbidden about an object if err says that its requester may not read a Secret, and err otherwise.
func Refuse(resource schema.GroupResource, name string, err error) error {
	if refused, ok := errors.AsType[*notReadable](err); ok {
		return apierrors.NewForbidden(resource, name, refused)
	}
	return err
}

// UnlessProtected refuses to delete objects with the label that protects them. The webhook that does so for other objects
// does not see those of the servers behind the aggregation layer.
func UnlessProtected(resource schema.GroupResource, validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		object, err := meta.Accessor(obj)
		if err != nil {
			return fmt.Errorf("reading the metadata of %T: %w", obj, err)
		}
		if object.GetLabels()[workv1alpha2.DeletionProtectionLabel] == workv1alpha2.DeletionProtectionAlways {
			return apierrors.NewForbidden(resource, object.GetName(),
				errors.New("This resource is protected, please make sure to remove the label: "+workv1alpha2.DeletionProtectionLabel)) //nolint:staticcheck // clients know this text
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}
