package contract

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/karmada-toolkit/karmada/"

// forServers are packages, each with those below it, that only servers need: they would make the command line larger by
// megabytes.
var forServers = []string{
	"github.com/google/cel-go", "github.com/prometheus", "go.etcd.io", "go.opentelemetry.io", "go.uber.org/zap",
	"google.golang.org/grpc/health", "google.golang.org/grpc/reflection", "google.golang.org/grpc/xds",
	"k8s.io/apiserver", "k8s.io/client-go/informers", "k8s.io/kubernetes", "net/http/pprof",
	"k8s.io/component-base/featuregate", "k8s.io/component-base/logs", "k8s.io/component-base/metrics", "k8s.io/component-base/tracing",
	"sigs.k8s.io/controller-runtime/pkg/cache", "sigs.k8s.io/controller-runtime/pkg/manager",
	"sigs.k8s.io/controller-runtime/pkg/metrics", "sigs.k8s.io/controller-runtime/pkg/webhook",
	module + "pkg/controlplane/controllermanager", module + "pkg/controlplane/controllers", module + "pkg/controlplane/aggregated",
}

// callsEstimators are the packages of the command line that may import gRPC.
var callsEstimators = []string{module + "pkg/controlplane/estimator/client", module + "pkg/controlplane/estimator/pb"}

func TestCommandLine_LinksNoServer(t *testing.T) {
	imports := importsOf(t, "../../cmd/karmadactl")
	const advice = "\nMove what the command line needs into a package that does not import it. If there is no other way, change the list in " +
		"this test, and the size of the command line in docs/benchmarks.md."
	for pkg, path := range shortestPaths(imports, module+"cmd/karmadactl") {
		by := path[max(0, len(path)-2)]
		for _, server := range forServers {
			if within(pkg, server) && !within(by, server) {
				t.Errorf("karmadactl links %s, which only servers need: %s%s", pkg, strings.Join(path, " imports "), advice)
			}
		}
		if strings.HasPrefix(pkg, module) && slices.Contains(imports[pkg], "google.golang.org/grpc") && !slices.Contains(callsEstimators, pkg) {
			t.Errorf("%s imports google.golang.org/grpc, which only %s may: %s%s",
				pkg, strings.Join(callsEstimators, " and "), strings.Join(path, " imports "), advice)
		}
	}
}

// within reports whether a package is another one, or below it.
func within(pkg, parent string) bool { return pkg == parent || strings.HasPrefix(pkg, parent+"/") }

// importsOf returns what each package that a program links imports.
func importsOf(t *testing.T, program string) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir  string
			GoFiles, Imports []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return imports
		} else if err != nil {
			t.Fatal(err)
		}
		imports[p.ImportPath] = p.Imports
		if !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		// A cached result of this test depends on the files that it has read.
		for _, file := range p.GoFiles {
			if _, err := os.Stat(filepath.Join(p.Dir, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// shortestPaths returns a chain of imports from a package to each one that it links.
func shortestPaths(imports map[string][]string, from string) map[string][]string {
	paths := map[string][]string{from: {from}}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range imports[queue[0]] {
			if paths[next] == nil {
				paths[next] = append(slices.Clone(paths[queue[0]]), next)
				queue = append(queue, next)
			}
		}
	}
	return paths
}
