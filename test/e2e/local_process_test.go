//go:build !kind

package e2e

import (
	"strings"
	"testing"
)

// TestLocal_StopsAndStartsAMember stops one member with its estimator and agent, and starts it again; the control plane
// and the other member keep running.
func TestLocal_StopsAndStartsAMember(t *testing.T) {
	ns := namespace(t)
	local := func(args ...string) result {
		return ctl("", append(append([]string{"local"}, args...), "--name", federationName, "--dir", stateDir)...)
	}
	t.Cleanup(func() { up(t) })
	if r := local("stop", "member2"); r.code != 0 || !strings.Contains(r.out, "member2 of federation") {
		t.Fatalf("stop: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	list := local("logs").out
	for _, r := range table(list) {
		if (r["STATE"] == "stopped") != strings.HasPrefix(r["NAME"], "member2") {
			t.Errorf("%s is %s:\n%s", r["NAME"], r["STATE"], list)
		}
	}
	if r := local("status"); r.code != 1 || !strings.Contains(r.err, "local up") {
		t.Errorf("status: exit code %d, %s", r.code, r.err)
	}
	apply(t, ns, deployment("nginx", 2), policy("nginx", to("member1", "member2")))
	eventually(t, is("member1", ns, "deploy/nginx", "{.spec.replicas}", "2"))
	if r := local("start", "member2"); r.code != 0 || !strings.Contains(r.err, "Ready") {
		t.Fatalf("start: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := local("status"); r.code != 0 {
		t.Errorf("status: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	eventually(t, is("member2", ns, "deploy/nginx", "{.status.readyReplicas}", "2"))
	if r := local("logs", "member2", "--tail", "1"); r.code != 0 || strings.Count(r.out, "\n") != 1 {
		t.Errorf("logs: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
