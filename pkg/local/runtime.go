// Package local runs a whole federation on one machine: a control plane and its
// members as processes, without containers or root, or as kind clusters. Everything
// that a federation keeps is in one directory.
package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
	"github.com/karmada-toolkit/karmada/pkg/local/process"
)

// What the clusters of a federation are.
const (
	RuntimeProcess = federation.RuntimeProcess
	RuntimeKind    = federation.RuntimeKind
)

// DefaultName is the name of a federation that is given none.
const DefaultName = federation.DefaultName

// ErrNoFederation is returned for a federation that does not exist.
var ErrNoFederation = federation.ErrNotFound

type (
	// Deps are the dependencies of the commands on federations.
	Deps = federation.Deps
	// Federation is the record of a federation.
	Federation = federation.Federation
	// ProcessStatus is the state of one process or kind cluster of a federation.
	ProcessStatus = federation.Part
	// LogOptions are how much of a log is printed.
	LogOptions = federation.LogOptions
)

// NewDeps returns the dependencies of a program that writes the progress to out.
func NewDeps(program string, out io.Writer, now func() time.Time) Deps {
	executable, _ := os.Executable() // without it the servers are looked for elsewhere
	return Deps{
		Program: program, Version: version.Get().GitVersion, Executable: executable, Getenv: os.Getenv, Now: now,
		Progress: progress.NewPrinter(out, now, progress.Columns),
	}
}

// Runtime runs the clusters, the control plane and the agents of one federation.
type Runtime interface {
	lifecycle
	parts
}

// lifecycle starts and stops a federation.
type lifecycle interface {
	// Prepare checks what can be checked before anything is changed. It comes before
	// Start.
	Prepare(ctx context.Context) error
	// Start makes sure that a member, or the control plane, runs and is ready. It
	// returns the paths of the kubeconfigs whose contexts the federation's gets. It is
	// called for several clusters at the same time.
	Start(ctx context.Context, cluster string) (kubeconfigs []string, err error)
	// Join makes sure that a member that runs belongs to the control plane, which runs
	// as well, and returns when it is Ready.
	Join(ctx context.Context, member string) error
	// Abort cleans up after a start that failed, and returns the error for the user.
	Abort(ctx context.Context, err error) error
	// Stop stops the federation, and reports whether it removed what another start
	// would need.
	Stop(ctx context.Context) (removed bool, err error)
	// Status returns the state of the parts. They are returned with an error as well.
	Status(ctx context.Context) (federation.Status, error)
}

// parts are the processes or clusters of a federation.
type parts interface {
	// Names are the names of the parts, in the order in which they are shown.
	Names() []string
	// SettingNames are the flags that can be set, as ROLE.FLAG, and the feature gates.
	SettingNames(ctx context.Context) (flags, gates []string, err error)
	// StopParts stops some parts. With a member it stops what belongs to that member.
	StopParts(ctx context.Context, names []string) error
	// Logs prints the log of a part.
	Logs(ctx context.Context, name string, options federation.LogOptions, out io.Writer) error
}

// memberRemover is a Runtime whose members can be taken out one by one.
type memberRemover interface {
	RemoveMembers(ctx context.Context, members []string) error
}

// memberConnector is a Runtime whose members have networks of their own.
type memberConnector interface {
	// ConnectMembers has the pods of members that run reach each other.
	ConnectMembers(ctx context.Context) error
}

var (
	_ Runtime         = &process.Runtime{}
	_ memberRemover   = &process.Runtime{}
	_ Runtime         = &kindcluster.Runtime{}
	_ memberConnector = &kindcluster.Runtime{}
)

// runtimeOf returns the runtime of a federation.
func runtimeOf(d Deps, f *Federation, r UpRequest) Runtime {
	if f.Runtime == RuntimeKind {
		return kindcluster.New(d, f, r.Kind, r.Settings)
	}
	return process.New(d, f, r.Process, r.Settings)
}

// Runtimes are what the clusters of a federation may be.
func Runtimes() []string { return []string{RuntimeProcess, RuntimeKind} }

// validateRuntime returns an error for a runtime that does not exist.
func validateRuntime(name string) error {
	if name == "" || slices.Contains(Runtimes(), name) {
		return nil
	}
	return fmt.Errorf("there is no runtime %q; use one of %s", name, strings.Join(Runtimes(), ", "))
}

// checkRuntime returns an error if a request does not fit the runtime of a federation.
func checkRuntime(f *Federation, r UpRequest) error {
	if r.Runtime != "" && r.Runtime != f.Runtime {
		return fmt.Errorf("federation %q was created with --runtime %s, not %s: choose another name with --name, or remove it with \"local down --purge\" and start again", f.Name, f.Runtime, r.Runtime)
	}
	if f.Runtime != RuntimeKind {
		if r.Kind != (kindcluster.Request{}) {
			return fmt.Errorf("a node image, an image or a kind configuration needs --runtime %s; federation %q was created with --runtime %s", RuntimeKind, f.Name, f.Runtime)
		}
		return nil
	}
	if r.Process.Estimators != nil {
		return fmt.Errorf("--estimators needs --runtime %s: federation %q was created with --runtime %s, where estimators are installed with \"addons enable karmada-scheduler-estimator\"", RuntimeProcess, f.Name, RuntimeKind)
	}
	if r.Process.Search != nil {
		return fmt.Errorf("--search needs --runtime %s: federation %q was created with --runtime %s, where search is installed with \"addons enable karmada-search\"", RuntimeProcess, f.Name, RuntimeKind)
	}
	if n := r.Process.Nodes; n.Count >= 0 || n.CPU != "" || n.Memory != "" || n.Pods > 0 {
		return fmt.Errorf("federation %q was created with --runtime %s, which has no simulated nodes: leave out --nodes and --node-…, or list the nodes in a kind configuration", f.Name, RuntimeKind)
	}
	return nil
}
