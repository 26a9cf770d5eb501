package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestApply_Plan applies what was planned only after confirmation.
func TestApply_Plan(t *testing.T) {
	ns := namespace(t)
	line := []string{"apply", "--plan", "--yes", "-n", ns, "-C", "member1", "-f", "-"}
	const planned = "  member1  0 -> 2   created\n"

	file := t.TempDir() + "/web.yaml"
	if err := os.WriteFile(file, []byte(deployment("web", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{"": "use --yes", "n\n": "Nothing was applied."} {
		r := ctl(answer, "apply", "--plan", "-n", ns, "-C", "member1", "-f", file)
		if !strings.Contains(r.out, planned) || !strings.Contains(r.out+r.err, want) {
			t.Errorf("the answer %q: exit code %d\n%s%s", answer, r.code, r.out, r.err)
		}
	}
	if r := ctl("", "get", "deployment", "web", "-n", ns, "-s", "karmada"); r.code == 0 {
		t.Errorf("it was applied without confirmation:\n%s", r.out)
	}

	if out := mustWith(t, deployment("web", 2), line...); !strings.Contains(out, planned) || !strings.Contains(out, "deployment.apps/web created") {
		t.Errorf("got\n%s", out)
	}
	eventually(t, is("member1", ns, "deploy/web", "{.status.readyReplicas}", "2"))
	if out := mustWith(t, deployment("web", 2), line...); !strings.Contains(out, "No changes") {
		t.Errorf("applied again:\n%s", out)
	}
}
