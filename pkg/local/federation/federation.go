// Package federation holds the record of a federation on this machine: its
// directory, its members, its ports and its lock.
package federation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/pki"
)

// The names of the processes that are no members, and of the contexts of their
// kubeconfigs.
const (
	// ControlPlane is the API server of the control plane.
	ControlPlane = "karmada-apiserver"
	// Roles is the process with the roles of the control plane.
	Roles = "karmada"
)

// What the clusters of a federation are.
const (
	// RuntimeProcess is a process for each cluster, with simulated nodes.
	RuntimeProcess = "process"
	// RuntimeKind is a kind cluster for each, with real nodes in containers.
	RuntimeKind = "kind"
)

// DefaultName is the name of a federation that is given none.
const DefaultName = "default"

// MemberPrefix begins the names of members.
const MemberPrefix = "member"

// agentSuffix ends the name of the agent process of a member, estimatorSuffix that of its estimator.
const (
	agentSuffix     = "-agent"
	estimatorSuffix = "-estimator"
)

// Federation is the record of a federation.
type Federation struct {
	// Name of the federation.
	Name string `json:"name"`
	// Members are the names of the member clusters, in order.
	Members []string `json:"members"`
	// Pull are the members in Pull mode.
	Pull []string `json:"pull,omitempty"`
	// Estimators is set if each member has an estimator, which the scheduler calls.
	Estimators bool `json:"estimators,omitempty"`
	// Search is set if the control plane caches objects of the members and serves them.
	Search bool `json:"search,omitempty"`

	NodeSpec
	Settings

	// Ports of the control plane's processes and of the agents, by name.
	Ports map[string]int `json:"ports"`
	// Created is when it was first started.
	Created time.Time `json:"created"`
	// Runtime is what the clusters are: RuntimeProcess or RuntimeKind.
	Runtime string `json:"runtime,omitempty"`
	// Kind is set for RuntimeKind only.
	Kind *Kind `json:"kind,omitempty"`

	dir Dir
	// kept are the settings in the file while others are tried; nil if they are the same.
	kept *Settings
	// mu guards the record and its file while a federation starts.
	mu sync.Mutex
}

// NodeSpec is the number and the size of the simulated nodes of each member process.
type NodeSpec struct {
	Count int `json:"nodes"`
	// CPU, Memory and Pods are the size of each node; empty or 0 means the server's
	// default.
	CPU    string `json:"nodeCPU,omitempty"`
	Memory string `json:"nodeMemory,omitempty"`
	Pods   int    `json:"nodePods,omitempty"`
}

// Settings are the flags and feature gates of roles and agents that a user has set.
type Settings struct {
	// Flags are ROLE.FLAG=VALUE, sorted.
	Flags []string `json:"set,omitempty"`
	// FeatureGates are NAME=true,NAME=false; RoleGates are those that each role has.
	FeatureGates string            `json:"featureGates,omitempty"`
	RoleGates    map[string]string `json:"roleGates,omitempty"`
}

// Kind is the record of the kind clusters of a federation.
type Kind struct {
	// Complete has the clusters that this federation made or began to make: false
	// until the cluster was complete.
	Complete map[string]bool `json:"complete,omitempty"`
	// NodeImage is the image of the nodes; empty means that of the configuration, or
	// kind's default.
	NodeImage string `json:"nodeImage,omitempty"`
	// Config is the kind configuration that clusters are made from, as YAML.
	Config string `json:"config,omitempty"`
	// Image is the image of the control plane that the nodes of the host have.
	Image string `json:"image,omitempty"`
	// Port is the port of the control plane on the host's node.
	Port int `json:"port,omitempty"`
	// PodSubnets are the subnets of the pods of members, by name, where the configuration
	// chooses none.
	PodSubnets map[string]string `json:"podSubnets,omitempty"`
}

// New returns the record of a federation that does not exist yet, without members.
// An empty runtime means RuntimeProcess.
func New(root, name, runtime string, created time.Time) *Federation {
	return &Federation{Name: name, Runtime: cmp.Or(runtime, RuntimeProcess), Created: created, dir: Dir(filepath.Join(root, name))}
}

// Dir is the directory of the federation.
func (f *Federation) Dir() Dir { return f.dir }

// Update changes the record under its lock and writes it.
func (f *Federation) Update(change func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := change(); err != nil {
		return err
	}
	var stored any = f
	if f.kept != nil {
		stored = struct { // these settings hide those of the federation
			*Federation
			Settings
		}{f, *f.kept}
	}
	data, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding federation %q: %w", f.Name, err)
	}
	if err := makeDir(f.dir); err != nil {
		return err
	}
	if err := pki.WriteFile(f.dir.file(stateFile), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("saving federation %q: %w", f.Name, err)
	}
	return nil
}

