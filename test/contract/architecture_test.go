package contract

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// wholePrograms are rules of depguard for more than one row of the tree.
var wholePrograms = []string{"everywhere", "servers", "command line"}

// TestArchitecture_EveryRowHasItsRule compares the tree in docs/architecture.md with the directories and
// with the rules of depguard.
func TestArchitecture_EveryRowHasItsRule(t *testing.T) {
	rows := tree(t)
	if len(rows) < 50 {
		t.Fatalf("the tree has %d rows", len(rows))
	}
	rules := rules(t)
	for _, row := range rows {
		if found, err := filepath.Glob(filepath.Join("../..", row)); err != nil || len(found) == 0 {
			t.Errorf("docs/architecture.md has a row for %s, which does not exist", row)
		}
		if !slices.Contains(rules, row) {
			t.Errorf("%s has a row in docs/architecture.md and no rule in .golangci.yml", row)
		}
	}
	for _, rule := range rules {
		if !slices.Contains(rows, rule) && !slices.Contains(wholePrograms, rule) {
			t.Errorf("%s has a rule in .golangci.yml and no row in docs/architecture.md", rule)
		}
	}
}

// tree returns the paths of docs/architecture.md, without the slash at the end.
func tree(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## The tree\n")
	_, block, _ := strings.Cut(section, "\n```\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	var out []string
	for line := range strings.Lines(block) {
		path, _, _ := strings.Cut(line, " ")
		out = append(out, strings.TrimSuffix(path, "/"))
	}
	return out
}

// rules returns the names of depguard's rules.
func rules(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]any
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(config.Linters.Settings.Depguard.Rules))
}
