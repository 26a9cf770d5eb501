package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestClaims_LosingPolicyGetsAnEvent shows what a user sees whose policy has no effect,
// because another one holds the object.
func TestClaims_LosingPolicyGetsAnEvent(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 1), policy("nginx", to("member1")))
	eventually(t, is("", ns, "deploy/nginx", "{.status.readyReplicas}", "1"))
	holder := fmt.Sprintf("is claimed by PropagationPolicy %q", ns+"/nginx")

	r := ctl(deployment("nginx", 1), "apply", "-n", ns, "-C", "member2", "-f", "-")
	if r.code != 0 || !strings.Contains(r.err, holder) {
		t.Errorf("apply -C: exit code %d, no warning that it %s\n%s%s", r.code, holder, r.out, r.err)
	}
	r = ctl(strings.Replace(policy("second", to("member2")), "name: second", "name: second", 1), "apply", "-n", ns, "-f", "-")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	eventually(t, func() error {
		out := ctl("", "get", "events", "-n", ns, "-o", `jsonpath={range .items[?(@.reason=="ClaimedByOtherPolicy")]}{.involvedObject.kind} {.message}{"\n"}{end}`).out
		if !strings.Contains(out, "PropagationPolicy") || !strings.Contains(out, holder) {
			return fmt.Errorf("no event on the losing policy: %q", out)
		}
		return nil
	})

	r = ctl(policyFor("kind", "{apiVersion: example.io/v1, kind: Missing}", to("member1")), "apply", "-n", ns, "-f", "-")
	if r.code != 0 || !strings.Contains(r.err, `no API serves kind "Missing" of "example.io/v1"`) {
		t.Errorf("a kind that no API serves: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
