package federation

import (
	"context"
	"time"

	"github.com/karmada-toolkit/karmada/internal/progress"
)

// Deps are the dependencies of the commands on federations.
type Deps struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Version of this program, which that of the control plane's image follows.
	Version string
	// Executable is the path of this program; the servers are searched for beside it.
	Executable string
	// Getenv reads the environment, Now is the clock.
	Getenv func(string) string
	Now    func() time.Time
	// Progress shows the steps. It is called from several goroutines.
	Progress progress.Reporter
}

// Cause returns the reason why a context has ended, or err while it has not.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// States of a part.
const (
	StateRunning = "running"
	StateStopped = "stopped"
	StateMissing = "missing"
)

// Part is a process or a kind cluster of a federation, or its control plane.
type Part struct {
	// Name of the process or cluster.
	Name string
	// State is StateRunning, StateStopped or StateMissing.
	State string
	// PID is 0 when it does not run, and for clusters that are no processes.
	PID int
	// Since is when it was started.
	Since time.Time
	// Server is the URL of a cluster's API server, empty while it is not ready.
	Server string
	// Ready is the Ready condition of a member in the control plane; empty for
	// other processes and when the control plane does not answer.
	Ready string
	// Log is the path of its log, empty when it has none.
	Log string
	// Cause is why it does not run, empty if that is not known.
	Cause string
}

// Status is the state of the parts that a runtime runs.
type Status struct {
	Parts []Part
	// ControlPlane is the path of the kubeconfig of the control plane; empty while it
	// does not run.
	ControlPlane string
	// Hosted is set if the control plane is not a part itself, but runs in one of them.
	Hosted bool
}

// LogOptions are how much of a log is printed.
type LogOptions struct {
	// Follow prints what is added, until the context ends.
	Follow bool
	// Tail is the number of lines from the end; negative means all.
	Tail int
}
