package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestNext_WorksAsPrinted runs the commands that "local up" prints.
func TestNext_WorksAsPrinted(t *testing.T) {
	if err := started(); err != nil {
		t.Fatal(err)
	}
	again := ctl("", "local", "up", "--name", federationName, "--dir", stateDir)
	if again.code != 0 || again.out != "" {
		t.Errorf("a second start of the federation, without a terminal, printed %q, exit code %d, %s", again.out, again.code, again.err)
	}
	// The text for a federation with another name, which a test of the command compares with what the command prints.
	text, err := os.ReadFile("../../pkg/cli/local/testdata/next.golden")
	if err != nil {
		t.Fatal(err)
	}
	_, script, ok := strings.Cut(string(text), "Next:\n")
	if !ok {
		t.Fatalf("no next steps in\n%s", text)
	}
	script = strings.Replace(script, " --name b", " --name "+federationName+" --dir "+stateDir, 1)
	script, _, _ = strings.Cut(script, "\n\n")
	script = strings.ReplaceAll(script, "nginx:1.27", image) // what real nodes have, which may not reach a registry
	t.Cleanup(func() { _ = ctl("", "delete", "deploy/nginx", "pp/nginx", "-n", "default") })
	cmd := exec.Command("sh", "-e")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	eventually(t, is("", "default", "deploy/nginx", "{.status.readyReplicas}", "2"))
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": "member1", "READY": "1/1"}, "get", "deploy", "-n", "default"))
}

// TestNoPolicy_IsReportedOnTheTemplate shows what a user sees who forgot the policy.
func TestNoPolicy_IsReportedOnTheTemplate(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1))
	eventually(t, func() error {
		out := ctl("", "describe", "deploy", "nginx", "-n", ns).out
		if !strings.Contains(out, "No policy match for resource") {
			return fmt.Errorf("describe does not report the missing policy:\n%s", out)
		}
		return nil
	})
	out := must(t, "get", "events", "-A", "-o", `jsonpath={range .items[?(@.message=="No policy match for resource")]}{.involvedObject.kind}/{.involvedObject.name}{"\n"}{end}`)
	for _, made := range []string{"ConfigMap/kube-root-ca.crt", "ServiceAccount/default", "ClusterRole/system:", "ClusterRole/view", "Namespace/", "Service/kubernetes"} {
		if strings.Contains(out, made) {
			t.Errorf("an event on what Kubernetes makes: %s\n%s", made, out)
		}
	}
	apply(t, ns, policy("nginx", to("member1")))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "1"))
}
