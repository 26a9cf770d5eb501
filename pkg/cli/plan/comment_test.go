package plan

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestComment_Script runs samples/ci/plan.sh with a program that prints a plan.
func TestComment_Script(t *testing.T) {
	const program = "#!/bin/sh\nprintf '%s ' \"$@\" >&2\ncat \"$PRINTED\"\nexit \"$CODE\"\n"
	const summary = "Plan: 1 object changes in 1 cluster: 1 create, 0 update, 0 delete."
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "karmadactl"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		printed string
		code    int
		want    string
	}{
		"changes": {
			printed: "ConfigMap ns/a\n```\n  m1  created\n\n" + summary + "\n", code: 2,
			want: "<!-- karmadactl plan -->\n### " + summary + "\n\n    ConfigMap ns/a\n    ```\n      m1  created\n    \n",
		},
		"no changes": {printed: "No changes.\n", want: "<!-- karmadactl plan -->\n### No changes.\n\n"},
		"an error":   {code: 1},
		"more than a comment has": {
			printed: strings.Repeat(strings.Repeat("ä", 48)+"\n", 10_000) + summary + "\n", code: 2,
			want: "<!-- karmadactl plan -->\n### " + summary + "\n\n" + strings.Repeat("    "+strings.Repeat("ä", 48)+"\n", 594) +
				"\n9406 more lines are left out. See them with `karmadactl plan`.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, printed := filepath.Join(t.TempDir(), "plan.md"), filepath.Join(t.TempDir(), "printed")
			if err := os.WriteFile(printed, []byte(tc.printed), 0o600); err != nil {
				t.Fatal(err)
			}
			script := exec.Command("../../../samples/ci/plan.sh", file, "-f", "a b", "-k", "c")
			script.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PRINTED="+printed, "CODE="+strconv.Itoa(tc.code))
			out, err := script.CombinedOutput()
			if failed := tc.code == 1; failed != (err != nil) || string(out) != "plan -f a b -k c " {
				t.Errorf("%v: %s", err, out)
			}
			got, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got %d bytes, want %d:\n%.500s", len(got), len(tc.want), got)
			}
		})
	}
}
