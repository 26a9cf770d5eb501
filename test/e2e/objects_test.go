package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuestbook_CustomResourcesAndOverrides applies samples/guestbook in the order of its README.
func TestGuestbook_CustomResourcesAndOverrides(t *testing.T) {
	ns := namespace(t)
	sample := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "samples", "guestbook", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	apply(t, ns, sample("guestbooks-crd.yaml"), sample("guestbooks-clusterpropagationpolicy.yaml"))
	t.Cleanup(func() {
		ctl("", "delete", "crd", "guestbooks.webapp.my.domain", "--ignore-not-found")
		ctl("", "delete", "cpp", "example-policy", "--ignore-not-found")
	})
	eventually(t, is("member1", "default", "crd/guestbooks.webapp.my.domain", `{.status.conditions[?(@.type=="Established")].status}`, "True"))

	eventually(t, func() error {
		r := ctl(sample("guestbook.yaml")+"---\n"+sample("guestbooks-propagationpolicy.yaml"), "apply", "-n", ns, "-f", "-")
		if r.code != 0 {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		return nil
	})
	eventually(t, is("member1", ns, "guestbooks/guestbook-sample", "{.spec.size}", "2"))

	apply(t, ns, sample("guestbooks-overridepolicy.yaml"))
	eventually(t, all(
		is("member1", ns, "guestbooks/guestbook-sample", "{.spec.size}", "4"),
		is("member1", ns, "guestbooks/guestbook-sample", "{.metadata.annotations.OverridePolicy}", "test"),
		is("", ns, "guestbooks/guestbook-sample", "{.spec.size}", "2"),
	))
	if out := must(t, "get", "guestbooks", "guestbook-sample", "-n", ns, "-s", "members", "-C", "member1", "-o", "yaml"); !strings.Contains(out, "size: 4") {
		t.Errorf("the last command of the README prints\n%s", out)
	}
}
