package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// failoverFlags turn on what TestFailover_* observe. Nothing is evicted without a taint with the effect NoExecute.
func failoverFlags() []string {
	return []string{
		"--feature-gates", "Failover=true,StatefulFailoverInjection=true,FederatedQuotaEnforcement=true,WorkloadAffinity=true,MultiplePodTemplatesScheduling=true",
		"--set", "controller-manager.enable-no-execute-taint-eviction=true", "--set", "controller-manager.resource-eviction-rate=100",
		"--set", "controller-manager.flap-window=0s", // the tests take members down again and again
		"--set", "controller-manager.cluster-failure-threshold=5s", "--set", "webhook.allow-no-execute-taint-policy=true",
	}
}

// evictedFrom returns a check that a binding has an eviction task for a cluster, or none.
func evictedFrom(ns, binding, want string) func() error {
	return is("", ns, "rb/"+binding, "{.spec.gracefulEvictionTasks[*].fromCluster}", want)
}

// taint adds a taint to a cluster and removes it at the end of the test.
func taint(t *testing.T, cluster, taint string) {
	t.Helper()
	key, effect, _ := strings.Cut(taint, ":")
	t.Cleanup(func() { ctl("", "taint", "clusters", cluster, key+":"+effect+"-") })
	must(t, "taint", "clusters", cluster, taint)
}

// aggregated places all replicas in one of the clusters.
func aggregated(clusters ...string) string {
	return to(clusters...) + `
replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}`
}

// A workload that tolerates a taint for some seconds moves after them, not before; one that tolerates it for ever stays.
func TestFailover_TolerationSeconds(t *testing.T) {
	ns := namespace(t)
	const key, seconds = "e2e-tolerated", 5
	apply(t, ns,
		slow("short", 2, seconds), policy("short", aggregated("member1", "member2")+fmt.Sprintf("\nclusterTolerations: [{key: %s, operator: Exists, tolerationSeconds: %d}]", key, seconds)),
		deployment("ever", 2), policy("ever", to("member1", "member2")+"\nclusterTolerations: [{key: "+key+", operator: Exists}]"))
	from, other := onlyTarget(t, ns, "short-deployment")
	eventually(t, all(
		targets(ns, "ever-deployment", "member1", "member2"),
		is(from, ns, "deploy/short", "{.status.readyReplicas}", "2"),
	))
	task := watch(t, "", ns, "rb", "short-deployment", "{.spec.gracefulEvictionTasks[0].creationTimestamp}")
	taint(t, from, key+":NoExecute")
	evicted := parsed(t, task)
	if tainted := timestamp(t, "", "cluster/"+from, `{.spec.taints[?(@.key=="`+key+`")].timeAdded}`); evicted.Sub(tainted) < seconds*time.Second {
		t.Errorf("tainted at %s, evicted already at %s", tainted, evicted)
	}
	eventually(t, all(targets(ns, "short-deployment", other), is(other, ns, "deploy/short", "{.status.availableReplicas}", "2")))
	eventually(t, all(absent(from, ns, "deploy/short"), evictedFrom(ns, "short-deployment", "")))
	if err := all(targets(ns, "ever-deployment", "member1", "member2"), evictedFrom(ns, "ever-deployment", ""))(); err != nil {
		t.Error(err)
	}
}

// timestamp waits for a time that an object of the control plane has.
func timestamp(t *testing.T, ns, object, path string) time.Time {
	t.Helper()
	return parsed(t, func() (string, error) { return value("", ns, object, path) })
}

// parsed waits for a text that is a time.
func parsed(t *testing.T, text func() (string, error)) (out time.Time) {
	t.Helper()
	eventually(t, func() error {
		text, err := text()
		if err == nil {
			out, err = time.Parse(time.RFC3339, text)
		}
		return err
	})
	return out
}

// watch records the values of a JSONPath on an object from now on, in the control plane or, with a context, in a member. It
// returns the first one that is not empty: others may last for less time than a command takes.
func watch(t *testing.T, context, ns, kind, name, path string) (first func() (string, error)) {
	t.Helper()
	args := []string{"get", kind, "-n", ns, "--watch", "--field-selector", "metadata.name=" + name, "-o", "jsonpath=" + path + `{"\n"}`}
	if context != "" {
		args = append(args, "--operation-scope", "members", "-C", context)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "values"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "karmadactl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_STATE_HOME="+stateDir)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	})
	if context == "" { // there the object exists
		eventually(t, func() error {
			lines, err := os.ReadFile(out.Name())
			if err == nil && len(lines) == 0 {
				err = fmt.Errorf("the watch shows nothing of %s %s", kind, name)
			}
			return err
		})
	}
	return func() (string, error) {
		lines, err := os.ReadFile(out.Name())
		value, _, _ := strings.Cut(strings.TrimLeft(string(lines), "\n"), "\n")
		return value, err
	}
}

