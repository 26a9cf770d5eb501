package metricsadapter

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/metricsapi"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

const (
	// idleTimeout is how long objects are watched after the last request for usage. Autoscalers ask every 15 s.
	idleTimeout = 10 * time.Minute
	// firstObjectsTimeout is how long the first list of the objects of a member is waited for.
	firstObjectsTimeout = 3 * time.Second
	// firstObjectsInterval is the time between two looks whether they are listed.
	firstObjectsInterval = 20 * time.Millisecond
)

// cluster is a member.
type cluster struct {
	member *access.Member
	// rest is a client for any API of the member.
	rest   rest.Interface
	custom customCache
	clock  clock.PassiveClock
	cancel context.CancelFunc
	// ctx is the life of the watches.
	ctx context.Context //nolint:containedctx // they begin with the first request
	// absent is why no request can be sent to the member. The other fields are not set then.
	absent *absence

	mu      sync.Mutex
	watched *objects // nil while nobody asks for usage
	asked   time.Time
}

// objects are the names and labels of the pods and nodes of a member, so that requests are sent only to the members that have
// something to answer.
type objects struct {
	pods, nodes *follow.Projection[labels.Set]
	since       time.Time
}

// newCluster returns a member. Its watches end with ctx.
func newCluster(ctx context.Context, clk clock.PassiveClock, member *access.Member) *cluster {
	ctx, cancel := context.WithCancel(ctx)
	return &cluster{
		member: member, rest: member.Core().RESTClient(), custom: customCache{clock: clk}, clock: clk, cancel: cancel,
		ctx: ctx,
	}
}

// watchObjects watches the objects of a member until ctx ends.
func watchObjects(ctx context.Context, member *access.Member, now time.Time) *objects {
	return &objects{
		pods:  watchLabels[*follow.Pod](ctx, member.Name()+" pods", follow.Pods(member, follow.Selection{Phases: follow.Running})),
		nodes: watchLabels[*follow.Node](ctx, member.Name()+" nodes", follow.Nodes(member)), since: now,
	}
}

func (o *objects) stop() {
	o.pods.Stop()
	o.nodes.Stop()
}

// objects returns the objects of the member. The first request for usage starts to watch them.
func (c *cluster) objects() *objects {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = c.clock.Now()
	if c.watched == nil {
		c.watched = watchObjects(c.ctx, c.member, c.clock.Now())
	}
	return c.watched
}

// starting reports whether objects may be listed soon.
func (c *cluster) starting(o *objects) bool { return c.clock.Since(o.since) < firstObjectsTimeout }

// release ends the watches of a member for whose usage nobody has asked for some time.
func (c *cluster) release() {
	c.mu.Lock()
	idle := c.watched
	if idle == nil || c.clock.Since(c.asked) < idleTimeout {
		c.mu.Unlock()
		return
	}
	c.watched = nil
	c.mu.Unlock()
	idle.stop()
}

// watchLabels keeps the labels of the objects of a source.
func watchLabels[O interface {
	runtime.Object
	metav1.Object
}](ctx context.Context, name string, from follow.Source) *follow.Projection[labels.Set] {
	return follow.Start(ctx, follow.Config[labels.Set]{
		Name: name, Source: from,
		Project: follow.From(func(obj O, old *labels.Set) (labels.Set, error) {
			if old != nil && labels.Equals(*old, obj.GetLabels()) {
				return *old, nil
			}
			return obj.GetLabels(), nil
		}),
		Size: sizeOf,
	})
}

// sizeOf returns the approximate size of labels in bytes.
func sizeOf(set labels.Set) int {
	const overhead = 32
	size := 0
	for key, value := range set {
		size += overhead + len(key) + len(value)
	}
	return size
}

// stop ends the watches.
func (c *cluster) stop() {
	c.cancel()
	c.mu.Lock()
	watched := c.watched
	c.mu.Unlock()
	if watched != nil {
		watched.stop()
	}
}

// presence is what the watches know about an object.
type presence int

const (
	absent presence = iota
	present
	// unknown is the presence while the first list is not complete.
	unknown
)

// anyOf returns whether one of the objects is selected.
func anyOf(objects *follow.Projection[labels.Set], s metricsapi.Selection) presence {
	if !objects.HasSynced() {
		return unknown
	}
	found := absent
	objects.Each(func(key types.NamespacedName, set *labels.Set) {
		if found == absent && s.Matches(key.Namespace, key.Name, *set) {
			found = present
		}
	})
	return found
}

// one returns whether an object exists.
func one(objects *follow.Projection[labels.Set], namespace, name string) presence {
	switch {
	case objects.Get(types.NamespacedName{Namespace: namespace, Name: name}) != nil:
		return present
	case !objects.HasSynced():
		return unknown
	}
	return absent
}
