package top

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/usage"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const (
	nodeExamples = `
		# Show the nodes of all members
		{{.Name}} top node

		# Show the nodes of two members, with the part of their capacity that is used
		{{.Name}} top node --clusters=member1,member2 --show-capacity

		# Show a node
		{{.Name}} top node NODE_NAME`
	unknown = "<unknown>"
)

// nodeRequest is the command line.
type nodeRequest struct {
	request
	capacity bool
}

// node is a node of a cluster. usage is nil if it is not known.
type node struct {
	name, cluster    string
	usage, available corev1.ResourceList
}

func newNodeCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	r := &nodeRequest{}
	cmd := e.Command("node [NAME | -l label]", "Display resource (CPU/memory) usage of nodes of member clusters", long, nodeExamples)
	cmd.Aliases = []string{"nodes", "no"}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error {
		if err := r.complete(args, "only one of NAME or --selector can be provided"); err != nil {
			return err
		}
		return r.run(ctx, e, access)
	})
	r.addFlags(cmd, access, "")
	cmd.Flags().BoolVar(&r.capacity, "show-capacity", false, "Show the used part of the capacity instead of the allocatable resources.")
	return cmd
}

func (r *nodeRequest) run(ctx context.Context, e *env.Env, access *env.Access) error {
	members, failure := each(ctx, e, access, &r.request, r.read)
	nodes := slices.Concat(members...)
	if r.output != "" {
		slices.SortStableFunc(nodes, r.compare)
		return cmp.Or(e.PrintDocument(r.output, newNodesDocument(nodes)), failure)
	}
	if !slices.ContainsFunc(nodes, func(n node) bool { return n.usage != nil }) {
		return cmp.Or(failure, errNotYet)
	}
	slices.SortStableFunc(nodes, r.compare)
	rows := make([][]string, 0, len(nodes))
	for _, n := range nodes {
		rows = append(rows, n.row())
	}
	header := []string{"NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"}
	if err := table(e, header, r.noHeaders, rows); err != nil {
		return err
	}
	return failure
}

// compare returns the order: by usage or name, the nodes without usage last.
func (r *nodeRequest) compare(a, b node) int {
	switch {
	case a.usage == nil && b.usage == nil:
		return 0
	case a.usage == nil:
		return 1
	case b.usage == nil:
		return -1
	}
	return cmp.Or(compareUsage(r.sortBy, a.usage, b.usage), cmp.Compare(a.name, b.name), cmp.Compare(a.cluster, b.cluster))
}

// nodeView is what is needed of a node. Its quantities are checked before they are parsed.
type nodeView struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Capacity    usage.Resources `json:"capacity"`
		Allocatable usage.Resources `json:"allocatable"`
	} `json:"status"`
}

// read returns the nodes of a member.
func (r *nodeRequest) read(ctx context.Context, c rest.Interface, cluster string) ([]node, error) {
	measured, err := usage.Nodes(ctx, c, usage.Query{Name: r.name, Labels: r.selector})
	if err != nil {
		return nil, err
	}
	used := map[string]corev1.ResourceList{}
	for i := range measured {
		used[measured[i].Name] = measured[i].Usage
	}
	views, err := r.list(ctx, c)
	if err != nil {
		return nil, err
	}
	nodes := make([]node, 0, len(views))
	for _, v := range views {
		n := node{name: v.Metadata.Name, cluster: cluster, usage: used[v.Metadata.Name], available: corev1.ResourceList(v.Status.Allocatable)}
		if r.capacity {
			n.available = corev1.ResourceList(v.Status.Capacity)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// list returns the nodes page by page.
func (r *nodeRequest) list(ctx context.Context, c rest.Interface) ([]nodeView, error) {
	var all []nodeView
	for next := ""; ; {
		req := c.Get().AbsPath("/api/v1/nodes").Param("limit", "250").Param("labelSelector", r.selector).Param("continue", next)
		if r.name != "" {
			req = req.Param("fieldSelector", "metadata.name="+r.name)
		}
		data, err := kube.Body(ctx, req)
		if err != nil {
			return nil, err
		}
		page := struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []nodeView `json:"items"`
		}{}
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, fmt.Errorf("reading nodes: %w", err)
		}
		all = append(all, page.Items...)
		if next = page.Metadata.Continue; next == "" || len(page.Items) == 0 {
			return all, nil
		}
	}
}

// row returns the cells of a node.
func (n *node) row() []string {
	if n.usage == nil {
		return []string{n.name, n.cluster, unknown, unknown, unknown, unknown}
	}
	return []string{
		n.name, n.cluster,
		cpuText(n.usage), percent(n.usage.Cpu(), n.available.Cpu()),
		memoryText(n.usage), percent(n.usage.Memory(), n.available.Memory()),
	}
}

// percent returns the used part, or unknown if nothing is available.
func percent(used, available *resource.Quantity) string {
	if available.IsZero() {
		return unknown
	}
	return fmt.Sprintf("%d%%", int64(float64(used.MilliValue())/float64(available.MilliValue())*100))
}
