package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRace_EveryPackageWithSharedStateIsListed compares race.yaml with the packages of which a file shares state between goroutines.
func TestRace_EveryPackageWithSharedStateIsListed(t *testing.T) {
	data, err := os.ReadFile("race.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var lists struct {
		Race    []string            `json:"race"`
		Without map[string][]string `json:"without"`
	}
	if err := yaml.UnmarshalStrict(data, &lists); err != nil {
		t.Fatal(err)
	}
	listed := slices.Concat(append(slices.Collect(maps.Values(lists.Without)), lists.Race)...)
	slices.Sort(listed)
	sharing, tested := map[string]bool{}, map[string]bool{}
	for _, file := range goFiles(t) {
		if file.test() {
			tested[file.dir()] = tested[file.dir()] || builds(file.header())
			continue
		}
		if !file.generated() && shares(t, file.source) {
			sharing[file.dir()] = true
		}
	}
	for i, dir := range listed {
		if !sharing[dir] {
			t.Errorf("%s shares no state between goroutines, or does not exist: take it out of race.yaml", dir)
		}
		if i > 0 && listed[i-1] == dir {
			t.Errorf("%s is in race.yaml twice", dir)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(sharing)) {
		if !slices.Contains(listed, dir) {
			t.Errorf("%s shares state between goroutines: add it to race.yaml, to the packages that are tested with the race detector or to the others with the reason", dir)
		}
	}
	for _, dir := range lists.Race {
		if !tested[dir] {
			t.Errorf("%s has no tests that the race detector could run", dir)
		}
	}
	for _, source := range []string{"import \"sync\"", "import _ \"sync/atomic\"", "import \"golang.org/x/sync/errgroup\"", "func f() { go f() }"} {
		if !shares(t, "package a\n"+source) {
			t.Errorf("%s shares state", source)
		}
	}
	if shares(t, "package a\nimport \"fmt\"\nfunc f() { fmt.Println() }") {
		t.Error("a package that starts nothing shares state")
	}
}

// shares reports whether a file has a go statement, or imports what goroutines share state with.
func shares(t *testing.T, source string) (found bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, imported := range file.Imports {
		found = found || slices.Contains([]string{"sync", "sync/atomic", "golang.org/x/sync/errgroup"}, strings.Trim(imported.Path.Value, `"`))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		_, starts := n.(*ast.GoStmt)
		found = found || starts
		return !found
	})
	return found
}
