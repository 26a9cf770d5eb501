//go:build kind

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A member whose node stops loses its workloads to the other, and has nothing of them when it is back.
func TestFailover_DeadMember(t *testing.T) { deadMemberMoves(t, "member1", "member2") }

// The commands of samples/cluster-problem-detector install a detector. It reports that names are not resolved, and that they are again.
func TestProblemDetector_ReportsBrokenDNS(t *testing.T) {
	if err := started(); err != nil {
		t.Fatal(err)
	}
	const cluster, key = "member2", "ServiceDomainNameResolutionReady"
	d := detectorSample(t, cluster)
	d.does(t, d.install)
	t.Cleanup(func() {
		d.does(t, "kubectl --context member2 -n kube-system scale deployment coredns --replicas=1")
		d.does(t, "kubectl --context member2 delete -f member.yaml; kubectl --context member2 -n kube-system delete secret cluster-problem-detector; "+
			"sed s/member1/member2/ control-plane.yaml | kubectl --context karmada-apiserver delete --ignore-not-found -f -")
	})
	reports := func(status string) {
		t.Helper()
		condition := `{.status.conditions[?(@.type=="` + key + `")].status}`
		eventually(t, all(is("", "", "cluster/"+cluster, condition, status), is(cluster, "", "node/"+node(cluster), condition, status)))
	}
	reports("True")
	d.does(t, "kubectl --context member2 -n kube-system scale deployment coredns --replicas=0")
	reports("False")
	d.does(t, "kubectl --context member2 -n kube-system scale deployment coredns --replicas=1")
	reports("True")
}

// detector is a copy of samples/cluster-problem-detector.
type detector struct{ dir, install string }

// detectorSample returns a copy whose detector reports a change within seconds. install are the commands of its README for
// a cluster.
func detectorSample(t *testing.T, cluster string) detector {
	t.Helper()
	d := detector{dir: t.TempDir()}
	if err := os.CopyFS(d.dir, os.DirFS(filepath.Join("..", "..", "samples", "cluster-problem-detector"))); err != nil {
		t.Fatal(err)
	}
	if out, err := d.run("sed -i 's/^ *- --healthz-port=10357/&\\n        - --coredns-detect-period=1s\\n        - --coredns-failure-threshold=3s\\n        - --coredns-success-threshold=3s/' member.yaml"); err != nil {
		t.Fatal(out)
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(text), "```bash\n")
	commands, _, _ = strings.Cut(commands, "```")
	host := docker(t, "inspect", "-f", "{{.NetworkSettings.Networks.kind.IPAddress}}", node("host"))
	port := onHost(t, "get", "service", "karmada-apiserver", "-o", "jsonpath={.spec.ports[0].nodePort}")
	image := onHost(t, "get", "deployment", "karmada-scheduler", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	d.does(t, "kind load image-archive "+os.Getenv("E2E_IMAGE")+" --name "+strings.TrimSuffix(node(cluster), "-control-plane"))
	d.install = "set -e\n" + strings.NewReplacer("NAME", cluster, "IP:PORT", host+":"+port, "IMAGE", image).Replace(commands)
	return d
}

// run runs lines of the shell in the directory of the sample, with the contexts of the federation.
func (d detector) run(lines string) (string, error) {
	cmd := exec.Command("bash", "-c", lines)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d detector) does(t *testing.T, lines string) {
	t.Helper()
	if out, err := d.run(lines); err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
}
