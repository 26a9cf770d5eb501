//go:build !kind

package e2e

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// A member that hangs, as its connections do, delays no other one. When it goes on, it gets what it missed, and nothing was made
// anew: after a short time, and after one that is long enough for it not to be Ready.
func TestMember_PausedMissesNothing(t *testing.T) {
	ns := namespace(t)
	config := func(version string) string {
		return strings.Replace(configMapNamed("paused"), "a: b", "version: "+version, 1)
	}
	apply(t, ns, config("one"), policyFor("all", "{apiVersion: v1, kind: ConfigMap, name: paused}", to("member1", "member2")+`
clusterTolerations: [{operator: Exists}]`))
	has := func(cluster, version string) func() error {
		return is(cluster, ns, "cm/paused", "{.data.version}", version)
	}
	eventually(t, all(has("member1", "one"), has("member2", "one")))
	uid, err := value("member2", ns, "cm/paused", "{.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	p := processes{}
	t.Cleanup(func() { p.signal(t, "member2", syscall.SIGCONT) })
	readyIs := func(want string) func() error {
		return is("", ns, "cluster/member2", `{.status.conditions[?(@.type=="Ready")].status}`, want)
	}
	notReady := func() error {
		if readyIs("True")() == nil {
			return errors.New("member2 is Ready")
		}
		return nil
	}
	for version, paused := range map[string]func() error{"short": has("member1", "short"), "long": notReady} {
		p.signal(t, "member2", syscall.SIGSTOP)
		apply(t, ns, config(version))
		eventually(t, has("member1", version))
		eventually(t, paused)
		p.signal(t, "member2", syscall.SIGCONT)
		eventually(t, all(readyIs("True"), has("member2", version), is("member2", ns, "cm/paused", "{.metadata.uid}", uid)))
	}
}
