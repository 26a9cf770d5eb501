package env

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

// searchProxy is the subresource of the role search that serves all members as one cluster.
const searchProxy = "proxying/proxy"

// SearchPath is where the control plane serves all members as one cluster.
func SearchPath() string {
	return "/apis/" + searchv1alpha1.GroupVersion.String() + "/proxying/karmada/proxy"
}

// SearchConfig returns the configuration of clients of all members as one cluster. Warnings about members go to stderr. It
// returns an error that says how to install the role search unless the control plane serves it.
func (p *ControlPlane) SearchConfig() (*rest.Config, error) {
	config, err := p.RESTConfig()
	if err != nil {
		return nil, err
	}
	if err := p.requireSearch(config); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Host = strings.TrimRight(config.Host, "/") + SearchPath()
	config.WarningHandler = rest.NewWarningWriter(p.warnings, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// InstallSearch returns how to install the role search, with the name of the program.
func InstallSearch(program string) string {
	return fmt.Sprintf("install it with %q on a host cluster, or %q for a local federation", program+" addons enable karmada-search", program+" local up --search")
}

func (p *ControlPlane) requireSearch(config *rest.Config) error {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	install := InstallSearch(p.name)
	list, err := c.ServerResourcesForGroupVersion(searchv1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the control plane has no role search: %s", install)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("the role search of the control plane does not answer: %w", err)
	case err != nil:
		return fmt.Errorf("listing the resources of %s: %w", searchv1alpha1.GroupVersion, err)
	case !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == searchProxy }):
		return fmt.Errorf("the role search of the control plane does not serve proxying: start it without --disable-proxy, or %s", install)
	}
	return nil
}
