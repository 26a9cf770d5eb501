package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

const (
	// kindContext begins the contexts that kind makes; the name of the cluster follows.
	kindContext = "kind-"
	// kindPort is the port of the API server on the nodes of kind clusters.
	kindPort = "6443"
)

// NodeURL returns the URL of the API server of a kind cluster at the address of its node, where other containers
// and, on Linux, the machine reach it. It is empty if the context of a kubeconfig, with this server, is not that of a
// kind cluster on this machine; the error is the reason when it is and its node has no address.
func NodeURL(ctx context.Context, getenv func(string) string, kubeContext, server string) (string, error) {
	name, ok := strings.CutPrefix(kubeContext, kindContext)
	if !ok {
		return "", nil
	}
	e, err := findEngine(ctx, getenv)
	if err != nil {
		return "", nil //nolint:nilerr // no engine, no kind cluster
	}
	return nodeURL(cluster.NewProvider(e.option), name, server)
}

func nodeURL(lib library, name, server string) (string, error) {
	all, err := lib.ListNodes(name)
	if err != nil || len(all) == 0 {
		return "", nil //nolint:nilerr // not on this machine
	}
	kubeconfig, err := lib.KubeConfig(name, false)
	if err != nil || !servedAt(kubeconfig, server) {
		return "", nil //nolint:nilerr // another cluster's context of that name
	}
	// The certificate behind the load balancer of several nodes is for its name only.
	control, err := nodeutils.ControlPlaneNodes(all)
	if err == nil && len(control) == 0 {
		err = errors.New("it has no control plane node")
	}
	if err != nil {
		return "", fmt.Errorf("finding the node of kind cluster %q: %w", name, err)
	}
	address, err := nodeAddress(control[0])
	if err != nil {
		return "", fmt.Errorf("finding the address of node %s of kind cluster %q: %w", control[0], name, err)
	}
	return "https://" + net.JoinHostPort(address, kindPort), nil
}

func nodeAddress(node nodes.Node) (string, error) {
	ipv4, ipv6, err := node.IP()
	switch {
	case err != nil:
		return "", err
	case ipv4 != "":
		return ipv4, nil
	case ipv6 != "":
		return ipv6, nil
	default:
		return "", errors.New("it has none; is its container running?")
	}
}

// internalNodes returns the nodes of a kind cluster that run pods.
func internalNodes(lib library, name string) ([]nodes.Node, error) {
	all, err := lib.ListNodes(name)
	if err == nil {
		all, err = nodeutils.InternalNodes(all)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of kind cluster %q: %w", name, err)
	}
	return all, nil
}

// servedAt reports whether a kubeconfig has a cluster at this URL.
func servedAt(kubeconfig, server string) bool {
	config, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return false
	}
	for _, c := range config.Clusters {
		if strings.TrimSuffix(c.Server, "/") == strings.TrimSuffix(server, "/") {
			return true
		}
	}
	return false
}
