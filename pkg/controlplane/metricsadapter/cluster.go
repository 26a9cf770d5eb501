package metricsadapter

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/metricsapi"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
)

// maxKept limits the names and labels of a member's pods, and of its nodes, in bytes.
const maxKept = 64 << 20

// cluster is a member with the names and labels of its pods and nodes, so that requests are sent only to the members
// that have something to answer.
type cluster struct {
	member *access.Member
	// rest is a client for any API of the member.
	rest   rest.Interface
	pods   *informer.Projection[labels.Set]
	nodes  *informer.Projection[labels.Set]
	custom customCache
	cancel context.CancelFunc
	done   sync.WaitGroup
	// absent is why no request can be sent to the member. The other fields are not set then.
	absent *absence
}

// newCluster starts to watch a member. The watches end with ctx.
func newCluster(ctx context.Context, clk clock.PassiveClock, member *access.Member) *cluster {
	ctx, cancel := context.WithCancel(ctx)
	c := &cluster{member: member, rest: member.Core().RESTClient(), custom: customCache{clock: clk}, cancel: cancel}
	c.pods, c.nodes = project(member, "pods"), project(member, "nodes")
	for _, p := range []*informer.Projection[labels.Set]{c.pods, c.nodes} {
		c.done.Go(func() { p.Run(ctx) })
	}
	return c
}

// project returns the labels of the objects of a core resource in a member.
func project(member *access.Member, resource string) *informer.Projection[labels.Set] {
	objects := member.Metadata().Resource(corev1.SchemeGroupVersion.WithResource(resource))
	return informer.New(informer.Config[labels.Set]{
		Name:    member.Name() + " " + resource,
		List:    func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) },
		Watch:   func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return objects.Watch(ctx, o) },
		Example: &metav1.PartialObjectMetadata{},
		Project: func(obj runtime.Object, old *labels.Set) (labels.Set, error) {
			p, ok := obj.(*metav1.PartialObjectMetadata)
			if !ok {
				return nil, fmt.Errorf("unexpected %T", obj)
			}
			if old != nil && labels.Equals(*old, p.Labels) {
				return *old, nil
			}
			return p.Labels, nil
		},
		Size:    sizeOf,
		MaxSize: func() int { return maxKept },
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
	c.done.Wait()
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
func anyOf(objects *informer.Projection[labels.Set], s metricsapi.Selection) presence {
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
func one(objects *informer.Projection[labels.Set], namespace, name string) presence {
	switch {
	case objects.Get(types.NamespacedName{Namespace: namespace, Name: name}) != nil:
		return present
	case !objects.HasSynced():
		return unknown
	}
	return absent
}
