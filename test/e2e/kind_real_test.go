//go:build kind

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// c
func TestReal_PodsHaveRestartsAndAges(t *testing.T) {
	ns := namespace(t)
	version, err := value("", "", "cluster/member1", "{.status.kubernetesVersion}")
	if err != nil {
		t.Fatal(err)
	}
	ending := strings.Replace(deployment("ending", 1), "image: "+image, `image: registry.k8s.io/kube-proxy:`+version+`
        command: [kube-proxy, --version]`, 1)
	apply(t, ns, ending, policy("ending", to("member1")))
	apply(t, ns, deployment("web", 1), policy("web", to("member1")))
	age := regexp.MustCompile(`^\d+[smh]`)
	pod := func(prefix string, check func(row) error) func() error {
		return func() error {
			r := ctl("", "get", "pods", "-n", ns)
			for _, got := range table(r.out) {
				if strings.HasPrefix(got["NAME"], prefix) && got["CLUSTER"] == "member1" {
					if !age.MatchString(got["AGE"]) {
						return fmt.Errorf("the age of %v", got)
					}
					return check(got)
				}
			}
			return fmt.Errorf("no pod %s in\n%s%s", prefix, r.out, r.err)
		}
	}
	eventually(t, pod("web-", func(r row) error {
		if r["READY"] != "1/1" || r["STATUS"] != "Running" || r["RESTARTS"] != "0" {
			return fmt.Errorf("%v", r)
		}
		return nil
	}))
	eventually(t, pod("ending-", func(r row) error {
		if !regexp.MustCompile(`^[1-9]\d* \(`).MatchString(r["RESTARTS"]) {
			return fmt.Errorf("%v", r)
		}
		return nil
	}))
}

// d
func TestReal_HostRestarts(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("web", 1), policy("web", to("member1", "member2")))
	eventually(t, is("", ns, "deploy/web", "{.status.readyReplicas}", "2"))
	docker(t, "restart", node("host"))
	up(t)
	for _, member := range []string{"member1", "member2"} {
		eventually(t, shows(row{"NAME": member, "READY": "True"}, "get", "clusters"))
	}
	// What was there is there, and what is new gets around.
	if err := is("", ns, "deploy/web", "{.status.readyReplicas}", "2")(); err != nil {
		t.Error(err)
	}
	must(t, "patch", "deploy", "web", "-n", ns, "-p", `{"spec":{"replicas":2}}`)
	eventually(t, is("member1", ns, "deploy/web", "{.status.readyReplicas}", "2"))
	eventually(t, is("", ns, "deploy/web", "{.status.readyReplicas}", "4"))
}
