package kindcluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
)

func testNode(member, name, address string, subnets ...string) podNode {
	out := podNode{member: member, name: name, addresses: []netip.Addr{netip.MustParseAddr(address)}}
	for _, s := range subnets {
		out.subnets = append(out.subnets, netip.MustParsePrefix(s))
	}
	return out
}

// Each node gets routes to the nodes of other members, and none to those of its own, which the network of its cluster has.
func TestRoutes(t *testing.T) {
	all := []podNode{
		testNode("member1", "a", "172.18.0.2", "10.160.0.0/24"),
		testNode("member1", "b", "172.18.0.3", "10.160.1.0/24"),
		testNode("member2", "c", "172.18.0.4", "10.161.0.0/24", "fd00::/64"),
	}
	all[2].addresses = append(all[2].addresses, netip.MustParseAddr("fc00::4"))
	got, problems := routes(all)
	toC := []string{"ip -4 route replace 10.161.0.0/24 via 172.18.0.4", "ip -6 route replace fd00::/64 via fc00::4"}
	want := map[string][]string{
		"a": toC, "b": toC,
		"c": {"ip -4 route replace 10.160.0.0/24 via 172.18.0.2", "ip -4 route replace 10.160.1.0/24 via 172.18.0.3"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v (-want +got):\n%s", problems, diff)
	}
}

// Federations from before members had subnets of their own, and configurations that choose one for all.
func TestRoutes_Overlap(t *testing.T) {
	got, problems := routes([]podNode{
		testNode("member1", "a", "172.18.0.2", "10.244.0.0/24"),
		testNode("member2", "b", "172.18.0.3", "10.244.0.0/16"),
		testNode("member3", "c", "172.18.0.4", "10.160.0.0/24"),
		testNode("member4", "d", "172.18.0.5", "10.161.0.0/24"),
	})
	want := map[string][]string{
		"c": {"ip -4 route replace 10.161.0.0/24 via 172.18.0.5"},
		"d": {"ip -4 route replace 10.160.0.0/24 via 172.18.0.4"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "member1 and member2 overlap") {
		t.Errorf("got %v", problems)
	}
}

func TestParseNodes(t *testing.T) {
	containers := []nodes.Node{fakeNode{"a"}}
	object := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := parseNodes("member1", containers, []corev1.Node{object}); err == nil || !strings.Contains(err.Error(), "node a has no subnet for pods") {
		t.Errorf("without a subnet: %v", err)
	}
	object.Spec.PodCIDRs = []string{"10.160.0.0/24"}
	got, err := parseNodes("member1", containers, []corev1.Node{object})
	if err != nil || len(got) != 1 || got[0].addresses[0].String() != "172.18.0.2" || got[0].subnets[0].String() != "10.160.0.0/24" {
		t.Errorf("got %v, %v", got, err)
	}
	object.Spec.PodCIDRs = []string{"x; reboot"}
	if _, err := parseNodes("member1", containers, []corev1.Node{object}); err == nil {
		t.Error("a subnet that is none is used")
	}
}
