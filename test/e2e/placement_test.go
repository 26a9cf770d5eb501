package e2e

import (
	"strings"
	"testing"
)

// a
func TestPlacement_ByClusterName(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member1")))
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": "member1", "READY": "1/1", "ADOPTION": "Y"}, "get", "deploy", "-n", ns))
	eventually(t, absent("member2", ns, "deploy/nginx"))

	for _, way := range [][2]string{{"member1", "member2"}, {"member2", "member1"}} {
		apply(t, ns, policy("nginx", to(way[1])))
		eventually(t, shows(row{"NAME": "nginx", "CLUSTER": way[1], "READY": "1/1", "ADOPTION": "Y"}, "get", "deploy", "-n", ns))
		eventually(t, all(absent(way[0], ns, "deploy/nginx"), is("", ns, "deploy/nginx", "{.status.readyReplicas}", "1")))
	}
}

// b
func TestPlacement_ByLabels(t *testing.T) {
	ns := namespace(t)
	must(t, "label", "clusters", "member1", "member2", "e2e-tier=gold", "--overwrite")
	t.Cleanup(func() { ctl("", "label", "clusters", "member1", "member2", "e2e-tier-") })
	for name, selector := range map[string]string{
		"by-match-labels":      "{matchLabels: {e2e-tier: gold}}",
		"by-match-expressions": "{matchExpressions: [{key: e2e-tier, operator: In, values: [gold, silver]}]}",
	} {
		apply(t, ns, deployment(name, 2), policy(name, "clusterAffinity: {labelSelector: "+selector+"}"))
		for _, cluster := range []string{"member1", "member2"} {
			eventually(t, shows(row{"NAME": name, "CLUSTER": cluster, "READY": "2/2"}, "get", "deploy", "-n", ns))
		}
	}
}

// e
func TestDivision_Weights(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 2), policy("nginx", weighted(1, 1)))
	divided := func(one, two string) func() error {
		return all(is("member1", ns, "deploy/nginx", "{.spec.replicas}", one), is("member2", ns, "deploy/nginx", "{.spec.replicas}", two))
	}
	eventually(t, divided("1", "1"))
	must(t, "patch", "deploy", "nginx", "-n", ns, "-p", `{"spec":{"replicas":10}}`)
	eventually(t, divided("5", "5"))
	apply(t, ns, policy("nginx", weighted(1, 4)))
	eventually(t, divided("2", "8"))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "10"))
}

func TestCordon_StopsSchedulingUntilUncordon(t *testing.T) {
	ns := namespace(t)
	if out := must(t, "cordon", "member2"); !strings.Contains(out, "member2 cluster cordoned") {
		t.Errorf("cordon says %q", out)
	}
	t.Cleanup(func() { ctl("", "uncordon", "member2") })
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member1", "member2")))
	eventually(t, is("", ns, "rb/nginx-deployment", "{.spec.clusters[*].name}", "member1"))
	if out := must(t, "uncordon", "member2"); !strings.Contains(out, "member2 cluster uncordoned") {
		t.Errorf("uncordon says %q", out)
	}
	eventually(t, targets(ns, "nginx-deployment", "member1", "member2"))
}
