package clusterstatus

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// servingGrace is how long a cluster may take to serve a type after its definition
// changed.
const servingGrace = 3 * time.Second

// sources are the caches and watches that the status of one cluster is computed from.
type sources struct {
	enabled enablements
	member  *access.Member
	// types are the CustomResourceDefinitions of the cluster, so that a new type is collected before the next probe is due. It is nil before
	// the first watch.
	types     *follow.Projection[string]
	resources *resources
	// typesChanged is when a definition of a type changed last, in nanoseconds since
	// the epoch. The watch writes it.
	typesChanged atomic.Int64
}

// typesChangedSince reports whether a definition of a type changed after a time.
func (s *sources) typesChangedSince(t time.Time) bool {
	return time.Unix(0, s.typesChanged.Load()).After(t)
}

func (s *sources) stop() {
	s.resources.stop()
	if s.types != nil {
		s.types.Stop()
	}
}

// watchTypes watches the CustomResourceDefinitions of a member. changed is called when one changes.
func watchTypes(ctx context.Context, member *access.Member, changed func()) *follow.Projection[string] {
	var types *follow.Projection[string]
	types = follow.New(follow.Config[string]{
		Name:    member.Name() + " definitions",
		Source:  follow.Metadata(member, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}),
		Project: follow.From(func(p *metav1.PartialObjectMetadata, _ *string) (string, error) { return p.ResourceVersion, nil }),
		Changed: func(_ apitypes.NamespacedName, old, now *string) {
			if types.HasSynced() && (old == nil || now == nil || *old != *now) {
				changed()
			}
		},
	})
	types.Start(ctx)
	return types
}

// resources watches the nodes and pods of a cluster and keeps what their summary
// needs.
type resources struct {
	nodes *follow.Projection[node]
	pods  *follow.Projection[pod]
}

// newResources starts the watches. changed is called when each has synced, and when
// the connection breaks.
func newResources(ctx context.Context, member *access.Member, changed func()) *resources {
	return &resources{
		nodes: follow.Start(ctx, follow.Config[node]{
			Name: member.Name() + " nodes", Source: follow.Nodes(member),
			Project: follow.From(func(n *follow.Node, _ *node) (node, error) { return keepNode(n), nil }),
			Size:    func(n node) int { return n.allocatable.size() },
			Synced:  changed,
			Failed:  func(error) { changed() },
		}),
		pods: follow.Start(ctx, follow.Config[pod]{
			Name: member.Name() + " pods", Source: follow.Pods(member, follow.Selection{Phases: follow.Running}),
			Project: follow.From(func(p *follow.Pod, old *pod) (pod, error) { return keepPod(p, old), nil }),
			Size:    func(p pod) int { return len(p.node) + p.requests.size() },
			Synced:  changed,
		}),
	}
}

// retry starts a watch that failed again without delay.
func (r *resources) retry() {
	if r != nil {
		r.nodes.Retry()
		r.pods.Retry()
	}
}

func (r *resources) stop() {
	if r != nil {
		r.nodes.Stop()
		r.pods.Stop()
	}
}

// summary sums nodes and pods; known is false until both are synced.
func (r *resources) summary(models []clusterv1alpha1.ResourceModel) (n *clusterv1alpha1.NodeSummary, s *clusterv1alpha1.ResourceSummary, known bool) {
	if r == nil || !r.nodes.HasSynced() || !r.pods.HasSynced() {
		return nil, nil, false
	}
	nodes := make(map[string]node, r.nodes.Len())
	r.nodes.Each(func(key apitypes.NamespacedName, v *node) { nodes[key.Name] = *v })
	pods := make([]pod, 0, r.pods.Len())
	r.pods.Each(func(_ apitypes.NamespacedName, v *pod) { pods = append(pods, *v) })
	n, s = summarize(nodes, pods, models)
	return n, s, true
}
