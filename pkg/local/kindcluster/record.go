package kindcluster

import (
	"slices"
	"sync"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// hostCluster is the cluster that the control plane of a federation of kind
// clusters runs on.
const hostCluster = "host"

// record is what is recorded of the kind clusters of a federation, and where.
// Clusters have their name in the federation, which is not unique on the machine.
type record struct {
	f *federation.Federation
	// mu guards the record while clusters are made at the same time.
	mu sync.Mutex
}

func newRecord(f *federation.Federation) *record {
	if f.Kind == nil {
		f.Kind = &federation.Kind{}
	}
	if f.Kind.Complete == nil {
		f.Kind.Complete = map[string]bool{}
	}
	return &record{f: f}
}

// clusters are the clusters of the federation, in the order in which they are shown.
func (r *record) clusters() []string { return append([]string{hostCluster}, r.f.Members...) }

// made returns the clusters that this federation made or began to make.
func (r *record) made() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(r.clusters(), func(cluster string) bool {
		_, made := r.f.Kind.Complete[cluster]
		return !made
	})
}

// state reports whether a cluster is complete, and whether this federation began to
// make it.
func (r *record) state(cluster string) (complete, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	complete, begun = r.f.Kind.Complete[cluster]
	return complete, begun
}

// image is the image of the control plane that nodes have from before.
func (r *record) image() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.f.Kind.Image
}

// update changes the record and writes it.
func (r *record) update(change func(*federation.Kind)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.f.Update(func() error {
		change(r.f.Kind)
		return nil
	})
}

// kindName is the name of a kind cluster, unique on the machine.
func (r *record) kindName(cluster string) string {
	if r.f.Name == federation.DefaultName {
		return "karmada-" + cluster
	}
	return "karmada-" + r.f.Name + "-" + cluster
}

// nodeName is the name of the first node of a cluster.
func (r *record) nodeName(cluster string) string { return r.kindName(cluster) + "-control-plane" }

// endpoint is where the control plane reaches a member: by the name of its node,
// which does not change with its address.
func (r *record) endpoint(cluster string) string {
	return "https://" + r.nodeName(cluster) + ":" + kindPort
}

// kubeconfig is the path of the kubeconfig of a cluster.
func (r *record) kubeconfig(cluster string) string { return r.f.Dir().ClusterKubeconfig(cluster) }

// HostKubeconfig is the path of the kubeconfig of the host cluster of a federation.
func HostKubeconfig(d federation.Dir) string { return d.ClusterKubeconfig(hostCluster) }

// controlKubeconfig is the path of the kubeconfig that the installation writes.
func (r *record) controlKubeconfig() string {
	return r.f.Dir().ControlPlane("karmada-apiserver.config")
}
