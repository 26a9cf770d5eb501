//go:build !kind

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// silence ends, at once, what reports the health of members: the agent in Pull mode, else the member.
func silence(t *testing.T, members ...string) {
	t.Helper()
	for i, name := range members {
		mode, err := value("", "", "cluster/"+name, "{.spec.syncMode}")
		if err != nil {
			t.Fatal(err)
		}
		if mode == "Pull" {
			members[i] += "-agent"
		}
	}
	for _, name := range members {
		processes{}.kill(t, name)
	}
}

// A member that stops loses its workloads to the others, and has nothing of them when it is back. When all members stop at
// once nothing is evicted, neither then nor when they are back.
func TestFailover_DeadMembers(t *testing.T) {
	ns := deadMemberMoves(t, "member2", "member1")

	evictions := func() string {
		return must(t, "get", "events", "-n", ns, "--field-selector", "reason=EvictWorkloadFromClusterSucceed", "-o", "jsonpath={.items[*].count}")
	}
	before := evictions()
	silence(t, "member1", "member2")
	within(t, 2*under.timeout(), all(tainted("member1", "NoExecute"), tainted("member2", "NoExecute"), func() error {
		if out := must(t, "failover", "status"); !strings.Contains(out, "2 of 2 clusters failed at once") {
			return fmt.Errorf("the status of the failover is\n%s", out)
		}
		return nil
	}))
	overview := newDashboard(t, kubeconfig)
	overview.get(t, overview.printed)
	eventually(t, func() error {
		if page := overview.get(t, overview.base+"?namespace="+ns); !strings.Contains(page, "✖ not Ready") || !strings.Contains(page, "member1: cluster not Ready") {
			return fmt.Errorf("the overview is\n%s", page)
		}
		return nil
	})
	stays := all(targets(ns, "web-deployment", "member1"), evictedFrom(ns, "web-deployment", ""))
	if err := stays(); err != nil {
		t.Error(err)
	}
	up(t)
	eventually(t, all(tainted("member1", ""), tainted("member2", "")))
	eventually(t, is("member1", ns, "deploy/web", "{.status.readyReplicas}", "2"))
	if err := stays(); err != nil || before != evictions() {
		t.Errorf("%v; evictions before %q, now %q", err, before, evictions())
	}
}

// A Remedy without matches requests its actions for every cluster that it names.
func TestFailover_RemedyRequestsActions(t *testing.T) {
	ns := namespace(t)
	const remedy = `
apiVersion: remedy.karmada.io/v1alpha1
kind: Remedy
metadata: {name: e2e-remedy}
spec:
  clusterAffinity: {clusterNames: [member2]}
  actions: [TrafficControl]`
	t.Cleanup(func() { ctl(remedy, "delete", "-f", "-", "--ignore-not-found") })
	apply(t, ns, remedy)
	eventually(t, is("", "", "cluster/member2", "{.status.remedyActions[*]}", "TrafficControl"))
	mustWith(t, remedy, "delete", "-f", "-")
	eventually(t, is("", "", "cluster/member2", "{.status.remedyActions[*]}", ""))
}

// A WorkloadRebalancer has a workload scheduled anew, and reports what it triggered.
func TestRebalancer_SchedulesAnew(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("web", 2), policy("web", to("member1", "member2")+`
replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}`))
	eventually(t, is("", ns, "rb/web-deployment", `{.status.conditions[?(@.type=="Scheduled")].status}`, "True"))
	name := "e2e-" + ns
	t.Cleanup(func() { ctl("", "delete", "workloadrebalancer", name, "--ignore-not-found") })
	mustWith(t, `
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: `+name+`}
spec:
  workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: `+ns+`, name: web}]`, "apply", "-f", "-")
	eventually(t, is("", "", "workloadrebalancer/"+name, "{.status.observedWorkloads[*].result}", "Successful"))
	eventually(t, func() error {
		out, err := value("", ns, "rb/web-deployment", "{.spec.rescheduleTriggeredAt}")
		if err == nil && out == "" {
			return fmt.Errorf("not triggered")
		}
		return err
	})
	out := must(t, "rebalance", "deployment/web", "-n", ns, "--wait")
	if !strings.Contains(out, "workloadrebalancer.apps.karmada.io/rebalance-") || !strings.Contains(out, "deployment/web: ") {
		t.Errorf("rebalance prints\n%s", out)
	}
}
