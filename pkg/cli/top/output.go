package top

import corev1 "k8s.io/api/core/v1"

// podsDocument is the usage of pods in JSON.
type podsDocument struct {
	Pods []podDocument `json:"pods"`
}

type podDocument struct {
	Cluster    string              `json:"cluster"`
	Namespace  string              `json:"namespace"`
	Name       string              `json:"name"`
	Usage      corev1.ResourceList `json:"usage"`
	Containers []containerDocument `json:"containers"`
}

type containerDocument struct {
	Name  string              `json:"name"`
	Usage corev1.ResourceList `json:"usage"`
}

func newPodsDocument(pods []pod) podsDocument {
	out := podsDocument{Pods: make([]podDocument, 0, len(pods))}
	for _, p := range pods {
		d := podDocument{Cluster: p.cluster, Namespace: p.Namespace, Name: p.Name, Usage: p.sum, Containers: []containerDocument{}}
		for _, c := range p.Containers {
			d.Containers = append(d.Containers, containerDocument{Name: c.Name, Usage: c.Usage})
		}
		out.Pods = append(out.Pods, d)
	}
	return out
}

// nodesDocument is the usage of nodes in JSON.
type nodesDocument struct {
	Nodes []nodeDocument `json:"nodes"`
}

// nodeDocument is a node. Available is what is allocatable, or the capacity with --show-capacity.
type nodeDocument struct {
	Cluster   string              `json:"cluster"`
	Name      string              `json:"name"`
	Usage     corev1.ResourceList `json:"usage,omitempty"`
	Available corev1.ResourceList `json:"available,omitempty"`
}

func newNodesDocument(nodes []node) nodesDocument {
	out := nodesDocument{Nodes: make([]nodeDocument, 0, len(nodes))}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, nodeDocument{Cluster: n.cluster, Name: n.name, Usage: n.usage, Available: n.available})
	}
	return out
}
