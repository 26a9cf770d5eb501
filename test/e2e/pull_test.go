package e2e

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

const cluster2 = "clusters/member2"

// pullSite is a federation for the stories of Pull mode: member1 is pushed to, member2
// pulls. Its parts are stopped, cut off and set back in time.
type pullSite interface {
	pullAgents
	// authority signs the certificates of agents.
	authority(t *testing.T) pki.Pair
	// network returns the connection of the agent to the control plane, which can be cut.
	network(t *testing.T) network
	// backup keeps a copy of what the control plane stores. restore brings that back, and
	// starts the control plane on it.
	backup(t *testing.T)
	restore(t *testing.T)
}

// pullAgents is the agent of member2.
type pullAgents interface {
	// killAgent ends it at once; startAgent starts it again.
	killAgent(t *testing.T)
	startAgent(t *testing.T)
	// agentConfig returns the kubeconfig by which it reaches the control plane.
	agentConfig(t *testing.T) *clientcmdapi.Config
	// runAgent runs it with another kubeconfig and more flags, until the test ends.
	runAgent(t *testing.T, config *clientcmdapi.Config, flags ...string)
}

// network is a connection. What is on the way when it is cut does not arrive.
type network interface{ set(t *testing.T, cut bool) }

// TestPull tests the failures of a member in Pull mode that other tests do not cover: of its agent, its network and its control plane.
func TestPull(t *testing.T) {
	s := newPullSite(t)
	t.Run("Register", func(t *testing.T) { pullRegister(t) })
	t.Run("AgentKilled", func(t *testing.T) { pullAgentKilled(t, s) })
	t.Run("Failover", func(t *testing.T) { pullFailover(t, s) })
	if more, ok := s.(interface{ services(t *testing.T) }); ok { // the kind suite has its own
		t.Run("Services", more.services)
	}
	t.Run("NetworkCut", func(t *testing.T) { pullNetworkCut(t, s) })
	t.Run("Rotation", func(t *testing.T) { pullRotation(t, s) })
	t.Run("RestoredFromBackup", func(t *testing.T) { pullRestored(t, s) })
}

// condition reads the status of a condition of member2.
func condition(kind, field string) string {
	return fmt.Sprintf(`{.status.conditions[?(@.type=="%s")].%s}`, kind, field)
}

func pullRegister(t *testing.T) {
	eventually(t, all(
		shows(row{"NAME": "member1", "MODE": "Push", "READY": "True"}, "get", "clusters"),
		shows(row{"NAME": "member2", "MODE": "Pull", "READY": "True"}, "get", "clusters"),
		is("", "default", cluster2, condition("CompleteAPIEnablements", "status"), "True"),
		is("", "default", cluster2, "{.status.nodeSummary.readyNum}", "1"),
		is("", "karmada-cluster", "lease/member2", "{.spec.holderIdentity} {.spec.leaseDurationSeconds}", "member2 40"),
		is("", "karmada-cluster", "secret/member2", "{.metadata.ownerReferences[0].name}", "member2"),
		is("", "karmada-cluster", "secret/member2-impersonator", "{.metadata.ownerReferences[0].name}", "member2"),
	))
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 2), policy("nginx", to("member2")))
	eventually(t, all(
		is("", ns, "deploy/nginx", "{.status.readyReplicas}", "2"),
		is("member2", ns, "deploy/nginx", "{.status.readyReplicas}", "2"),
	))
	// The events of the agent are recorded on the template.
	eventually(t, func() error {
		out := must(t, "describe", "deploy", "nginx", "-n", ns)
		if !strings.Contains(out, "Successfully applied resource("+ns+"/nginx) to cluster member2") {
			return fmt.Errorf("describe does not show the events of the agent:\n%s", out)
		}
		return nil
	})
}

