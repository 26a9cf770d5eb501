package kubelite

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// addressPool allocates each pod an address that no other pod has. It is safe for concurrent use.
type addressPool struct {
	mu sync.Mutex
	// pods are the pods that have an address; more than one only if they had it before the pool began.
	pods map[netip.Addr]sets.Set[types.UID]
	// given are the allocated addresses by pod.
	given map[types.UID]netip.Addr
	// last is the address that was allocated last in each range: a free address is used again as late as possible.
	last map[netip.Prefix]netip.Addr
}

func newAddressPool() *addressPool {
	return &addressPool{
		pods: map[netip.Addr]sets.Set[types.UID]{}, given: map[types.UID]netip.Addr{}, last: map[netip.Prefix]netip.Addr{},
	}
}

// use records that a pod has an address.
func (p *addressPool) use(pod types.UID, address netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.assign(pod, address)
}

func (p *addressPool) assign(pod types.UID, address netip.Addr) {
	if old, ok := p.given[pod]; ok && old != address {
		p.unassign(pod, old)
	}
	p.given[pod] = address
	if p.pods[address] == nil {
		p.pods[address] = sets.Set[types.UID]{}
	}
	p.pods[address].Insert(pod)
}

// release frees the address of a pod that is gone.
func (p *addressPool) release(pod types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if address, ok := p.given[pod]; ok {
		p.unassign(pod, address)
	}
}

func (p *addressPool) unassign(pod types.UID, address netip.Addr) {
	delete(p.given, pod)
	p.pods[address].Delete(pod)
	if p.pods[address].Len() == 0 {
		delete(p.pods, address)
	}
}

// take returns the address of a pod: the one it has, else a free one of the first range that has one.
func (p *addressPool) take(pod types.UID, ranges ...netip.Prefix) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if address, ok := p.given[pod]; ok {
		return address, nil
	}
	for _, prefix := range ranges {
		if address, ok := p.free(prefix.Masked()); ok {
			p.assign(pod, address)
			p.last[prefix.Masked()] = address
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("every address of %v has a pod", ranges)
}

// free returns the next free address after the last one that was given. The first address of a range is the network's.
func (p *addressPool) free(prefix netip.Prefix) (netip.Addr, bool) {
	begin, ok := p.last[prefix]
	if !ok {
		begin = prefix.Addr()
	}
	for address := begin.Next(); address != begin; address = address.Next() {
		if !prefix.Contains(address) { // go on from the beginning
			if address = prefix.Addr(); address == begin {
				break
			}
			continue
		}
		if _, used := p.pods[address]; !used {
			return address, true
		}
	}
	_, used := p.pods[begin]
	return begin, begin != prefix.Addr() && !used
}

// podAddresses are the addresses of simulated pods. The API server is where they are recorded, so that a restart
// knows those of the pods that run.
type podAddresses struct {
	pool  *addressPool
	nodes corelisters.NodeLister
	// cluster is the range of all pods, for nodes that have no range yet or whose range is full.
	cluster netip.Prefix
}

// newPodAddresses returns when the addresses that pods have are known.
func newPodAddresses(ctx context.Context, client kubernetes.Interface, cidr string) (*podAddresses, error) {
	cluster, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("reading the addresses of pods: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropAllButAddresses))
	nodes := factory.Core().V1().Nodes()
	a := &podAddresses{pool: newAddressPool(), nodes: nodes.Lister(), cluster: cluster}
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    a.observe,
		UpdateFunc: func(_, object any) { a.observe(object) },
		DeleteFunc: a.forget,
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced, nodes.Informer().HasSynced) {
		return nil, errors.Join(errors.New("reading the addresses of pods was interrupted"), ctx.Err())
	}
	return a, nil
}

// dropAllButAddresses keeps what podAddresses reads of pods and nodes.
func dropAllButAddresses(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			Spec:       corev1.PodSpec{HostNetwork: o.Spec.HostNetwork},
			Status:     corev1.PodStatus{PodIP: o.Status.PodIP},
		}, nil
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			Spec:       corev1.NodeSpec{PodCIDR: o.Spec.PodCIDR},
		}, nil
	default:
		return object, nil
	}
}

func (a *podAddresses) observe(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.HostNetwork {
		return
	}
	if address, err := netip.ParseAddr(pod.Status.PodIP); err == nil {
		a.pool.use(pod.UID, address)
	}
}

func (a *podAddresses) forget(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		a.pool.release(pod.UID)
	}
}

// ofPod returns the addresses of a pod for kwok's templates, in place of their function PodIPsWith.
func (a *podAddresses) ofPod(node string, hostNetwork bool, uid, _, _ string) ([]string, error) {
	if hostNetwork {
		return []string{nodeIP}, nil
	}
	ranges := []netip.Prefix{a.cluster}
	if n, err := a.nodes.Get(node); err == nil {
		if own, err := netip.ParsePrefix(n.Spec.PodCIDR); err == nil {
			ranges = []netip.Prefix{own, a.cluster}
		}
	}
	address, err := a.pool.take(types.UID(uid), ranges...)
	if err != nil {
		return nil, fmt.Errorf("finding an address for a pod on node %q: %w", node, err)
	}
	return []string{address.String()}, nil
}
