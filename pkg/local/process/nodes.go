package process

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// nodeArgs are the arguments of a member's process about its nodes.
func nodeArgs(n federation.NodeSpec) []string {
	args := []string{"--nodes", fmt.Sprint(n.Count)}
	if n.CPU != "" {
		args = append(args, "--node-cpu", n.CPU)
	}
	if n.Memory != "" {
		args = append(args, "--node-memory", n.Memory)
	}
	if n.Pods > 0 {
		args = append(args, "--node-pods", fmt.Sprint(n.Pods))
	}
	return args
}

// resize returns the nodes in before with the changes of a request.
func (r Request) resize(before federation.NodeSpec) (federation.NodeSpec, error) {
	n := r.Nodes
	for flag, value := range map[string]string{"node-cpu": n.CPU, "node-memory": n.Memory} {
		if value == "" {
			continue
		}
		if q, err := resource.ParseQuantity(value); err != nil || q.Sign() <= 0 {
			return before, fmt.Errorf("--%s %q: use a quantity, such as 16 for processors or 128Gi for memory", flag, value)
		}
	}
	if n.Count < 0 {
		n.Count = before.Count
	}
	n.CPU, n.Memory, n.Pods = cmp.Or(n.CPU, before.CPU), cmp.Or(n.Memory, before.Memory), cmp.Or(n.Pods, before.Pods)
	return n, nil
}