func pullAgentKilled(t *testing.T, s pullSite) {
	ns := namespace(t)
	apply(t, ns, deployment("stays", 1), deployment("goes", 1), policyFor("all", "{apiVersion: apps/v1, kind: Deployment}", to("member2")))
	eventually(t, all(
		is("member2", ns, "deploy/stays", "{.status.readyReplicas}", "1"),
		is("member2", ns, "deploy/goes", "{.status.readyReplicas}", "1"),
	))
	before := uids(t, "member2", ns)

	s.killAgent(t)
	apply(t, ns, deployment("comes", 1), deployment("stays", 3))
	must(t, "delete", "deploy", "goes", "-n", ns, "--wait=false")
	eventually(t, explained(ns, "deployment/comes", "cluster member2", "agent")) // its log, or that it does not report
	if diff := cmp.Diff(before, uids(t, "member2", ns)); diff != "" {
		t.Errorf("without an agent the member changed (-before +now):\n%s", diff)
	}
	s.startAgent(t)
	eventually(t, all(
		is("member2", ns, "deploy/stays", "{.status.readyReplicas}", "3"),
		is("member2", ns, "deploy/comes", "{.status.readyReplicas}", "1"),
		absent("member2", ns, "deploy/goes"),
		is("", ns, "deploy/stays", "{.status.readyReplicas}", "3"),
	))
	if now := uids(t, "member2", ns); now["stays"] != before["stays"] {
		t.Error("a Deployment was made anew")
	}
}

// pullFailover evicts what is in the member of an agent that is dead. When it is back, it deletes that.
func pullFailover(t *testing.T, s pullSite) {
	ns := namespace(t)
	apply(t, ns, deployment("web", 1), policy("web", aggregated("member2")))
	eventually(t, is("member2", ns, "deploy/web", "{.status.readyReplicas}", "1"))
	s.killAgent(t)
	apply(t, ns, policy("web", aggregated("member1", "member2")))
	taint(t, "member2", "e2e-agent:NoExecute")
	eventually(t, all(
		targets(ns, "web-deployment", "member1"),
		is("member1", ns, "deploy/web", "{.status.readyReplicas}", "1"),
		evictedFrom(ns, "web-deployment", ""),
	))
	if err := is("member2", ns, "deploy/web", "{.status.readyReplicas}", "1")(); err != nil {
		t.Error(err) // no agent deletes it
	}
	s.startAgent(t)
	eventually(t, all(absent("member2", ns, "deploy/web"), shows(row{"NAME": "member2", "READY": "True"}, "get", "clusters")))
	if err := all(targets(ns, "web-deployment", "member1"), is("", ns, "rb/web-deployment", "{.status.aggregatedStatus[*].clusterName}", "member1"))(); err != nil {
		t.Error(err)
	}
}

// cutTime is how long the network is cut. E2E_CUT makes it longer, such as 2m.
func cutTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("E2E_CUT")
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("E2E_CUT: %v", err)
	}
	return d
}

func pullNetworkCut(t *testing.T, s pullSite) {
	long := cutTime(t)
	n := s.network(t)
	ns := namespace(t)
	apply(t, ns, deployment("stays", 1), deployment("goes", 1), deployment("moves", 1),
		policy("stays", to("member2")), policy("goes", to("member2")), policy("moves", to("member2")), policy("comes", to("member2")))
	eventually(t, all(
		is("member2", ns, "deploy/stays", "{.status.readyReplicas}", "1"),
		is("member2", ns, "deploy/goes", "{.status.readyReplicas}", "1"),
		is("member2", ns, "deploy/moves", "{.status.readyReplicas}", "1"),
	))
	before := uids(t, "member2", ns)

	n.set(t, true)
	until := time.Now().Add(long)
	apply(t, ns, deployment("stays", 2), deployment("comes", 1), policy("moves", to("member1")))
	must(t, "delete", "deploy", "goes", "-n", ns, "--wait=false")
	eventually(t, is("member1", ns, "deploy/moves", "{.status.readyReplicas}", "1"))
	if diff := cmp.Diff(before, uids(t, "member2", ns)); diff != "" {
		t.Errorf("while it was cut off the member changed (-before +now):\n%s", diff)
	}
	// What the agent knows it goes on to keep.
	mustWith(t, "", member("member2", "delete", "deploy", "stays", "-n", ns)...)
	eventually(t, is("member2", ns, "deploy/stays", "{.status.readyReplicas}", "1"))
	time.Sleep(time.Until(until))

	n.set(t, false)
	healed := time.Now()
	eventually(t, all(
		is("member2", ns, "deploy/stays", "{.status.readyReplicas}", "2"),
		is("member2", ns, "deploy/comes", "{.status.readyReplicas}", "1"),
		absent("member2", ns, "deploy/goes"), absent("member2", ns, "deploy/moves"),
		is("", ns, "deploy/stays", "{.status.readyReplicas}", "2"),
		is("", "default", cluster2, condition("Ready", "status"), "True"),
	))
	t.Logf("caught up %s after a cut of %s", time.Since(healed).Round(100*time.Millisecond), long)
}

