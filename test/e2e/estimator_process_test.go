//go:build !kind

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// cordonNode makes the node of member1 unschedulable until the test ends, or the function that it returns is called.
func cordonNode(t *testing.T) (uncordon func()) {
	t.Helper()
	set := func(value string) []string {
		return member("member1", "patch", "nodes", "member1-node-0", "--type=merge", "-p", `{"spec":{"unschedulable":`+value+`}}`)
	}
	must(t, set("true")...)
	t.Cleanup(func() { ctl("", set("null")...) })
	return func() { must(t, set("null")...) }
}

// TestEstimator_RoomOfNodes divides replicas by the room that the nodes really have: a cordoned node counts as full in
// the estimate, and as free in the summary of its cluster. Then an estimator stops, and is started again.
func TestEstimator_RoomOfNodes(t *testing.T) {
	ns := namespace(t)
	cordonNode(t)
	apply(t, ns, deployment("web", 4), policy("web", byRoom))
	eventually(t, is("member2", ns, "deploy/web", "{.status.readyReplicas}", "4"))
	eventually(t, absent("member1", ns, "deploy/web"))
	scheduled := "{.status.conditions[?(@.type=='Scheduled')].message}"
	eventually(t, is("", ns, "rb/web-deployment", scheduled, "Binding has been scheduled successfully."))

	capacity := []string{"capacity", "--for", "deploy/web", "-n", ns, "--estimators"}
	eventually(t, shows(row{"CLUSTER": "member1", "REPLICAS": "0", "SOURCE": "estimator"}, capacity...))

	under.(processes).kill(t, "member1-estimator")
	r := ctl("", capacity...)
	if r.code != 0 || !strings.Contains(r.err, `the estimator of cluster "member1" does not answer, its status counts: Unavailable: `) {
		t.Errorf("capacity without an estimator: %d\n%s%s", r.code, r.out, r.err)
	}
	must(t, "scale", "deploy", "web", "-n", ns, "--replicas", "5")
	eventually(t, hasMessage(ns, "No estimate from the scheduler-estimator of member1 (Unavailable: "))

	must(t, "local", "up", "--name", federationName, "--dir", stateDir)
	replicas := 5
	eventually(t, func() error {
		// Every decision calls the estimator again, after a pause.
		replicas++
		must(t, "scale", "deploy", "web", "-n", ns, "--replicas", strconv.Itoa(replicas))
		return is("", ns, "rb/web-deployment", scheduled, "Binding has been scheduled successfully.")()
	})
}

// hasMessage reports whether the condition of the binding of "web" has a text.
func hasMessage(ns, want string) func() error {
	return func() error {
		r := ctl("", "get", "rb", "web-deployment", "-n", ns, "-o", "jsonpath={.status.conditions[?(@.type=='Scheduled')].message}")
		if !strings.Contains(r.out, want) {
			return fmt.Errorf("the message is %q%s", r.out, r.err)
		}
		return nil
	}
}

const pipelineRules = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: pipeline}
spec:
  target: {apiVersion: crafts.example.io/v1, kind: Pipeline}
  customizations:
    componentResource:
      luaScript: |
        function GetComponents(obj)
          return {
            {name = "head", replicas = 1, replicaRequirements = {resourceRequest = {cpu = "100m"}}},
            {name = "worker", replicas = 2, replicaRequirements = {resourceRequest = {cpu = "50m"}}},
          }
        end
`

// A set of components goes where its estimator has room. What must not run beside it waits until the estimator of the other
// cluster reports room, which no event of the control plane does; what must run beside it does.
func TestEstimator_ComponentsAndGroups(t *testing.T) {
	ns := namespace(t)
	uncordon := cordonNode(t)
	custom(t, ns, "Pipeline")
	must(t, "delete", "pp", "pipeline", "-n", ns) // it selects all Pipelines, and may be observed before the policy below
	const groups = "\nworkloadAffinity: {affinity: {groupByLabelKey: team}, antiAffinity: {groupByLabelKey: tier}}"
	apply(t, ns, pipelineRules, policyFor("late", "{apiVersion: crafts.example.io/v1, kind: Pipeline, name: late}", to("member1", "member2")+
		"\nspreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]"+groups),
		"{apiVersion: crafts.example.io/v1, kind: Pipeline, metadata: {name: late, labels: {team: a, tier: x}}, spec: {workers: 2}}")
	eventually(t, targets(ns, "late-pipeline", "member2"))
	eventually(t, is("", ns, "rb/late-pipeline", "{.spec.clusters[0].components[*].name}", "head worker"))

	labelled := func(name, label string) string {
		return strings.Replace(deployment(name, 1), "labels: {app: "+name, "labels: {"+label+", app: "+name, 1)
	}
	apply(t, ns, labelled("rival", "tier: x"), policy("rival", aggregated("member1", "member2")+groups))
	eventually(t, is("", ns, "rb/rival-deployment", "{.status.conditions[?(@.type=='Scheduled')].reason}", "Unschedulable"))
	uncordon()
	eventually(t, targets(ns, "rival-deployment", "member1"))

	apply(t, ns, labelled("mate", "team: a"), policy("mate", aggregated("member1", "member2")+groups))
	eventually(t, targets(ns, "mate-deployment", "member2"))
}

// A workload that is scheduled, and whose pods do not exist yet, takes its room: a node has 16 CPUs, and no room for both.
func TestEstimator_CountsWhatIsScheduled(t *testing.T) {
	ns := namespace(t)
	large := func(name string) string { return strings.Replace(deployment(name, 1), "{cpu: 10m}", `{cpu: "9"}`, 1) }
	held := strings.Replace(policy("first", aggregated("member1")), "\nspec:\n", "\nspec:\n  suspension: {dispatching: true}\n", 1)
	apply(t, ns, large("first"), held)
	eventually(t, targets(ns, "first-deployment", "member1"))
	apply(t, ns, large("second"), policy("second", aggregated("member1")))
	eventually(t, is("", ns, "rb/second-deployment", "{.status.conditions[?(@.type=='Scheduled')].reason}", "Unschedulable"))
	if err := absent("member1", ns, "deploy/first")(); err != nil {
		t.Error(err)
	}
	must(t, "delete", "deploy/first", "-n", ns)
	eventually(t, targets(ns, "second-deployment", "member1"))
}
