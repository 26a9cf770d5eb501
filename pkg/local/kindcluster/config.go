package kindcluster

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// The range of node ports of Services.
const (
	firstNodePort = 30000
	lastNodePort  = 32767
	// preferredPort is where control planes are usually found.
	preferredPort = 32443
)

// template returns the configuration of a new cluster; empty text means kind's
// defaults.
func template(text string) (*v1alpha4.Cluster, error) {
	cfg := &v1alpha4.Cluster{TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"}}
	if text != "" {
		if err := yaml.UnmarshalStrict([]byte(text), cfg); err != nil {
			return nil, fmt.Errorf("reading the kind configuration: %w", err)
		}
	}
	if cfg.Kind != "Cluster" || cfg.APIVersion != "kind.x-k8s.io/v1alpha4" {
		return nil, fmt.Errorf("reading the kind configuration: it is %s %s, not kind.x-k8s.io/v1alpha4 Cluster", cfg.APIVersion, cfg.Kind)
	}
	v1alpha4.SetDefaultsCluster(cfg)
	return cfg, nil
}

// The subnets of the pods of members are 10.160.0.0/16 and those after it.
const (
	firstPodNetwork = 160
	podNetworks     = 40
	// kindPodSubnet is the subnet that kind gives the pods of every cluster.
	kindPodSubnet = "10.244.0.0/16"
)

// separate gives the pods of a member a subnet that no other member has, and records it: members whose subnets overlap
// cannot have routes to the pods of one another. A subnet that the configuration chooses stays.
func separate(cfg *v1alpha4.Cluster, k *federation.Kind, member string, members []string) {
	if cfg.Networking.IPFamily != v1alpha4.IPv4Family || cfg.Networking.PodSubnet != kindPodSubnet {
		return
	}
	maps.DeleteFunc(k.PodSubnets, func(name, _ string) bool { return !slices.Contains(members, name) })
	if k.PodSubnets[member] == "" {
		used := slices.Collect(maps.Values(k.PodSubnets))
		for n := range podNetworks {
			subnet := fmt.Sprintf("10.%d.0.0/16", firstPodNetwork+n)
			if slices.Contains(used, subnet) {
				continue
			}
			if k.PodSubnets == nil {
				k.PodSubnets = map[string]string{}
			}
			k.PodSubnets[member] = subnet
			break
		}
	}
	cfg.Networking.PodSubnet = cmp.Or(k.PodSubnets[member], kindPodSubnet)
}

// publish adds a port for the control plane to a configuration, which makes it
// reachable on this machine, and returns it: on Linux nodes are reached by their
// address anyway, elsewhere they are not.
func publish(cfg *v1alpha4.Cluster) (int, error) {
	first := slices.IndexFunc(cfg.Nodes, func(n v1alpha4.Node) bool { return n.Role == v1alpha4.ControlPlaneRole })
	if first < 0 {
		return 0, fmt.Errorf("the kind configuration has no node with the role %q", v1alpha4.ControlPlaneRole)
	}
	port, err := freeNodePort()
	if err != nil {
		return 0, err
	}
	cfg.Nodes[first].ExtraPortMappings = append(cfg.Nodes[first].ExtraPortMappings, v1alpha4.PortMapping{
		ContainerPort: int32(port), HostPort: int32(port), ListenAddress: federation.Loopback,
	})
	return port, nil
}

// isFree reports whether no program listens on a port of this machine.
func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(federation.Loopback, strconv.Itoa(port)))
	return err == nil && l.Close() == nil
}

// freeNodePort returns a port that can be a node port and is free: the usual one if
// possible.
func freeNodePort() (int, error) {
	if isFree(preferredPort) {
		return preferredPort, nil
	}
	for port := lastNodePort; port >= firstNodePort; port-- {
		if isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free on this machine", firstNodePort, lastNodePort)
}
