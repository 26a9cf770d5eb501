package clusterstatus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
	"github.com/karmada-toolkit/karmada/pkg/member/views"
)

// servingGrace is how long a cluster may take to serve a type after its definition
// changed.
const servingGrace = 3 * time.Second

// sources are the caches and watches that the status of one cluster is computed from.
type sources struct {
	enabled   enablements
	types     *definitions
	resources *resources
	// typesChanged is when a definition of a type changed last, in nanoseconds since
	// the epoch. The watch writes it.
	typesChanged atomic.Int64
}

// watchOptions are the options of the watches.
type watchOptions struct {
	// resources selects that nodes and pods are watched too.
	resources bool
	// retry starts a watch that failed again without delay.
	retry bool
	clock clock.PassiveClock
	// changed is called when there is more to collect.
	changed func()
}

// watch starts the watches of a member, and stops those of the one before.
func (s *sources) watch(ctx context.Context, member *access.Member, o watchOptions) {
	if s.types == nil || s.types.member != member {
		s.types.stop()
		s.types = newDefinitions(ctx, member, func() {
			s.typesChanged.Store(o.clock.Now().UnixNano())
			o.changed()
		})
	} else if o.retry {
		s.types.projection.Retry()
	}
	if !o.resources {
		return
	}
	if s.resources.of(member) {
		if o.retry {
			s.resources.retry()
		}
		return
	}
	s.resources.stop()
	s.resources = newResources(ctx, member, o.changed)
}

// typesChangedSince reports whether a definition of a type changed after a time.
func (s *sources) typesChangedSince(t time.Time) bool {
	return time.Unix(0, s.typesChanged.Load()).After(t)
}

func (s *sources) stop() {
	s.resources.stop()
	s.types.stop()
}

// definitions watches the CustomResourceDefinitions of a cluster, so that a new
// type is collected before the next probe is due.
type definitions struct {
	member     *access.Member
	projection *informer.Projection[string]
	cancel     context.CancelFunc
	done       sync.WaitGroup
}

// newDefinitions starts the watch. changed is called when a definition changes.
func newDefinitions(ctx context.Context, member *access.Member, changed func()) *definitions {
	ctx, cancel := context.WithCancel(ctx)
	d := &definitions{member: member, cancel: cancel}
	var m *informer.Projection[string]
	m = informer.New(informer.Config[string]{
		Name:    member.Name() + " definitions",
		Source:  views.Metadata(member, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}),
		Project: informer.From(func(p *metav1.PartialObjectMetadata, _ *string) (string, error) { return p.ResourceVersion, nil }),
		Changed: func(_ types.NamespacedName, old, now *string) {
			if m.HasSynced() && (old == nil || now == nil || *old != *now) {
				changed()
			}
		},
	})
	d.projection = m
	d.done.Go(func() { m.Run(ctx) })
	return d
}

func (d *definitions) stop() {
	if d != nil {
		d.cancel()
		d.done.Wait()
	}
}

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
