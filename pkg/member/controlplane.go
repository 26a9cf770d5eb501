package member

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// APIMissing reports whether err means that a server does not serve an API, and not
// that an object of the API does not exist. Clients name the object in both cases.
func APIMissing(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// RequireControlPlane returns an error if a server does not serve the API of member
// clusters. It reads discovery only, which every user may, and no object.
func RequireControlPlane(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	err = client.RESTClient().Get().AbsPath("/apis", clusterv1alpha1.GroupName).Do(ctx).Error()
	if err != nil && APIMissing(err) {
		return notFederation(err)
	}
	return err
}

// notFederation replaces the error of a server that has no API of clusters.
func notFederation(err error) error {
	if APIMissing(err) {
		return fmt.Errorf("the server is no karmada control plane, it has no API of member clusters: %w; choose one with --kubeconfig and --karmada-context", err)
	}
	return err
}
