//go:build !kind

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// outsider is a cluster that is registered by hand. Its nodes are simulated, so the
// test runs its agent, with the identity that register put into the cluster.
type outsider struct {
	cluster *testenv.Cluster
	dir     string
	agent   *exec.Cmd
}

func newOutsider(t *testing.T, name string) *outsider {
	t.Helper()
	t.Setenv(testenv.EnvBinDir, bin)
	return &outsider{cluster: testenv.Start(t, testenv.Member(name, 1)), dir: t.TempDir()}
}

// inside runs a command on the cluster itself.
func (o *outsider) inside(args ...string) result {
	return ctl("", append(args, "--kubeconfig", o.cluster.Kubeconfig)...)
}

// runAgent runs the agent until the test ends or it is stopped.
func (o *outsider) runAgent(t *testing.T, name string) {
	t.Helper()
	identity := filepath.Join(o.dir, "agent.kubeconfig")
	eventually(t, func() error {
		r := o.inside("get", "secret", "karmada-kubeconfig", "-n", "karmada-system", "-o", "jsonpath={.data.karmada-kubeconfig}")
		data, err := base64.StdEncoding.DecodeString(r.out)
		if err != nil || len(data) == 0 {
			return fmt.Errorf("no identity: %s", r.err)
		}
		return os.WriteFile(identity, data, 0o600)
	})
	log, err := os.Create(filepath.Join(o.dir, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	o.agent = exec.Command(filepath.Join(bin, "karmada"), "agent", "--karmada-kubeconfig="+identity, "--kubeconfig="+o.cluster.Kubeconfig,
		"--cluster-name="+name, "--cluster-api-endpoint="+o.cluster.Config.Host, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	o.agent.Stdout, o.agent.Stderr = log, log
	if err := o.agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if data, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the agent of %s said\n%s", name, data)
		}
		o.stopAgent()
	})
}

// stopAgent ends the agent as a crash would.
func (o *outsider) stopAgent() {
	if o.agent != nil {
		_ = o.agent.Process.Signal(syscall.SIGKILL)
		_ = o.agent.Wait()
		o.agent = nil
	}
}

// registerCommand returns the arguments that "token create" prints.
func registerCommand(t *testing.T, flags ...string) []string {
	t.Helper()
	line := must(t, append([]string{"token", "create", "--print-register-command"}, flags...)...)
	return strings.Fields(line)[1:]
}

// register registers the cluster while its agent runs.
func (o *outsider) register(t *testing.T, name string) {
	t.Helper()
	done := make(chan result, 1)
	args := append(registerCommand(t), "--cluster-name", name, "--kubeconfig", o.cluster.Kubeconfig, "--discovery-timeout", "1m")
	go func() { done <- ctl("", args...) }()
	o.runAgent(t, name)
	r := <-done
	if r.code != 0 || !strings.HasSuffix(r.out, "\ncluster("+name+") is joined successfully\n") {
		t.Fatalf("register: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestRegister(t *testing.T) {
	ns := namespace(t)
	o := newOutsider(t, "outsider")
	t.Run("each mistake has its error, and changes nothing", func(t *testing.T) { registerMistakes(t, o) })
	o.register(t, "m3")
	must(t, "get", "cluster", "m3")
	apply(t, ns, deployment("web", 1), policy("web", to("m3")))
	eventually(t, is("", ns, "deploy/web", "{.status.readyReplicas}", "1"))

	t.Run("a cluster that lost its identity gets another", func(t *testing.T) {
		if r := o.inside("delete", "secret", "karmada-kubeconfig", "-n", "karmada-system"); r.code != 0 {
			t.Fatal(r.err)
		}
		o.stopAgent()
		o.register(t, "m3")
	})
	t.Run("abandoned, its agent cleans up when it comes back", func(t *testing.T) { o.abandon(t, ns) })
	t.Run("it can be registered again, and leave", func(t *testing.T) {
		for _, object := range []string{"secret/karmada-kubeconfig", "deployment/karmada-agent"} {
			if r := o.inside("delete", object, "-n", "karmada-system"); r.code != 0 {
				t.Fatal(r.err)
			}
		}
		o.register(t, "m3")
		eventually(t, func() error { return o.has("deploy/web", ns) })
		must(t, "unregister", "m3", "--cluster-kubeconfig", o.cluster.Kubeconfig)
		for _, object := range []string{"deploy/web", "deploy/karmada-agent", "secret/karmada-kubeconfig", "sa/karmada-agent-sa"} {
			if err := o.has(object, map[bool]string{true: ns, false: "karmada-system"}[object == "deploy/web"]); err == nil {
				t.Errorf("%s is left", object)
			}
		}
		fails(t, "", "get", "cluster", "m3")
	})
}

// has returns an error if the cluster does not have an object.
func (o *outsider) has(object, ns string) error {
	if r := o.inside("get", object, "-n", ns, "-o", "name"); r.code != 0 {
		return fmt.Errorf("%s: %s", object, r.err)
	}
	return nil
}

func (o *outsider) abandon(t *testing.T, ns string) {
	t.Helper()
	o.stopAgent()
	r := ctl("", "unjoin", "m3", "--abandon")
	if r.code != 0 || !strings.Contains(r.err, "left behind: in the member: Deployment "+ns+"/web") {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	fails(t, "", "get", "cluster", "m3")
	if err := o.has("deploy/web", ns); err != nil {
		t.Fatal(err)
	}
	o.runAgent(t, "m3")
	eventually(t, func() error {
		if err := o.has("deploy/web", ns); err == nil {
			return fmt.Errorf("deploy/web is left")
		}
		return nil
	})
	eventually(t, func() error {
		if at, err := value("", "karmada-cluster", "cm/m3-abandoned", "{.data.cleanedAt}"); err != nil || at == "" {
			return fmt.Errorf("not reported: %w", err)
		}
		return nil
	})
	fails(t, "", "get", "cluster", "m3")
	o.stopAgent()
}

func registerMistakes(t *testing.T, o *outsider) {
	t.Helper()
	good := registerCommand(t, "--reusable") // register host:port --token T --discovery-token-ca-cert-hash H
	unpinned := slices.Clone(good)
	unpinned[5] = "sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		args          []string
		cluster, want string
	}{
		"another authority":    {unpinned, "m3", "is not the one of --discovery-token-ca-cert-hash"},
		"a name that is taken": {good, "member1", `the name "member1" is taken`},
		"a reserved name":      {good, "rbac-generator", "is not possible in Pull mode"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(slices.Clone(tc.args), "--cluster-name", tc.cluster)
			if said := fails(t, "", append(args, "--kubeconfig", o.cluster.Kubeconfig)...); !strings.Contains(said, tc.want) {
				t.Error(said)
			}
			if err := o.has("secret/karmada-kubeconfig", "karmada-system"); err == nil {
				t.Error("something was written to the member")
			}
			fails(t, "", "get", "cluster", "m3")
		})
	}
}