// Try gives the federation other settings, which are not written until Keep is called.
func Try(f *Federation, s Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil {
		before := f.Settings
		f.kept = &before
	}
	f.Settings = s
}

// Keep writes the settings that were tried.
func Keep(f *Federation) error {
	return f.Update(func() error {
		f.kept = nil
		return nil
	})
}

// Save writes the record.
func (f *Federation) Save() error { return f.Update(func() error { return nil }) }

// Grow adds members up to n, with the first names that are free. It does not remove any, since their data would be lost;
// down is the command for that, for the error.
func (f *Federation) Grow(n int, down string) error {
	if n < len(f.Members) {
		if f.Runtime == RuntimeKind {
			return fmt.Errorf("federation %q has %d members, not %d: remove it with %q and start again", f.Name, len(f.Members), n, down)
		}
		return fmt.Errorf("federation %q has %d members, not %d: take members out, with their data, with %q", f.Name, len(f.Members), n, down+" --member "+strings.Join(f.Members[n:], ","))
	}
	for i := 1; len(f.Members) < n; i++ {
		if name := fmt.Sprintf("%s%d", MemberPrefix, i); !slices.Contains(f.Members, name) {
			f.Members = append(f.Members, name)
		}
	}
	return nil
}

// ChoosePull makes n the number of members in Pull mode: those that are, and the
// last of the new ones. before is how many members there were; down is the command
// that removes members, for the error.
func (f *Federation) ChoosePull(n, before int, down string) error {
	want := n - len(f.Pull)
	fresh := f.Members[before:]
	switch {
	case n > len(f.Members):
		return fmt.Errorf("--pull %d: the federation has only %d members; add some with --members", n, len(f.Members))
	case want < 0:
		return fmt.Errorf("%d members of federation %q are in Pull mode, not %d: take members out, with their data, with %q", len(f.Pull), f.Name, n, down+" --member "+strings.Join(f.Pull[n:], ","))
	case want > len(fresh):
		return fmt.Errorf("--pull %d: members of federation %q that are there keep their mode; add %d members with --members %d", n, f.Name, want-len(fresh), len(f.Members)+want-len(fresh))
	}
	f.Pull = append(f.Pull, fresh[len(fresh)-want:]...)
	return nil
}

// Pulls reports whether a member is in Pull mode.
func (f *Federation) Pulls(member string) bool { return slices.Contains(f.Pull, member) }

// Drop removes a member from the record.
func (f *Federation) Drop(member string) error {
	return f.Update(func() error {
		f.Members = slices.DeleteFunc(f.Members, func(m string) bool { return m == member })
		f.Pull = slices.DeleteFunc(f.Pull, func(m string) bool { return m == member })
		for _, port := range append(EstimatorPorts(member), AgentHealthPort(member), AgentMetricsPort(member)) {
			delete(f.Ports, port)
		}
		return nil
	})
}

// Processes are the names of the processes of the federation in the order in which
// they are shown.
func (f *Federation) Processes() []string {
	out := []string{ControlPlane, Roles}
	for _, member := range f.Members {
		out = append(out, member)
		if f.Pulls(member) {
			out = append(out, Agent(member))
		}
		if f.Estimators {
			out = append(out, Estimator(member))
		}
	}
	return out
}

// Agent returns the name of the agent process of a member.
func Agent(member string) string { return member + agentSuffix }

// Estimator returns the name of the estimator process of a member.
func Estimator(member string) string { return member + estimatorSuffix }

// Command returns what the user types for a subcommand of "local" on this federation.
func (f *Federation) Command(d Deps, subcommand string) string {
	out := d.Program + " local " + subcommand
	if f.Name != DefaultName {
		out += " --name " + f.Name
	}
	if root, err := DefaultRoot(d.Getenv); err == nil && f.dir != "" && filepath.Dir(string(f.dir)) != root {
		out += " --dir " + filepath.Dir(string(f.dir))
	}
	return out
}

// validate reports records that name files outside the directory of the federation.
func (f *Federation) validate() error {
	var errs limit.Checks
	for _, m := range f.Members {
		msgs := validation.IsDNS1123Label(m)
		errs.Require(len(msgs) == 0, "member %q: %s", m, strings.Join(msgs, "; "))
	}
	for _, m := range f.Pull {
		errs.Require(slices.Contains(f.Members, m), "%q is in Pull mode and no member", m)
	}
	errs.Require(f.Name == f.dir.name(), "it is that of federation %q", f.Name)
	return errors.Join(errs...)
}
