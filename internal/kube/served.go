package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
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
