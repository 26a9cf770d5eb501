// Package kube holds what every client of the control plane needs: the scheme
// and the settings of its connections.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// aggregatedDiscovery accepts all kinds of a server in one document, or else its groups.
const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// ErrUndiscovered is in the error about an API that a server does not list among its kinds.
var ErrUndiscovered = errors.New("clients do not find its kinds yet")

// CheckServed returns why a server does not serve a version of an API, or nil. The error of a version that is not
// registered is NotFound, that of one whose aggregated API server does not answer ServiceUnavailable.
func CheckServed(ctx context.Context, cfg *rest.Config, gv schema.GroupVersion) error {
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", cfg.Host, err)
	}
	return c.RESTClient().Get().AbsPath("/apis", gv.Group, gv.Version).MaxRetries(0).Do(ctx).Error()
}

// CheckDiscovered returns why the kinds of a version of an API are not among those that a server lists, or nil. After a
// start of the API server they may be listed later than CheckServed succeeds, and the other way round.
func CheckDiscovered(ctx context.Context, cfg *rest.Config, gv schema.GroupVersion) error {
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", cfg.Host, err)
	}
	data, err := c.RESTClient().Get().AbsPath("/apis").SetHeader("Accept", aggregatedDiscovery).MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("listing the APIs of %s: %w", cfg.Host, err)
	}
	return listed(data, gv)
}

// listed returns why a version is not in the answer to a request for aggregatedDiscovery, or nil.
func listed(data []byte, gv schema.GroupVersion) error {
	var list struct {
		Items  []apidiscoveryv2.APIGroupDiscovery `json:"items"`
		Groups []metav1.APIGroup                  `json:"groups"` // of servers without aggregated discovery
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("decoding the list of APIs: %w", err)
	}
	for _, group := range list.Items {
		for _, v := range group.Versions {
			switch {
			case group.Name != gv.Group || v.Version != gv.Version:
			case v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale:
				return fmt.Errorf("%s: %w: the list of the API server is stale", gv, ErrUndiscovered)
			default:
				return nil
			}
		}
	}
	for _, group := range list.Groups {
		for _, v := range group.Versions {
			if v.GroupVersion == gv.String() {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: %w", gv, ErrUndiscovered)
}

// NewScheme returns a scheme with the types of Kubernetes and of the control
// plane.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addTo(scheme))
	return scheme
}

func addTo(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme,
		apiregistrationv1.AddToScheme,
		appsv1alpha1.AddToScheme,
		autoscalingv1alpha1.AddToScheme,
		operatorv1alpha1.AddToScheme,
		clusterv1alpha1.AddToScheme,
		configv1alpha1.AddToScheme,
		multiclusterv1alpha1.AddToScheme,
		networkingv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme,
		remedyv1alpha1.AddToScheme,
		searchv1alpha1.AddToScheme,
		workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	return nil
}

// Body sends a request and returns the body of the response. The error of a server is its Status with the message and
// the causes; Result.Raw returns a general text for the code instead.
func Body(ctx context.Context, r *rest.Request) ([]byte, error) {
	result := r.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
