//go:build kind

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// trafficImage has the program of hack/traffic and nothing else.
	trafficImage = "karmada-e2e/traffic:test"
	// podNetwork configures the network of pods, before the node's own file in alphabetical order.
	podNetwork = "/etc/cni/net.d/05-e2e.conflist"
)

// connected are the members whose pods reach each other.
func connected() []string { return []string{"member1", "member2", "member3"} }

// podSubnet is the subnet of new pods in a member; kind gives the same one to every cluster.
func podSubnet(cluster string) string {
	return "10." + strconv.Itoa(200+slices.Index(connected(), cluster)) + ".0.0/24"
}

// connect adds member3, in Push mode, to the federation of the tests, and connects the networks of the members: pods
// that start from now on have addresses that do not overlap, and each node has routes to the pods of the others. The
// nodes have the image of hack/traffic.
func connect(t *testing.T) {
	t.Helper()
	if err := started(); err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	s.clusters(t, kindCluster{kindName("member3"), "10.244.0.0/16", "10.96.0.0/16", false})
	t.Cleanup(func() { must(t, "unjoin", "member3", "--force", "--wait=10s") })
	must(t, "join", "member3", "--cluster-kubeconfig", filepath.Join(s.home, ".kube", "config"), "--cluster-context", "kind-"+kindName("member3"))
	eventually(t, shows(row{"NAME": "member3", "READY": "True"}, "get", "clusters"))
	importTraffic(t)
	addresses := map[string]string{}
	for _, member := range connected() {
		s.does(t, "kind load docker-image "+trafficImage+" --name "+kindName(member))
		addresses[member] = docker(t, "inspect", "-f", "{{.NetworkSettings.Networks.kind.IPAddress}}", node(member))
	}
	for _, member := range connected() {
		docker(t, "exec", node(member), "sh", "-c",
			// A bridge has one subnet, and running pods keep theirs.
			`sed -E 's#"subnet": ?"[^"]*"#"subnet":"`+podSubnet(member)+`"#; s#"bridge": ?"[^"]*"#"bridge":"e2e0"#' $(ls /etc/cni/net.d/1*.conflist) > `+podNetwork)
		t.Cleanup(func() { _ = exec.Command("docker", "exec", node(member), "rm", podNetwork).Run() })
		for _, other := range connected() {
			if other != member {
				docker(t, "exec", node(member), "ip", "route", "replace", podSubnet(other), "via", addresses[other])
			}
		}
	}
}

// kindName is the name of the kind cluster of a member.
func kindName(member string) string { return strings.TrimSuffix(node(member), "-control-plane") }

// importTraffic builds the image of hack/traffic.
func importTraffic(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "../../hack/traffic")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building hack/traffic: %v\n%s", err, out)
	}
	if out, err := exec.Command("tar", "-C", dir, "-cf", dir+".tar", "traffic").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = os.Remove(dir + ".tar") })
	docker(t, "import", "--change", `ENTRYPOINT ["/traffic"]`, dir+".tar", trafficImage)
}

// traffic is a Deployment of the image of hack/traffic.
func traffic(name, app string, args ...string) string {
	return strings.NewReplacer(
		"app: "+name+"}", "app: "+app+"}", "image: "+image, `image: `+trafficImage+`
        args: ["`+strings.Join(args, `", "`)+`"]
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]`,
	).Replace(deployment(name, 1))
}

// server is a Deployment whose pods answer the name of their node.
func server(name string) string {
	return strings.Replace(traffic(name, "web", "serve", "$(NODE)"), "resources:", "readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1}\n        resources:", 1)
}

// caller is a Deployment whose pod requests a URL all the time.
func caller(name, url string) string { return traffic(name, name, "call", url) }

// request is one request of a caller: when it began, and which member answered or why it failed.
type request struct {
	at           time.Time
	member, fail string
}

// requests returns the requests that a caller in a member made, in the order of their ends.
func requests(member, ns, name string) ([]request, error) {
	out, err := exec.Command("docker", "exec", node(member), "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "logs", "-n", ns, "deploy/"+name).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the log of %s in %s: %w: %s", name, member, err, out)
	}
	var all []request
	for line := range strings.Lines(string(out)) {
		when, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		result, text, _ := strings.Cut(rest, " ")
		at, err := time.Parse(time.RFC3339Nano, when)
		if err != nil {
			return nil, err
		}
		r := request{at: at}
		if result == "ok" {
			r.member = strings.TrimSuffix(strings.TrimPrefix(text, "karmada-"+federationName+"-"), "-control-plane")
		} else {
			r.fail = text
		}
		all = append(all, r)
	}
	return all, nil
}

// recent is the number of requests, those of two seconds, that show who answers.
const recent = 40

// answered expects that the last requests of a caller did not fail, and that these members answered them.
func answered(member, ns, name string, want ...string) func() error {
	return func() error {
		all, err := requests(member, ns, name)
		if err != nil {
			return err
		}
		if len(all) < recent {
			return errors.New("there are only few requests yet")
		}
		from := map[string]int{}
		for _, r := range all[len(all)-recent:] {
			if r.fail != "" {
				return errors.New(r.fail)
			}
			from[r.member]++
		}
		if got := slices.Sorted(maps.Keys(from)); !slices.Equal(got, want) {
			return fmt.Errorf("%v answer %s in %s, not %v", from, name, member, want)
		}
		return nil
	}
}

// interruption logs which requests of a caller failed since a time, and returns how long requests failed.
func interruption(t *testing.T, member, ns, name string, since time.Time) time.Duration {
	t.Helper()
	all, err := requests(member, ns, name)
	if err != nil {
		t.Fatal(err)
	}
	var first, last time.Time
	failures := map[string]int{}
	for _, r := range all {
		if r.fail == "" || r.at.Before(since) {
			continue
		}
		if failures[r.fail]++; first.IsZero() || r.at.Before(first) {
			first = r.at
		}
		if r.at.After(last) {
			last = r.at
		}
	}
	if first.IsZero() {
		t.Log("no request failed")
		return 0
	}
	t.Logf("requests failed from %s to %s after it: %v", first.Sub(since), last.Sub(since), failures)
	return last.Sub(first)
}

// withFlags runs a Deployment of Karmada in a cluster with more flags, until the test ends.
func withFlags(t *testing.T, cluster, deployment string, flags ...string) {
	t.Helper()
	const path = "/spec/template/spec/containers/0/command"
	in := func(args ...string) string {
		return docker(t, append([]string{"exec", node(cluster), "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "-n", system}, args...)...)
	}
	set := func(command string) {
		in("patch", "deployment", deployment, "--type=json", "-p", `[{"op":"replace","path":"`+path+`","value":`+command+`}]`)
		in("rollout", "status", "deployment", deployment, "--timeout="+under.timeout().String())
	}
	before := in("get", "deployment", deployment, "-o", "jsonpath={.spec.template.spec.containers[0].command}")
	t.Cleanup(func() { set(before) })
	set(strings.TrimSuffix(before, "]") + `,"` + strings.Join(flags, `","`) + `"]`)
}
