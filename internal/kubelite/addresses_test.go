package kubelite

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAddressPool_Take(t *testing.T) {
	small, other := netip.MustParsePrefix("10.0.0.0/30"), netip.MustParsePrefix("10.0.1.0/24")
	p := newAddressPool()
	p.use("old", netip.MustParseAddr("10.0.0.1"))
	p.use("twin", netip.MustParseAddr("10.0.0.1"))
	steps := []struct {
		name   string
		before func()
		pod    types.UID
		want   string
	}{
		{"an address that a pod has is not given again", nil, "a", "10.0.0.2"},
		{"a pod keeps its address", nil, "a", "10.0.0.2"},
		{"the last address of the range", nil, "b", "10.0.0.3"},
		{"a full range goes on in the next", nil, "c", "10.0.1.1"},
		{"an address that one of two pods still has is not free", func() { p.release("old") }, "d", "10.0.1.2"},
		{"an address without an owner is free", func() { p.release("twin") }, "e", "10.0.0.1"},
		{"a released address in the middle", func() { p.release("a") }, "f", "10.0.0.2"},
	}
	for _, s := range steps {
		if s.before != nil {
			s.before()
		}
		if got, err := p.take(s.pod, small, other); err != nil || got.String() != s.want {
			t.Errorf("%s: got %s, %v; want %s", s.name, got, err, s.want)
		}
	}
	if got, err := p.take("g", small); err == nil {
		t.Errorf("a full range gives %s", got)
	}
}

// TestAddressPool_NoTwoPodsShareAnAddress takes, observes and releases at random, with restarts that know only what
// pods run.
func TestAddressPool_NoTwoPodsShareAnAddress(t *testing.T) {
	ranges := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28"), netip.MustParsePrefix("10.0.0.0/24")}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		p, pods := newAddressPool(), map[types.UID]netip.Addr{}
		for i := range 1000 {
			switch random.IntN(20) {
			case 0:
				p = newAddressPool()
				for pod, address := range pods {
					p.use(pod, address)
				}
			case 1, 2, 3, 4, 5, 6, 7:
				for pod := range pods {
					p.release(pod)
					delete(pods, pod)
					break
				}
			default:
				pod := types.UID(fmt.Sprint(i))
				address, err := p.take(pod, ranges...)
				if err != nil {
					if len(pods) < 255 {
						t.Fatalf("seed %d: %d pods, and no address is left: %v", seed, len(pods), err)
					}
					continue
				}
				for other, taken := range pods {
					if taken == address {
						t.Fatalf("seed %d: pods %s and %s have %s", seed, pod, other, address)
					}
				}
				pods[pod] = address
				p.use(pod, address)
			}
		}
	}
}
