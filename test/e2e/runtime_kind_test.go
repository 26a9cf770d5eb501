//go:build kind

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

// under is what the federation of the tests runs on: kind clusters.
//
//	KIND_NODE_IMAGE  image of the nodes; default kind's own
//	KIND_CONFIG      kind configuration that clusters are made from; default kind's own
//	E2E_IMAGE        archive of the image of the control plane
//	E2E_PULL         how many of the members are in Pull mode
var under runtime = clusters{}

type clusters struct{}

// brokenOverrider makes a Deployment unhealthy: its image is missing.
const brokenOverrider = `{imageOverrider: [{component: Registry, operator: add, value: "localhost:1/none"}]}`

// unhealthySeconds is how long an application may be unhealthy: longer than it takes to start.
const unhealthySeconds = "30"

func (clusters) flags() []string {
	out := append([]string{"--runtime", "kind", "--image", os.Getenv("E2E_IMAGE")}, failoverFlags()...)
	if pull := os.Getenv("E2E_PULL"); pull != "" {
		out = append(out, "--pull", pull)
	}
	if image := os.Getenv("KIND_NODE_IMAGE"); image != "" {
		out = append(out, "--node-image", image)
	}
	if config := os.Getenv("KIND_CONFIG"); config != "" {
		out = append(out, "--kind-config", config)
	}
	return out
}

// timeout: real containers are started, and real nodes restarted.
func (clusters) timeout() time.Duration { return 4 * time.Minute }

// many real pods take their time on a small machine.
func (clusters) many() int { return 20 }

// node is the container of the only node of a cluster of the federation.
func node(cluster string) string {
	return "karmada-" + federationName + "-" + cluster + "-control-plane"
}

func (clusters) crashControlPlane(t *testing.T) {
	t.Helper()
	docker(t, "exec", node("host"), "pkill", "-KILL", "-f", "^(/bin/karmada-|kube-apiserver .*--secure-port=5443|/usr/local/bin/etcd .*karmada-etcd)")
}

func (clusters) serveSearch(t *testing.T) {
	t.Helper()
	withAddon(t, "karmada-search")
}

// withAddon enables an addon until the test ends.
func withAddon(t *testing.T, name string) {
	t.Helper()
	addon := func(verb string, flags ...string) []string {
		return append([]string{"addons", verb, name, "--kubeconfig", kubeconfig, "--context", "host", "--karmada-kubeconfig", kubeconfig, "--karmada-context", "karmada-apiserver"}, flags...)
	}
	must(t, addon("enable")...)
	t.Cleanup(func() { must(t, addon("disable", "-f")...) })
}

func (clusters) crashMember(t *testing.T, name string) {
	t.Helper()
	docker(t, "kill", node(name))
}

func (clusters) keepLogs(to string) {
	for _, cluster := range []string{"host", "member1", "member2"} {
		dir := filepath.Join(to, cluster)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			fmt.Fprintln(os.Stderr, "keeping logs:", err)
			return
		}
		out, err := exec.Command("docker", "cp", node(cluster)+":/var/log/pods", dir).CombinedOutput()
		if err != nil {
			fmt.Fprintln(os.Stderr, "keeping logs:", err, string(out))
		}
	}
}

func (clusters) componentLogs() string {
	out, err := exec.Command("docker", "exec", node("host"), "sh", "-c", "cat /var/log/pods/karmada-system_karmada-*/*/*.log").CombinedOutput()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the logs of the components:", err)
	}
	return string(out)
}

// docker runs the engine's command line.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
