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

	apply(t, ns, policy("nginx", to("member2")))
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": "member2", "READY": "1/1", "ADOPTION": "Y"}, "get", "deploy", "-n", ns))
	eventually(t, absent("member1", ns, "deploy/nginx"))
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

// c
func TestPlacement_ByFields(t *testing.T) {
	ns := namespace(t)
	must(t, "patch", "cluster", "member1", "--type=merge", "-p", `{"spec":{"provider":"huaweicloud","region":"ap-south","zones":["ap-south-1"]}}`)
	must(t, "patch", "cluster", "member2", "--type=merge", "-p", `{"spec":{"provider":"other","region":"eu-west","zones":["eu-west-1","eu-west-2"]}}`)
	t.Cleanup(func() {
		for _, c := range []string{"member1", "member2"} {
			ctl("", "patch", "cluster", c, "--type=merge", "-p", `{"spec":{"provider":null,"region":null,"zones":null}}`)
		}
	})
	for _, tc := range []struct{ name, requirement, in, out string }{
		{"provider", "{key: provider, operator: In, values: [huaweicloud]}", "member1", "member2"},
		{"region", "{key: region, operator: NotIn, values: [ap-south]}", "member2", "member1"},
		{"zone", "{key: zone, operator: In, values: [eu-west-2]}", "member2", "member1"},
	} {
		apply(t, ns, deployment(tc.name, 1), policy(tc.name, "clusterAffinity: {fieldSelector: {matchExpressions: ["+tc.requirement+"]}}"))
		eventually(t, shows(row{"NAME": tc.name, "CLUSTER": tc.in, "READY": "1/1"}, "get", "deploy", "-n", ns))
		eventually(t, absent(tc.out, ns, "deploy/"+tc.name))
	}
}

// d
func TestPlacement_BackupClusters(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", `
clusterAffinities:
- affinityName: primary
  clusterNames: [no-such-cluster]
- affinityName: backup
  clusterNames: [member2]`))
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": "member2", "READY": "1/1"}, "get", "deploy", "-n", ns))
	eventually(t, is("", ns, "rb/nginx-deployment", "{.status.schedulerObservingAffinityName}", "backup"))
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

func TestDivision_AggregatedUsesOneCluster(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 4), policy("nginx", `
clusterAffinity: {clusterNames: [member1, member2]}
replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}`))
	eventually(t, is("", ns, "rb/nginx-deployment", "{.spec.clusters[*].replicas}", "4"))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "4"))
}

func TestDivision_DynamicWeightSharesByCapacity(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 4), policy("nginx", `
clusterAffinity: {clusterNames: [member1, member2]}
replicaScheduling:
  replicaSchedulingType: Divided
  replicaDivisionPreference: Weighted
  weightPreference: {dynamicWeight: AvailableReplicas}`))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "4"))
	eventually(t, targets(ns, "nginx-deployment", "member1", "member2"))
}

// f
func TestTaints_KeepOffWhatDoesNotTolerate(t *testing.T) {
	ns := namespace(t)
	if out := must(t, "taint", "clusters", "member1", "e2e=gpu:NoSchedule"); !strings.Contains(out, "cluster/member1 tainted") {
		t.Errorf("taint says %q", out)
	}
	t.Cleanup(func() { ctl("", "taint", "clusters", "member1", "e2e-") })
	apply(t, ns, deployment("plain", 1), policy("plain", to("member1", "member2")))
	apply(t, ns, deployment("tolerant", 1), policy("tolerant", to("member1", "member2")+`
clusterTolerations: [{key: e2e, operator: Equal, value: gpu, effect: NoSchedule}]`))
	eventually(t, is("", ns, "rb/plain-deployment", "{.spec.clusters[*].name}", "member2"))
	eventually(t, targets(ns, "tolerant-deployment", "member1", "member2"))
	if out := must(t, "taint", "clusters", "member1", "e2e:NoSchedule-"); !strings.Contains(out, "cluster/member1 untainted") {
		t.Errorf("taint says %q", out)
	}
	eventually(t, targets(ns, "plain-deployment", "member1", "member2"))
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
