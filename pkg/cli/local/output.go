package local

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/local"
)

// statusDocument is a process or cluster of a federation in JSON.
type statusDocument struct {
	Name   string     `json:"name"`
	State  string     `json:"state"`
	Ready  string     `json:"ready,omitempty"`
	PID    int        `json:"pid,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	Server string     `json:"server,omitempty"`
	Log    string     `json:"log,omitempty"`
}

func statusDocuments(processes []local.ProcessStatus) []statusDocument {
	out := make([]statusDocument, 0, len(processes))
	for _, p := range processes {
		d := statusDocument{Name: p.Name, State: p.State, Ready: p.Ready, PID: p.PID, Server: p.Server, Log: p.Log}
		if !p.Since.IsZero() {
			d.Since = &p.Since
		}
		out = append(out, d)
	}
	return out
}

// stateRunning is the state of what works.
const stateRunning = "running"

// stopped returns an error that names what does not run; up is the command that
// starts it.
func stopped(processes []local.ProcessStatus, up string) error {
	var names []string
	for _, p := range processes {
		if p.State != stateRunning {
			name := p.Name
			if p.Cause != "" {
				name += " (" + p.Cause + ")"
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not running: %s; start with %q", strings.Join(names, ", "), up)
}

// listDocument is a federation in JSON.
type listDocument struct {
	Name       string    `json:"name"`
	Runtime    string    `json:"runtime"`
	Members    []string  `json:"members"`
	Running    int       `json:"running"`
	Parts      int       `json:"parts"`
	Created    time.Time `json:"created"`
	Kubeconfig string    `json:"kubeconfig"`
}

func listDocuments(ctx context.Context, e *env.Env, root string, names []string) ([]listDocument, error) {
	out := make([]listDocument, 0, len(names))
	for _, name := range names {
		f, err := local.Load(root, name)
		if err != nil {
			return nil, err
		}
		out = append(out, document(ctx, e, f))
	}
	return out, nil
}

func document(ctx context.Context, e *env.Env, f *local.Federation) listDocument {
	running, all := local.Running(ctx, deps(e, e.ErrOut), f)
	return listDocument{
		Name: f.Name, Runtime: f.Runtime, Members: append([]string{}, f.Members...),
		Running: running, Parts: all, Created: f.Created, Kubeconfig: f.Dir().Kubeconfig(),
	}
}
