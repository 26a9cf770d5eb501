//go:build kind

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSearch_KubectlStreams uses kubectl with all clusters as one: logs, exec and port-forward reach the member that runs the
// pod, a pod is deleted there, and its Deployment is waited for in each cluster.
func TestSearch_KubectlStreams(t *testing.T) {
	ns := namespace(t)
	cacheWorkloads(t)
	apply(t, ns, deployment("web", 1), policy("web", ""))
	fleet := filepath.Join(t.TempDir(), "fleet.kubeconfig")
	if err := os.WriteFile(fleet, []byte(must(t, "search", "kubeconfig")), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "kubectl", append([]string{"--kubeconfig", fleet, "-n", ns}, args...)...).CombinedOutput()
		return string(out), err
	}
	for _, cluster := range []string{"member1", "member2"} {
		// rollout status fails for a Deployment that does not exist yet.
		for _, args := range [][]string{{"wait", "--for=create"}, {"rollout", "status"}} {
			if out, err := kubectl(append(args, "deployment/web", "--context", "fleet-"+cluster, "--timeout=120s")...); err != nil {
				t.Fatalf("%s: %v\n%s", cluster, err, out)
			}
		}
	}
	pods := map[string]string{} // by cluster
	eventually(t, func() error {
		out, err := kubectl("get", "pods", "-l", "app=web", "--field-selector", "status.phase=Running", "--no-headers")
		for line := range strings.Lines(out) {
			if cells := strings.Fields(line); len(cells) > 1 {
				pods[cells[0]] = cells[1]
			}
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		if len(pods) != 2 {
			return fmt.Errorf("running pods of %d clusters:\n%s", len(pods), out)
		}
		return nil
	})
	for cluster, pod := range pods {
		if out, err := kubectl("logs", pod); err != nil {
			t.Errorf("logs in %s: %v\n%s", cluster, err, out)
		}
		if out, err := kubectl("exec", pod, "--", "/no-such-program"); err == nil || !strings.Contains(out, "/no-such-program") || !strings.Contains(out, "OCI runtime") {
			t.Errorf("exec in %s did not reach its runtime: %v\n%s", cluster, err, out)
		}
		forwarded(t, fleet, ns, pod)
	}
	pod := pods["member1"]
	if out, err := kubectl("delete", "pod", pod); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := kubectl("wait", "--for=delete", "pod/"+pod, "--timeout=60s"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// forwarded sends a request to a pod through a port of this machine.
func forwarded(t *testing.T, fleet, ns, pod string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", "--kubeconfig", fleet, "-n", ns, "port-forward", "pod/"+pod, ":80")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	port := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(line)
	if err != nil || port == nil {
		t.Errorf("forwarding a port of %s: %v\n%s", pod, err, line)
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port[1]+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s did not answer: %v", pod, err)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // its code is enough
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s answered with %s", pod, resp.Status)
	}
}