func pullRotation(t *testing.T, s pullSite) {
	const life = 40 * time.Second
	// The agent gets a certificate that ends soon.
	leaf, err := pki.NewLeaf(pki.LeafConfig{
		CommonName: "system:karmada:agent:member2", Organization: []string{"system:karmada:agents"},
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Validity: life,
	}, s.authority(t), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config := s.agentConfig(t)
	for _, user := range config.AuthInfos {
		user.ClientCertificateData = leaf.CertPEM()
		if user.ClientKeyData, err = leaf.KeyPEM(); err != nil {
			t.Fatal(err)
		}
	}
	s.runAgent(t, config, "--cert-rotation-checking-interval=1s", "--cert-rotation-remaining-time-threshold=0.5")

	within(t, life+under.timeout(), func() error {
		for _, user := range s.agentConfig(t).AuthInfos {
			cert, err := pki.ParseCert(user.ClientCertificateData)
			if err != nil {
				return err
			}
			if !cert.NotAfter.After(leaf.Cert.NotAfter) {
				return fmt.Errorf("the certificate still ends at %s", cert.NotAfter)
			}
		}
		return nil
	})
	time.Sleep(time.Until(leaf.Cert.NotAfter.Add(2 * time.Second)))
	// The first one is of no use any longer, and the agent goes on.
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member2")))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "1"))
}

func pullRestored(t *testing.T, s pullSite) {
	ns := namespace(t)
	apply(t, ns, deployment("old", 1), policyFor("all", "{apiVersion: apps/v1, kind: Deployment}", to("member2")))
	eventually(t, is("", ns, "deploy/old", "{.status.readyReplicas}", "1"))
	s.backup(t)

	apply(t, ns, deployment("old", 3), deployment("new", 1), deployment("newer", 1))
	eventually(t, all(
		is("", ns, "deploy/old", "{.status.readyReplicas}", "3"),
		is("", ns, "deploy/new", "{.status.readyReplicas}", "1"),
		is("", ns, "deploy/newer", "{.status.readyReplicas}", "1"),
	))
	before := uids(t, "member2", ns)

	// The agent knows of nothing.
	s.restore(t)
	eventually(t, all(
		is("", "default", cluster2, condition("OrphanedObjects", "status"), "True"),
		is("member2", ns, "deploy/old", "{.spec.replicas}", "1"), // what the control plane has, counts
	))
	kept := func() {
		t.Helper()
		if diff := cmp.Diff(before, uids(t, "member2", ns)); diff != "" {
			t.Fatalf("the member lost objects with the control plane's memory (-before +now):\n%s", diff)
		}
	}
	kept()
	// Nor does an agent that starts anew take them for surplus.
	s.killAgent(t)
	s.startAgent(t)
	eventually(t, is("", ns, "deploy/old", "{.status.readyReplicas}", "1"))
	eventually(t, is("", "default", cluster2, condition("OrphanedObjects", "status"), "True"))
	kept()

	text, err := value("", "default", cluster2, condition("OrphanedObjects", "message"))
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`delete-orphans=([0-9a-f]+)`).FindStringSubmatch(text)
	if token == nil || !strings.Contains(text, "Deployment "+ns+"/new") {
		t.Fatalf("the condition does not say what is there and what to do: %q", text)
	}
	// The agent does not delete with another token: a change after it arrives, and all are still there.
	must(t, "annotate", "cluster", "member2", "cluster.karmada.io/delete-orphans=0", "--overwrite")
	apply(t, ns, deployment("old", 2))
	eventually(t, is("", ns, "deploy/old", "{.status.readyReplicas}", "2"))
	kept()
	must(t, "annotate", "cluster", "member2", "cluster.karmada.io/delete-orphans="+token[1], "--overwrite")
	eventually(t, all(
		absent("member2", ns, "deploy/new"), absent("member2", ns, "deploy/newer"),
		is("", "default", cluster2, condition("OrphanedObjects", "status"), "False"),
		is("member2", ns, "deploy/old", "{.status.readyReplicas}", "2"),
	))
}

// uids returns the UIDs of the Deployments of a namespace in a member, by name.
func uids(t *testing.T, cluster, ns string) map[string]string {
	t.Helper()
	out, err := value(cluster, ns, "deploy", `{range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		if name, uid, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[name] = uid
		}
	}
	return all
}

// readAuthority reads the certificate authority of a control plane from its files.
func readAuthority(t *testing.T, dir string) pki.Pair {
	t.Helper()
	crt, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := pki.ParsePair(crt, key)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}
