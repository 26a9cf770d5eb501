//go:build !kind

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// A member in Pull mode and one in Push mode work on while all certificates end and get successors, and while the authorities change.
func TestCerts_EndAndAreRenewed(t *testing.T) {
	ns := namespace(t)
	certs := func(args ...string) string {
		t.Helper()
		return must(t, append(append([]string{"certs"}, args...), "--local="+federationName, "--dir", stateDir)...)
	}
	works := func(replicas int) {
		t.Helper()
		// A webhook checks the policy. An API server that has just started may take longer than the command waits.
		within(t, time.Minute, func() error {
			r := ctl(deployment("web", replicas)+"\n---\n"+policy("web", to("member1", "member2")), "apply", "-n", ns, "-f", "-")
			if r.code != 0 {
				return fmt.Errorf("%s%s", r.out, r.err)
			}
			return nil
		})
		for _, m := range []string{"member1", "member2"} {
			within(t, time.Minute, is(m, ns, "deploy/web", "{.status.readyReplicas}", fmt.Sprint(replicas)))
		}
	}
	works(1)
	must(t, "create", "configmap", "written", "-n", ns)

	w := startWriter(t, kubeconfig, ns)
	certs("renew", "--cert-validity-period=24s")
	end := firstEnd(t, certs("check", "--within=1s", "-o", "json"))
	certs("renew", "--cert-validity-period=24s")
	certs("renew")
	within(t, time.Minute, func() error {
		if left := time.Until(end); left > 0 {
			return fmt.Errorf("the first of the certificates of before are valid for %s", left)
		}
		return nil
	})
	works(2)
	if failed, _ := w.stop(); len(failed) > 0 {
		t.Errorf("%d writes failed while certificates were renewed, the first: %v", len(failed), failed[0])
	}

	w = startWriter(t, kubeconfig, ns)
	out := certs("renew", "--ca")
	if !strings.Contains(out, "all certificates are of the new ones") || strings.Contains(out, "The agents of these clusters") {
		t.Errorf("the agent does not use the new authority:\n%s", out)
	}
	old, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	works(3)
	next, ok := strings.CutPrefix(lastLine(out), "Copies of kubeconfigs elsewhere work until the old ones are removed: replace them, then run karmadactl ")
	if !ok {
		t.Fatalf("no next step in\n%s", out)
	}
	must(t, strings.Fields(next)...)
	_, gap := w.stop()
	t.Logf("the longest time without a write, in which the API server restarted twice: %s", gap)
	works(1)
	if now, err := os.ReadFile(kubeconfig); err != nil || string(now) == string(old) {
		t.Errorf("the kubeconfig still has both authorities: %v", err)
	}
	if got := certs("check"); strings.Contains(got, "under way") || strings.Contains(got, "not read") {
		t.Errorf("after the end:\n%s", got)
	}
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// firstEnd returns when the first of the certificates of a report ends.
func firstEnd(t *testing.T, report string) time.Time {
	t.Helper()
	var r struct {
		Certificates []struct{ NotAfter time.Time }
	}
	if err := json.Unmarshal([]byte(report), &r); err != nil || len(r.Certificates) == 0 {
		t.Fatalf("%v in %s", err, report)
	}
	return r.Certificates[0].NotAfter
}
