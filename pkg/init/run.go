// Package installer installs a control plane in a host cluster, and removes it again.
//
// An installation is a configuration (package config), a set of objects that pure functions (package components) make of it,
// certificates that are loaded or created (package credentials), and phases (package phases) that write the objects
// and wait for them. Phases wait only for what they need, so most of them run at the same time. What is as wanted
// already is left alone: running an installation again changes nothing, and finishes one that was interrupted.
package installer

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// stepHost is reported before the phases.
const stepHost = "host"

// Deps are what an installation works with.
type Deps struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Host is how the host cluster is reached.
	Host *rest.Config
	// Archive is the path of the image archive that the nodes have, or will have;
	// empty means none.
	Archive string
	// CRDs are the APIs of the federation, as LoadCRDs returns them; nil means those that the configuration names.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Progress receives the phases and what they wait for.
	Progress progress.Reporter
	// Now is the clock.
	Now func() time.Time
}

// Result is the outcome of an installation.
type Result struct {
	// Changes are what was done to the objects of both clusters, in no order.
	Changes apply.ChangeSet
	// FilesChanged reports whether local files were written.
	FilesChanged bool
	// Kubeconfig is the path of the administrator's kubeconfig, and Admin its content.
	Kubeconfig string
	Admin      []byte
	// Server is the URL of the API server in it.
	Server string
	// Token is a bootstrap token, empty unless one was requested, and CAHash the
	// hash of the authority by which a cluster that registers recognises the server.
	Token, CAHash string
	// Notes are for the user.
	Notes []string
}

// Changed reports whether the installation was not as wanted before.
func (r *Result) Changed() bool { return r.FilesChanged || r.Changes.Changed() }

// Run makes sure that the requested control plane is installed and works. When it is interrupted, or fails, it can be
// run again.
func Run(ctx context.Context, d Deps, r *config.Configuration) (*Result, error) {
	chosen, err := phases.Chosen(r)
	if err != nil {
		return nil, err
	}
	chosen = append(chosen, phases.With(r.With)...)
	s, err := newState(ctx, d, r)
	if err != nil {
		return nil, err
	}
	if e := &r.Etcd; e.StorageMode != components.StoragePVC && e.Replicas > 1 && !e.External.Used() {
		s.Outcome.Note("etcd keeps its data in its pods: a member whose pod is deleted does not come back by itself; use --etcd-storage-mode=PVC to keep it")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.Tracker.Run(ctx)
	if err := phases.Run(ctx, s, chosen); err != nil {
		return nil, err
	}
	if err := phases.RemoveOthers(ctx, s); err != nil {
		return nil, err
	}
	creds, err := s.Credentials()
	if err != nil {
		return nil, err
	}
	out := &Result{
		Kubeconfig: credentials.FilesOf(r).Kubeconfig(), Admin: creds.Admin, Server: s.Addresses.Server,
		Token: s.Outcome.Token(), CAHash: s.CAHash(), Notes: s.Outcome.Notes(),
	}
	out.Changes, out.FilesChanged = s.Outcome.Changes()
	return out, nil
}

// newState reads the host cluster.
func newState(ctx context.Context, d Deps, r *config.Configuration) (_ *phases.State, err error) {
	if d.Progress == nil {
		d.Progress = progress.Discard{}
	}
	s := &phases.State{Progress: progress.NewReminder(d.Progress, d.Now), Now: d.Now, Outcome: &phases.Outcome{}, TimeoutFlag: "--wait-component-ready-timeout"}
	defer progress.Begin(ctx, s.Progress, stepHost, &err)()
	defer s.Progress.Watch(ctx, stepHost, "the host cluster to answer")()
	if s.CRDs = d.CRDs; s.CRDs == nil {
		if s.CRDs, err = LoadCRDs(ctx, r); err != nil {
			return nil, err
		}
	}
	cfg := rest.CopyConfig(d.Host)
	if r.Host.Endpoint != "" {
		cfg.Host = r.Host.Endpoint
	}
	host, err := hostcluster.Connect(ctx, cfg, r.APIServer.Namespace, r.Names)
	if err != nil {
		return nil, err
	}
	s.HostAPI, s.Host, s.Facts = host.API, host.Client, host.Facts
	if s.Facts.NodeExpected(&r.Etcd) {
		s.Progress.Waiting(stepHost, "a node of the host cluster to be ready")
	}
	if err := s.Facts.AwaitNode(ctx, s.HostAPI, &r.Etcd); err != nil {
		return nil, fmt.Errorf("waiting for a node of the host cluster: %w", err)
	}
	resolved := *r
	missing := resolved.UseBuild(version.Get(), availableImages(s.Facts, d.Archive), resolved.AllParts())
	if hint := config.ImageHint(d.Program, missing); hint != "" {
		s.Progress.Waiting(stepHost, hint)
	}
	s.Config = &resolved
	s.Tracker = rollout.NewTracker(s.HostAPI, r.APIServer.Namespace, d.Now, r.Names)
	if s.Addresses, err = s.Facts.Addresses(r.APIServer); err != nil {
		return nil, err
	}
	s.Progress.Done(stepHost, "Kubernetes "+s.Facts.Version.GitVersion+" at "+cfg.Host)
	return s, nil
}

// availableImages returns the names of the images that the nodes have, and of those in the archive that was, or will
// be, loaded into them.
func availableImages(f *hostcluster.Facts, archive string) []string {
	out := f.Images()
	if archive == "" {
		return out
	}
	names, err := imagearchive.Names(archive)
	if err != nil {
		return out // the archive is a help, and not required
	}
	return append(out, names...)
}
