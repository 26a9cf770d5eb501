//go:build kind

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// pullClusters is the federation of the tests, whose member2 has the real agent in
// real pods.
type pullClusters struct{}

const (
	system = "karmada-system"
	// etcdData and etcdBackup are directories of the host's node.
	etcdData   = "/var/lib/karmada-etcd"
	etcdBackup = "/var/lib/karmada-etcd-backup"
)

func newPullSite(t *testing.T) pullSite {
	t.Helper()
	if pull := os.Getenv("E2E_PULL"); pull == "" || pull == "0" {
		t.Fatal("no member is in Pull mode: set E2E_PULL, or leave this test out with -skip")
	}
	if err := started(); err != nil {
		t.Fatal(err)
	}
	return pullClusters{}
}

// onHost runs a command on the cluster that the control plane is in.
func onHost(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append(member("host", args...), "-n", system)...)
}

// onMember runs a command on member2 itself.
func onMember(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append(member("member2", args...), "-n", system)...)
}

func (pullClusters) killAgent(t *testing.T) {
	t.Helper()
	onMember(t, "patch", "deployment", "karmada-agent", "-p", `{"spec":{"replicas":0}}`)
	within(t, under.timeout(), func() error {
		// It fails when nothing runs any longer.
		if out, err := exec.Command("docker", "exec", node("member2"), "pkill", "-KILL", "-f", "^/bin/karmada-agent").CombinedOutput(); err == nil {
			return fmt.Errorf("the agent still runs: %s", out)
		}
		return nil
	})
}

func (pullClusters) startAgent(t *testing.T) {
	t.Helper()
	onMember(t, "patch", "deployment", "karmada-agent", "-p", `{"spec":{"replicas":1}}`)
}

func (pullClusters) agentConfig(t *testing.T) *clientcmdapi.Config {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(onMember(t, "get", "secret", "karmada-kubeconfig", "-o", "jsonpath={.data.karmada-kubeconfig}"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (s pullClusters) runAgent(t *testing.T, config *clientcmdapi.Config, flags ...string) {
	t.Helper()
	before := onMember(t, "get", "deployment", "karmada-agent", "-o", "jsonpath={.spec.template.spec.containers[0].command}")
	s.killAgent(t)
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	onMember(t, "patch", "secret", "karmada-kubeconfig", "-p", `{"data":{"karmada-kubeconfig":"`+base64.StdEncoding.EncodeToString(data)+`"}}`)
	command := strings.TrimSuffix(before, "]")
	for _, flag := range flags {
		command += `,"` + flag + `"`
	}
	s.setCommand(t, command+"]")
	t.Cleanup(func() { s.setCommand(t, before) })
}

// setCommand runs the agent with another command.
func (pullClusters) setCommand(t *testing.T, command string) {
	t.Helper()
	onMember(t, "patch", "deployment", "karmada-agent", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/template/spec/containers/0/command","value":`+command+`}]`)
}

func (pullClusters) authority(t *testing.T) pki.Pair {
	t.Helper()
	return readAuthority(t, filepath.Join(stateDir, federationName, "karmada", "pki"))
}

// etcd has so many replicas of the store run, and waits until it is so.
func (pullClusters) etcd(t *testing.T, replicas string) {
	t.Helper()
	onHost(t, "patch", "statefulset", "etcd", "-p", `{"spec":{"replicas":`+replicas+`}}`)
	eventually(t, func() error {
		pods := strings.Fields(onHost(t, "get", "pods", "-l", "app=etcd", "-o", "name"))
		if fmt.Sprint(len(pods)) != replicas {
			return fmt.Errorf("%s of etcd run, not %s", pods, replicas)
		}
		return nil
	})
}

func (s pullClusters) backup(t *testing.T) {
	t.Helper()
	s.etcd(t, "0")
	docker(t, "exec", node("host"), "sh", "-c", "rm -rf "+etcdBackup+" && cp -a "+etcdData+" "+etcdBackup)
	s.etcd(t, "1")
	eventually(t, shows(row{"NAME": "member2", "READY": "True"}, "get", "clusters"))
}

// restore: all of the control plane starts with the data it is to work on.
func (s pullClusters) restore(t *testing.T) {
	t.Helper()
	s.etcd(t, "0")
	docker(t, "exec", node("host"), "sh", "-c", "rm -rf "+etcdData+" && cp -a "+etcdBackup+" "+etcdData)
	onHost(t, "delete", "pods", "--all", "--grace-period=0", "--force")
	s.etcd(t, "1")
	eventually(t, shows(row{"NAME": "member1", "READY": "True"}, "get", "clusters"))
}

// filtered is the network of a node: rules of its kernel drop what goes between it
// and the control plane.
type filtered struct{ rules [][]string }

func (s pullClusters) network(t *testing.T) network {
	t.Helper()
	host := docker(t, "inspect", "-f", "{{.NetworkSettings.Networks.kind.IPAddress}}", node("host"))
	n := &filtered{}
	for _, c := range s.agentConfig(t).Clusters {
		port := c.Server[strings.LastIndex(c.Server, ":")+1:]
		for _, chain := range []string{"FORWARD", "OUTPUT", "INPUT"} {
			n.rules = append(n.rules,
				[]string{chain, "-p", "tcp", "-d", host, "--dport", port, "-j", "DROP"},
				[]string{chain, "-p", "tcp", "-s", host, "--sport", port, "-j", "DROP"})
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = n.change("-D") // it is not known whether it was cut
		}
	})
	return n
}

func (n *filtered) change(how string) error {
	for _, rule := range n.rules {
		out, err := exec.Command("docker", append([]string{"exec", node("member2"), "iptables", how}, rule...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("iptables %s %v: %w: %s", how, rule, err, out)
		}
	}
	return nil
}

func (n *filtered) set(t *testing.T, cut bool) {
	t.Helper()
	how := "-D"
	if cut {
		how = "-I"
	}
	if err := n.change(how); err != nil {
		t.Fatal(err)
	}
}
