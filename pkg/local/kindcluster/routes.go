package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
)

// routesTimeout bounds how long the nodes of a member may take to get the subnets of their pods.
const routesTimeout = 30 * time.Second

// podNode is a node of a member with the subnets of the pods on it.
type podNode struct {
	member, name string
	// addresses are those of the node in the network of all nodes.
	addresses []netip.Addr
	subnets   []netip.Prefix
}

// ConnectMembers gives the nodes of members that run routes to the pods of the other members: pods reach each other by
// their addresses. A node that was started again has lost its routes, and may have another address. Members without routes
// are in the result of the step; they are no error, since only Services that span clusters need routes.
func (r *Runtime) ConnectMembers(ctx context.Context) (err error) {
	const step = "routes"
	if len(r.record.f.Members) < 2 {
		return nil
	}
	defer progress.Begin(ctx, r.Progress, step, &err)()
	found, problems := r.podNodes(ctx, step)
	commands, overlaps := routes(found)
	problems = append(problems, overlaps...)
	failed := make([]string, len(commands))
	var all sync.WaitGroup
	for i, node := range slices.Sorted(maps.Keys(commands)) {
		all.Go(func() {
			if _, err := r.engine.run(ctx, "exec", node, "sh", "-c", strings.Join(commands[node], " && ")); err != nil {
				failed[i] = fmt.Sprintf("node %s: %v", node, err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	problems = append(problems, slices.DeleteFunc(failed, func(s string) bool { return s == "" })...)
	result := "pods of members reach each other"
	if len(problems) > 0 {
		result = "pods of some members do not reach each other: " + strings.Join(problems, "; ")
	}
	r.Progress.Done(step, result)
	return nil
}

// podNodes returns the nodes of the members that run, and why others are missing.
func (r *Runtime) podNodes(ctx context.Context, step string) (found []podNode, problems []string) {
	members := r.record.f.Members
	nodesOf, errs := make([][]podNode, len(members)), make([]error, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			errs[i] = wait.Until(ctx, wait.Options{
				Interval: time.Second, Timeout: routesTimeout,
				Publish: func(error) { r.Progress.Waiting(step, "the nodes of "+m+" to get the subnets of their pods") },
			}, func(ctx context.Context) (err error) {
				nodesOf[i], err = r.podNodesOf(ctx, m)
				return err
			})
		})
	}
	all.Wait()
	for i, m := range members {
		if errs[i] != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", m, errs[i]))
			continue
		}
		found = append(found, nodesOf[i]...)
	}
	return found, problems
}

// podNodesOf returns the nodes of a member.
func (r *Runtime) podNodesOf(ctx context.Context, name string) ([]podNode, error) {
	containers, err := internalNodes(r.clusters.lib, r.record.kindName(name))
	if err != nil {
		return nil, wait.Terminal(err)
	}
	for _, c := range containers {
		state, err := r.engine.inspect(ctx, c.String())
		if err != nil {
			return nil, wait.Terminal(err)
		}
		if !state.running {
			return nil, wait.Terminal(fmt.Errorf("node %s does not run", c))
		}
	}
	_, c, err := membership.Connect(r.record.kubeconfig(name))
	if err != nil {
		return nil, wait.Terminal(err)
	}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing its nodes: %w", err)
	}
	return parseNodes(name, containers, list.Items)
}

// parseNodes returns the nodes of a member with the addresses of their containers.
func parseNodes(member string, containers []nodes.Node, objects []corev1.Node) ([]podNode, error) {
	out := make([]podNode, 0, len(containers))
	for _, c := range containers {
		i := slices.IndexFunc(objects, func(n corev1.Node) bool { return n.Name == c.String() })
		if i < 0 || len(objects[i].Spec.PodCIDRs) == 0 {
			return nil, fmt.Errorf("node %s has no subnet for pods", c)
		}
		node := podNode{member: member, name: c.String()}
		v4, v6, err := c.IP()
		if err != nil {
			return nil, fmt.Errorf("reading the address of node %s: %w", c, err)
		}
		for _, text := range []string{v4, v6} {
			if address, err := netip.ParseAddr(text); err == nil {
				node.addresses = append(node.addresses, address)
			}
		}
		var errs []error
		for _, text := range objects[i].Spec.PodCIDRs {
			subnet, err := netip.ParsePrefix(text)
			errs = append(errs, err)
			node.subnets = append(node.subnets, subnet)
		}
		if err := errors.Join(errs...); err != nil {
			return nil, fmt.Errorf("reading the subnets of node %s: %w", c, err)
		}
		out = append(out, node)
	}
	return out, nil
}

// routes returns the commands that give each node routes to the pods of other members, by the name of the node. Members
// whose subnets overlap get none, and no others get routes to them, which problems name.
func routes(all []podNode) (commands map[string][]string, problems []string) {
	overlapping := map[string]bool{}
	for _, x := range all {
		for _, y := range all {
			if x.member < y.member && overlap(x, y) {
				overlapping[x.member], overlapping[y.member] = true, true
				problems = append(problems, fmt.Sprintf("the pod subnets of %s and %s overlap: create the federation again, or choose other subnets in the kind configuration", x.member, y.member))
			}
		}
	}
	commands = map[string][]string{}
	for _, from := range all {
		for _, to := range all {
			if from.member != to.member && !overlapping[from.member] && !overlapping[to.member] {
				commands[from.name] = append(commands[from.name], routesTo(to)...)
			}
		}
	}
	slices.Sort(problems)
	return commands, slices.Compact(problems)
}

// routesTo returns the commands for the routes to the pods of a node.
func routesTo(node podNode) []string {
	var out []string
	for _, subnet := range node.subnets {
		for _, address := range node.addresses {
			if address.Is4() != subnet.Addr().Is4() {
				continue
			}
			family := "-6"
			if address.Is4() {
				family = "-4"
			}
			out = append(out, fmt.Sprintf("ip %s route replace %s via %s", family, subnet, address))
		}
	}
	return out
}

// overlap reports whether pods on two nodes can have the same address.
func overlap(x, y podNode) bool {
	return slices.ContainsFunc(x.subnets, func(s netip.Prefix) bool { return slices.ContainsFunc(y.subnets, s.Overlaps) })
}
