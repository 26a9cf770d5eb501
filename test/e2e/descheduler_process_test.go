//go:build !kind

package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// startDescheduler runs a descheduler until the test ends.
func startDescheduler(t *testing.T) {
	t.Helper()
	certs := filepath.Join(stateDir, federationName, "karmada", "pki")
	client := filepath.Join(certs, "scheduler-estimator-client")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "karmada"), "descheduler",
		"--kubeconfig", kubeconfig, "--karmada-context", "karmada-apiserver", "--leader-elect=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--descheduling-interval=1s", "--unschedulable-threshold=1s",
		"--scheduler-estimator-ca-file", filepath.Join(certs, "ca.crt"),
		"--scheduler-estimator-cert-file", client+".crt", "--scheduler-estimator-key-file", client+".key")
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the descheduler logged\n%s", log)
		}
	})
}

// A member has no node for new pods any longer: what is Pending there runs elsewhere, what is ready stays, and so does
// another workload.
func TestDescheduler_MovesWhatStaysPending(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("web", 4), policy("web", byRoom), deployment("calm", 2), policy("calm", byRoom))
	eventually(t, all(is("member1", ns, "deploy/web", "{.status.readyReplicas}", "2"), is("member2", ns, "deploy/web", "{.status.readyReplicas}", "2"),
		is("member1", ns, "deploy/calm", "{.status.readyReplicas}", "1")))
	cordon := func(value string) {
		for node := range strings.FieldsSeq(must(t, member("member1", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")...)) {
			must(t, member("member1", "patch", "nodes", node, "--type=merge", "-p", `{"spec":{"unschedulable":`+value+`}}`)...)
		}
	}
	t.Cleanup(func() { cordon("null") })
	cordon("true")
	pod := strings.Fields(must(t, member("member1", "get", "pods", "-n", ns, "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}")...))[0]
	must(t, member("member1", "delete", "pod", pod, "-n", ns)...)
	eventually(t, is("", ns, "rb/web-deployment", `{.status.aggregatedStatus[?(@.clusterName=="member1")].status.readyReplicas}`, "1"))
	startDescheduler(t)
	eventually(t, all(
		is("member1", ns, "deploy/web", "{.spec.replicas} {.status.readyReplicas}", "1 1"),
		is("member2", ns, "deploy/web", "{.status.readyReplicas}", "3"),
		is("member1", ns, "deploy/calm", "{.spec.replicas} {.status.readyReplicas}", "1 1"),
	))
	const event = "Binding has been descheduled, 1 replica(s) in cluster(member1), 1 total descheduled replica(s)"
	eventually(t, is("", ns, "events", `{.items[?(@.reason=="DescheduleBindingSucceed")].message}`, event+" "+event)) // of the binding and its template
}