// slow returns a Deployment whose new replicas count as healthy only after some seconds, in which evictions are observed.
func slow(name string, replicas, seconds int) string {
	return strings.Replace(deployment(name, replicas), "\n  selector:", fmt.Sprintf("\n  minReadySeconds: %d\n  selector:", seconds), 1)
}

// onlyTarget returns the cluster that has all replicas of a binding, and the other one.
func onlyTarget(t *testing.T, ns, binding string) (cluster, other string) {
	t.Helper()
	eventually(t, func() error {
		out, err := value("", ns, "rb/"+binding, "{.spec.clusters[*].name}")
		if cluster = out; err == nil && len(strings.Fields(out)) != 1 {
			return fmt.Errorf("the targets are %q", out)
		}
		return err
	})
	return cluster, map[string]string{"member1": "member2", "member2": "member1"}[cluster]
}

// An application that never becomes healthy in one cluster moves to another, with the state that is preserved.
func TestFailover_UnhealthyApplicationMoves(t *testing.T) {
	ns := namespace(t)
	const seconds = 6 // less than what is tolerated, else the application leaves the second cluster too
	state := watch(t, "member2", ns, "deploy", "directly", `{.metadata.labels.failover\.example/replicas}`)
	apply(t, ns, `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: broken-in-member1}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules:
  - targetCluster: {clusterNames: [member1]}
    overriders: `+brokenOverrider,
		slow("directly", 1, seconds), failoverPolicy("directly", "purgeMode: Directly, "+
			`statePreservation: {rules: [{aliasLabelName: failover.example/replicas, jsonPath: "{.replicas}"}]}`))

	eventually(t, all(absent("member1", ns, "deploy/directly"), func() error {
		got, err := state()
		if err == nil && got != "1" {
			err = fmt.Errorf("the preserved state is %q", got)
		}
		return err
	}))
	eventually(t, all(
		targets(ns, "directly-deployment", "member2"), evictedFrom(ns, "directly-deployment", ""),
		is("member2", ns, "deploy/directly", "{.status.availableReplicas}", "1"),
	))
}

// failoverPolicy sends a Deployment to member1, then to member2 once it is unhealthy there.
func failoverPolicy(name, settings string) string {
	return `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: ` + name + `}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: ` + name + `}]
  failover: {application: {decisionConditions: {tolerationSeconds: ` + unhealthySeconds + `}, ` + settings + `}}
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [member1]}
    - {affinityName: second, clusterNames: [member2]}`
}

// deadTaint is a policy that taints the clusters that are not Ready.
const deadTaint = `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: e2e-dead}
spec:
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}]
  removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["True"]}]
  taints: [{key: e2e-dead, effect: NoExecute}]`

// evictFromDeadClusters lets a ClusterTaintPolicy taint the clusters that are not Ready, until the end of the test.
func evictFromDeadClusters(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctl("", "local", "up", "--name", federationName, "--dir", stateDir)
		eventually(t, all(tainted("member1", ""), tainted("member2", "")))
		ctl(deadTaint, "delete", "-f", "-", "--ignore-not-found")
	})
	mustWith(t, deadTaint, "apply", "-f", "-")
}

// tainted returns a check of the taint of evictFromDeadClusters.
func tainted(cluster, effect string) func() error {
	return is("", "", "cluster/"+cluster, `{.spec.taints[?(@.key=="e2e-dead")].effect}`, effect)
}

// deadMemberMoves has a workload in two members, one of which stops. The workload moves to the other, and the member has
// nothing of it when it is back. It returns the namespace of the workload, web.
func deadMemberMoves(t *testing.T, dead, other string) (ns string) {
	t.Helper()
	ns = namespace(t)
	apply(t, ns, deployment("web", 2), policy("web", to("member1", "member2")+`
replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}`))
	eventually(t, all(
		targets(ns, "web-deployment", "member1", "member2"),
		is("member1", ns, "deploy/web", "{.status.readyReplicas}", "1"),
		is("member2", ns, "deploy/web", "{.status.readyReplicas}", "1"),
	))
	evictFromDeadClusters(t)

	begun := time.Now()
	under.crashMember(t, dead)
	eventually(t, all(
		targets(ns, "web-deployment", other),
		is(other, ns, "deploy/web", "{.status.readyReplicas}", "2"),
		evictedFrom(ns, "web-deployment", ""),
	))
	if err := explained("", "cluster/"+dead, "not Ready: ")(); err != nil {
		t.Error(err)
	}
	t.Logf("%s was replaced %s after it stopped", dead, time.Since(begun).Round(100*time.Millisecond))
	up(t)
	eventually(t, all(tainted(dead, ""), absent(dead, ns, "deploy/web")))
	if err := all(targets(ns, "web-deployment", other), is(other, ns, "deploy/web", "{.status.readyReplicas}", "2"))(); err != nil {
		t.Error(err)
	}
	return ns
}
