//go:build kind

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// federationSession returns a user of the federation of the tests.
func federationSession(t *testing.T) *session {
	t.Helper()
	if err := started(); err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	s.data = filepath.Join(stateDir, federationName, "karmada")
	s.config = filepath.Join(s.data, "karmada-apiserver.config")
	config, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.file(t, ".kube/config", string(config))
	return s
}

// TestCapacity runs an estimator of member1 on the host, one of member2 beside its agent, and the descheduler.
func TestCapacity(t *testing.T) {
	ns := namespace(t)
	s := federationSession(t)
	addons := func(verb, rest string) string {
		return "kubectl karmada addons " + verb + " --context host --karmada-kubeconfig " + s.config + " " + rest
	}
	t.Cleanup(func() {
		s.run(addons("disable", "karmada-scheduler-estimator karmada-descheduler -C member1 -f"))
		s.run("kubectl --context member2 delete -f estimator.yaml --ignore-not-found; kubectl " + s.at() + " delete -f service.yaml --ignore-not-found")
		s.run("kubectl --context member2 -n karmada-system delete secret karmada-scheduler-estimator-cert --ignore-not-found")
	})
	s.does(t, addons("enable", "karmada-scheduler-estimator karmada-descheduler -C member1"), "Enabled: karmada-scheduler-estimator-member1, karmada-descheduler")
	s.does(t, "kubectl --context member2 -n karmada-system get deployment karmada-agent")
	s.estimatorByHand(t, "host", "member2")
	s.isCalled(t, "host", "karmada-scheduler-estimator-member1")
	s.isCalled(t, "member2", "karmada-scheduler-estimator")

	t.Run("the command calls the estimator beside an agent", func(t *testing.T) {
		s.file(t, "large.yaml", strings.Replace(deployment("large", 1), "{cpu: 10m}", `{cpu: "1000"}`, 1))
		s.file(t, "web.yaml", strings.Replace(deployment("web", 1), "containers:", "nodeSelector: {none: such}\n      containers:", 1))
		const estimators = "kubectl karmada capacity -C member2 --estimators --kubeconfig .kube/config --karmada-context karmada-apiserver --for "
		client := s.data + "/pki/scheduler-estimator-client"
		flags := " --scheduler-estimator-ca-file=" + s.data + "/pki/ca.crt --scheduler-estimator-cert-file=" + client + ".crt --scheduler-estimator-key-file=" + client + ".key"
		s.prints(t, estimators+"web.yaml"+flags, row{"CLUSTER": "member2", "REPLICAS": "0", "SOURCE": "estimator"})
		s.prints(t, estimators+"large.yaml"+flags, row{"CLUSTER": "member2", "REPLICAS": "0", "BOUND": "cpu"})
	})
	t.Run("a node is lost", func(t *testing.T) { s.testLostNode(t, ns) })
}

// testLostNode: pods leave a node of a member and stay Pending, and the descheduler has them run elsewhere. What tolerates
// the state of the node does not move.
func (s *session) testLostNode(t *testing.T, ns string) {
	const add = `[{"op":"add","path":"/spec/template/spec/containers/0/command/-","value":"--descheduling-interval=5s"},` +
		`{"op":"add","path":"/spec/template/spec/containers/0/command/-","value":"--unschedulable-threshold=5s"}]`
	s.does(t, "kubectl --context host -n karmada-system patch deployment karmada-descheduler --type=json -p '"+add+"' && "+
		"kubectl --context host -n karmada-system rollout status deployment karmada-descheduler --timeout=120s")
	calm := strings.Replace(deployment("calm", 2), "containers:", "tolerations: [{operator: Exists}]\n      containers:", 1)
	apply(t, ns, deployment("web", 2), policy("web", byRoom), calm, policy("calm", weighted(1, 1)))
	eventually(t, is("member2", ns, "deploy/calm", "{.status.readyReplicas}", "1"))
	eventually(t, is("member1", ns, "deploy/calm", "{.status.readyReplicas}", "1"))
	eventually(t, is("member1", ns, "deploy/web", "{.status.readyReplicas}", "1"))
	pods := func() string {
		var out []string
		for _, m := range []string{"member1", "member2"} {
			out = append(out, must(t, member(m, "get", "pods", "-n", ns, "-l", "app=calm", "-o", "jsonpath={.items[*].metadata.uid}")...))
		}
		return fmt.Sprint(out)
	}
	before := pods()
	taint := "kubectl --context member1 taint node " + node("member1") + " e2e/lost=true:NoExecute"
	t.Cleanup(func() { s.run(taint + "-") })
	s.does(t, taint)
	eventually(t, all(
		is("member2", ns, "deploy/web", "{.spec.replicas} {.status.readyReplicas}", "2 2"),
		is("", ns, "rb/web-deployment", `{.spec.clusters[?(@.name=="member2")].replicas}`, "2"),
	))
	eventually(t, func() error {
		out := must(t, "get", "events", "-n", ns, "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(out, "Binding has been descheduled, 1 replica(s) in cluster(member1), 1 total descheduled replica(s)") {
			return fmt.Errorf("no event in %s", out)
		}
		return nil
	})
	if after := pods(); after != before {
		t.Errorf("the pods of another workload changed from %s to %s", before, after)
	}
}
