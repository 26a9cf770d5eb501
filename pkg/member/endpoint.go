package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

const (
	// reachLimit is how long the control plane may take to find out whether it reaches a member.
	reachLimit = 10 * time.Second
	// reasonNotReachable is the reason of the condition Ready of a cluster that the control plane does not reach.
	reasonNotReachable = "ClusterNotReachable"
)

// Addresses are what is known of the way from the control plane to a member.
type Addresses struct {
	// Name of the cluster.
	Name string
	// Member and ControlPlane are the URLs at which the user reaches both.
	Member, ControlPlane string
	// Proxied reports whether the member is reached through a proxy, to which its address belongs.
	Proxied bool
	// Given is the URL that the user named; empty means none.
	Given string
	// Node is the URL of the member at the address of its node, if that is known; empty means unknown.
	Node string
}

// NeedsNode reports whether the address of the member's node is of use.
func (a Addresses) NeedsNode() bool { return a.Given == "" && !a.Proxied && ownMachine(a.Member) }

// Endpoint returns the URL at which the control plane is to reach a member, empty for that of the user. It is uncertain
// when it means the user's own machine, where the control plane may run or not. The error is the reason when it cannot
// work.
func (a Addresses) Endpoint() (endpoint string, uncertain bool, err error) {
	switch {
	case a.Given != "":
		return a.Given, false, checkEndpoint(a.Given)
	case !a.NeedsNode():
		return "", false, nil
	case a.Node != "":
		return a.Node, ownMachine(a.ControlPlane), nil
	case ownMachine(a.ControlPlane):
		return "", true, nil
	default:
		return "", false, fmt.Errorf("cluster %q has the address %s, which means this machine, but the control plane runs elsewhere, at %s, and cannot reach the cluster there; %s", a.Name, a.Member, a.ControlPlane, nameEndpoint)
	}
}

const nameEndpoint = "name an address at which the control plane reaches it with --cluster-api-endpoint https://HOST:PORT"

// checkEndpoint reports why the control plane cannot use a URL.
func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--cluster-api-endpoint %q: use a URL such as https://192.0.2.1:6443", endpoint)
	}
	return nil
}

// ownMachine reports whether the host of a URL is localhost, a loopback or an
// unspecified address.
func ownMachine(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// Confirm waits until the control plane has found out whether it reaches a cluster that was just joined, and takes the
// join back when it does not. Anything else that keeps the cluster from being Ready is no error.
func Confirm(ctx context.Context, d Deps, r JoinRequest, cluster *clusterv1alpha1.Cluster) error {
	state, err := WaitReady(ctx, d, r.Name, reachLimit)
	if err != nil || !strings.HasPrefix(state, reasonNotReachable) {
		return err
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*undoLimit)
	defer cancel()
	_, err = Unjoin(undo, d, UnjoinRequest{Name: r.Name, Namespace: r.Namespace, Wait: undoLimit, Force: true})
	return errors.Join(fmt.Errorf("the control plane does not reach cluster %q at %s (%s), so it is not joined; %s", r.Name, cluster.Spec.APIEndpoint, state, nameEndpoint), err)
}
