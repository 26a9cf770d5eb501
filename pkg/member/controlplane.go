package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ServeTimeout is how long commands wait for a control plane that does not serve the API of member clusters yet.
const ServeTimeout = 10 * time.Second

// ErrUnserved is the cause of the error for a control plane that does not serve the API of member clusters in time.
var ErrUnserved = errors.New("the API of member clusters is not served")

// ErrIsControlPlane is the cause of the error for a host cluster that is a control plane.
var ErrIsControlPlane = errors.New("this is a Karmada control plane, not a host cluster")

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

// Unserved reports whether err means that an API server does not serve an API at the moment, as while it or the
// aggregated API server restarts, and not that it refuses the request.
func Unserved(err error) bool {
	return APIMissing(err) || discovery.IsGroupDiscoveryFailedError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServerTimeout(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}

// absent reports whether err means that an object does not exist. That a server does not serve its API is no such error.
func absent(err error) bool { return apierrors.IsNotFound(err) && !APIMissing(err) }

// RequireControlPlane returns an error if a server does not serve the API of member clusters. It reads discovery only,
// which every user may, and no object. A control plane that has just started serves this API later than others: it is
// waited for, for limit at most.
func RequireControlPlane(ctx context.Context, config *rest.Config, limit time.Duration, report Reporter) error {
	return require(ctx, config, limit, report, kube.CheckServed)
}

// RequireDiscovery is RequireControlPlane for clients that discover the kinds of the control plane.
func RequireDiscovery(ctx context.Context, config *rest.Config, limit time.Duration, report Reporter) error {
	err := RequireControlPlane(ctx, config, limit, report)
	if err != nil {
		return err
	}
	return require(ctx, config, limit, report, kube.CheckDiscovered)
}

func require(ctx context.Context, config *rest.Config, limit time.Duration, report Reporter, check func(context.Context, *rest.Config, schema.GroupVersion) error) error {
	var last error
	what := func() string { return fmt.Sprintf("%s to serve the API of member clusters (%v)", config.Host, last) }
	err := await(ctx, limit, report, what, func(ctx context.Context) (bool, error) {
		if last = check(ctx, config, clusterv1alpha1.GroupVersion); last == nil {
			return true, nil
		}
		if !starting(ctx, config, last) {
			return false, notFederation(last)
		}
		return false, nil
	})
	if errors.Is(err, wait.ErrTimeout) {
		return fmt.Errorf("%w: %s does not serve the API of member clusters (%s) after %s: %w; see whether karmada-aggregated-apiserver runs",
			ErrUnserved, config.Host, clusterv1alpha1.GroupVersion, limit, last)
	}
	return err
}

// starting reports whether a server that does not serve the API of member clusters is a control plane that may serve it
// soon. For users who may not read the APIService, another API of the control plane decides.
func starting(ctx context.Context, config *rest.Config, err error) bool {
	if !APIMissing(err) {
		return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || errors.Is(err, kube.ErrUndiscovered)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false
	}
	exists := func(path ...string) error {
		return client.RESTClient().Get().AbsPath(path...).MaxRetries(0).Do(ctx).Error()
	}
	name := clusterv1alpha1.GroupVersion.Version + "." + clusterv1alpha1.GroupName
	if err = exists("/apis/apiregistration.k8s.io/v1/apiservices", name); err == nil || absent(err) {
		return err == nil
	}
	return exists("/apis", policyv1alpha1.GroupName) == nil
}

// notFederation replaces the error of a server that has no API of clusters.
func notFederation(err error) error {
	if APIMissing(err) {
		return fmt.Errorf("the server is no karmada control plane, it has no API of member clusters: %w; choose one with --kubeconfig and --karmada-context", err)
	}
	return err
}
