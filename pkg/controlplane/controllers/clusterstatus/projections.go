package clusterstatus

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
	"github.com/karmada-toolkit/karmada/pkg/member/views"
)

// maxKept limits the projections of a member's nodes, and of its pods, in bytes: that
// is enough for some 200,000 pods.
const maxKept = 64 << 20

// resources watches the nodes and pods of a cluster and keeps what their summary
// needs.
type resources struct {
	member *access.Member
	nodes  *informer.Projection[node]
	pods   *informer.Projection[pod]
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// newResources starts the watches. changed is called when each has synced, and when
// the connection breaks.
func newResources(ctx context.Context, member *access.Member, changed func()) *resources {
	ctx, cancel := context.WithCancel(ctx)
	r := &resources{member: member, cancel: cancel}
	r.nodes = informer.New(informer.Config[node]{
		Name: member.Name() + " nodes", Source: views.Nodes(member),
		Project: informer.From(func(n *views.Node, _ *node) (node, error) { return keepNode(n), nil }),
		Size:    func(n node) int { return n.allocatable.size() },
		MaxSize: func() int { return maxKept },
		Synced:  changed,
		Failed:  func(error) { changed() },
	})
	r.pods = informer.New(informer.Config[pod]{
		Name: member.Name() + " pods", Source: views.Pods(member, views.Selection{Phases: views.Running}),
		Project: informer.From(func(p *views.Pod, old *pod) (pod, error) { return keepPod(p, old), nil }),
		Size:    func(p pod) int { return len(p.node) + p.requests.size() },
		MaxSize: func() int { return maxKept },
		Synced:  changed,
	})
	r.done.Go(func() { r.nodes.Run(ctx) })
	r.done.Go(func() { r.pods.Run(ctx) })
	return r
}

// of reports whether the resources are those of a member.
func (r *resources) of(member *access.Member) bool { return r != nil && r.member == member }

// retry starts a watch that failed again without delay.
func (r *resources) retry() {
	r.nodes.Retry()
	r.pods.Retry()
}

func (r *resources) stop() {
	if r != nil {
		r.cancel()
		r.done.Wait()
	}
}

// summary sums nodes and pods; known is false until both are synced.
func (r *resources) summary(models []clusterv1alpha1.ResourceModel) (n *clusterv1alpha1.NodeSummary, s *clusterv1alpha1.ResourceSummary, known bool) {
	if r == nil || !r.nodes.HasSynced() || !r.pods.HasSynced() {
		return nil, nil, false
	}
	nodes := make(map[string]node, r.nodes.Len())
	r.nodes.Each(func(key types.NamespacedName, v *node) { nodes[key.Name] = *v })
	pods := make([]pod, 0, r.pods.Len())
	r.pods.Each(func(_ types.NamespacedName, v *pod) { pods = append(pods, *v) })
	n, s = summarize(nodes, pods, models)
	return n, s, true
}
