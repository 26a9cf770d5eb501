package access

import (
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Limits of what a member serves.
const (
	maxGroupVersions = 1000
	maxResources     = 20_000
	maxName          = 253
)

// boundedDiscovery is a discovery client with a limit of the groups and resources that a
// member serves: there is a request for each version of a group where the member does not
// support aggregated discovery, and all of them are cached.
type boundedDiscovery struct {
	*discovery.DiscoveryClient

	mu sync.Mutex
	// resources counts those returned since the groups were read.
	resources int
}

var _ discovery.AggregatedDiscoveryInterface = &boundedDiscovery{}

func newDiscovery(cfg *rest.Config, client *http.Client) (*boundedDiscovery, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, client)
	if err != nil {
		return nil, err
	}
	return &boundedDiscovery{DiscoveryClient: d}, nil
}

// GroupsAndMaybeResources implements discovery.AggregatedDiscoveryInterface.
func (d *boundedDiscovery) GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	groups, resources, failed, err := d.DiscoveryClient.GroupsAndMaybeResources()
	if err != nil {
		return nil, nil, nil, err
	}
	d.mu.Lock()
	d.resources = 0
	d.mu.Unlock()
	if err := checkGroups(groups); err != nil {
		return nil, nil, nil, err
	}
	for _, list := range resources {
		if err := d.add(list); err != nil {
			return nil, nil, nil, err
		}
	}
	return groups, resources, failed, nil
}

// ServerGroups implements discovery.ServerGroupsInterface.
func (d *boundedDiscovery) ServerGroups() (*metav1.APIGroupList, error) {
	groups, _, _, err := d.GroupsAndMaybeResources()
	return groups, err
}

// ServerResourcesForGroupVersion implements discovery.ServerResourcesInterface.
func (d *boundedDiscovery) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	list, err := d.DiscoveryClient.ServerResourcesForGroupVersion(groupVersion)
	if err != nil || list == nil {
		return list, err
	}
	return list, d.add(list)
}

// ServerGroupsAndResources implements discovery.ServerResourcesInterface.
func (d *boundedDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResources(d)
}

// ServerPreferredResources implements discovery.ServerResourcesInterface.
func (d *boundedDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredResources(d)
}

// ServerPreferredNamespacedResources implements discovery.ServerResourcesInterface.
func (d *boundedDiscovery) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredNamespacedResources(d)
}

// add counts resources and removes the fields that are not used.
func (d *boundedDiscovery) add(list *metav1.APIResourceList) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resources += len(list.APIResources); d.resources > maxResources {
		return fmt.Errorf("the cluster claims to serve more than %d resources", maxResources)
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if max(len(r.Name), len(r.SingularName), len(r.Kind), len(r.Group), len(r.Version)) > maxName {
			return fmt.Errorf("a resource of %.100q has a name longer than %d characters", list.GroupVersion, maxName)
		}
		r.Categories, r.ShortNames, r.StorageVersionHash = nil, nil, ""
	}
	return nil
}

func checkGroups(groups *metav1.APIGroupList) error {
	n := 0
	for i := range groups.Groups {
		if n += len(groups.Groups[i].Versions); n > maxGroupVersions {
			return fmt.Errorf("the cluster claims to serve more than %d versions of API groups", maxGroupVersions)
		}
		groups.Groups[i].ServerAddressByClientCIDRs = nil
	}
	return nil
}
