//go:build !kind

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs are documents whose commands are run in order, in a federation of its own, as a user does who follows them.
var docs = []string{"README.md", "docs/search.md", "docs/estimators.md", "docs/autoscaling.md"}

// notRun are the commands in them that need more than a machine without clusters, by how they begin, with what they need or
// what runs them.
var notRun = map[string]string{
	"make ":                               "this is run by it",
	"tar -xzf karmadactl":                 "a release; test/release",
	"kubectl ":                            "kubectl; kind_tour_test.go",
	"go get ":                             "a release",
	"helm ":                               "a host cluster; kind_chart_test.go",
	"karmadactl init ":                    "a host cluster; kind_install_test.go",
	"karmadactl --kubeconfig ~/.karmada/": "a host cluster; kind_install_test.go",
	"karmadactl deinit":                   "a host cluster; kind_install_test.go",
	"karmadactl addons ":                  "a host cluster; kind_addons_test.go",
	"karmadactl local up --runtime kind":  "Docker; runtime_kind_test.go",
	"karmadactl join ":                    "another cluster; join_test.go",
	"karmadactl register ":                "another cluster; register_test.go",
	"karmadactl plan ":                    "an exit code of 2; apply_plan_test.go",
	"karmadactl promote ":                 "a workload in a member; promote_test.go",
	"karmadactl get pods -A -w --cached":  "does not end; search_test.go",
	"karmadactl capacity --for deployment/nginx --estimators --host-kubeconfig": "a host cluster; kind_capacity_test.go",
}

// TestDocs_CommandsRun runs the commands of documents as they are printed there. Every command succeeds.
func TestDocs_CommandsRun(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "samples"), os.DirFS("../../samples")); err != nil {
		t.Fatal(err)
	}
	environment := append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBECONFIG=") }),
		"PATH="+bin+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+state, "EDITOR=true")
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(bin, "karmadactl"), "local", "down", "--purge")
		down.Env = environment
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("local down: %v\n%s", err, out)
		}
	})
	used := map[string]bool{}
	script := "set -euo pipefail\n"
	for _, doc := range docs {
		text, err := os.ReadFile(filepath.Join("..", "..", doc))
		if err != nil {
			t.Fatal(err)
		}
		script += "cd " + dir + "\n"
		for _, command := range documentedCommands(string(text)) {
			if excused := excuse(command); excused != "" {
				used[excused] = true
				continue
			}
			script += fmt.Sprintf("printf '%%s\\n' %q\n%s\n", doc+": "+strings.ReplaceAll(command, "$", "_"), command)
		}
	}
	for prefix := range notRun {
		if !used[prefix] {
			t.Errorf("no command begins with %q: remove it from the list", prefix)
		}
	}
	run := exec.Command("bash", "-c", script)
	run.Env, run.Dir = environment, dir
	out, err := run.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// excuse returns why a command is not run, as the prefix that names it.
func excuse(command string) string {
	for prefix := range notRun {
		if strings.HasPrefix(command, prefix) {
			return prefix
		}
	}
	return ""
}

// prompted is a command after a prompt, with the lines that it continues on or reads.
var prompted = regexp.MustCompile(`(?m)^\$ ((?:.*\\\n)*.*<<(END)\n(?:.*\n)*?END$|(?:.*\\\n)*.*)`)

// documentedCommands returns the commands after a prompt in the blocks of a document.
func documentedCommands(text string) []string {
	var out []string
	for i, block := range strings.Split(text, "\n```") {
		if i%2 == 0 {
			continue
		}
		for _, found := range prompted.FindAllStringSubmatch(block, -1) {
			out = append(out, found[1])
		}
	}
	return out
}
