package contract

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// wholePrograms are rules of depguard for more than one row of the tree.
var wholePrograms = []string{"everywhere", "servers", "tests", "command line"}

// notInTree are the directories that docs/architecture.md names below the tree.
var notInTree = []string{"pkg/generated", "hack", "test"}

// row is a line of the tree.
type row struct {
	path  string
	rule  bool // it says what may be imported
	match *regexp.Regexp
}

// TestArchitecture_EveryRowHasItsRule compares the tree in docs/architecture.md with the rules of depguard.
func TestArchitecture_EveryRowHasItsRule(t *testing.T) {
	rules := rules(t)
	var named []string
	for _, row := range tree(t) {
		if !row.rule {
			continue
		}
		named = append(named, row.path)
		if !slices.Contains(rules, row.path) {
			t.Errorf("%s has a row with -> in docs/architecture.md and no rule in .golangci.yml", row.path)
		}
	}
	for _, rule := range rules {
		if !slices.Contains(named, rule) && !slices.Contains(wholePrograms, rule) {
			t.Errorf("%s has a rule in .golangci.yml and no row with -> in docs/architecture.md", rule)
		}
	}
}

// TestArchitecture_EveryPackageHasARow compares the tree with the directories that contain Go files.
func TestArchitecture_EveryPackageHasARow(t *testing.T) {
	rows := tree(t)
	used := map[string]bool{}
	for _, dir := range packages(t) {
		found := false
		for _, row := range rows {
			if row.match.MatchString(dir) {
				found, used[row.path] = true, true
			}
		}
		if !found && !slices.ContainsFunc(notInTree, func(p string) bool { return dir == p || strings.HasPrefix(dir, p+"/") }) {
			t.Errorf("package %s has no row in docs/architecture.md", dir)
		}
	}
	for _, row := range rows {
		if !used[row.path] {
			t.Errorf("docs/architecture.md has a row for %s, and no package matches it", row.path)
		}
	}
}

// packages returns the directories of this module that contain Go files, without those of test data.
func packages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, file := range goFiles(t) {
		dirs = append(dirs, file.dir())
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// tree returns the rows of docs/architecture.md, their paths without the slash at the end.
func tree(t *testing.T) []row {
	t.Helper()
	data, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## The tree\n")
	_, block, _ := strings.Cut(section, "\n```\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	var out []row
	for line := range strings.Lines(block) {
		path, text, _ := strings.Cut(line, " ")
		path = strings.TrimSuffix(path, "/")
		pattern := strings.NewReplacer("/**", "(/.*)?", ".", `\.`, "*", "[^/]+", "{", "(", "}", ")", ",", "|").Replace(path)
		out = append(out, row{path: path, rule: strings.Contains(text, "->"), match: regexp.MustCompile("^" + pattern + "$")})
	}
	if len(out) < 30 {
		t.Fatalf("the tree has %d rows", len(out))
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
