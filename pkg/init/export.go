package installer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/preflight"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// manifest is the objects of one phase in one cluster.
type manifest struct {
	phase   string
	host    bool
	objects []client.Object
}

// manifests returns the objects of all chosen phases, in the order in which they
// are to be applied.
func manifests(s *phases.State) ([]manifest, error) {
	in, err := s.Inputs()
	if err != nil {
		return nil, err
	}
	var host, control []manifest
	for _, p := range chosen(s.Config) {
		objects, err := p.Host(in)
		if err != nil {
			return nil, err
		}
		if len(objects) > 0 {
			host = append(host, manifest{p.Name, true, objects})
		}
		if objects, err = p.ControlPlane(in); err != nil {
			return nil, err
		}
		if len(objects) > 0 {
			control = append(control, manifest{p.Name, false, objects})
		}
	}
	return append(host, control...), nil
}

// Print checks the host cluster and writes the objects of an installation to w,
// those of the host cluster first.
func Print(ctx context.Context, d Deps, r *config.Configuration, w io.Writer) (err error) {
	s, err := newState(ctx, d, r)
	if err != nil {
		return err
	}
	defer progress.Begin(ctx, s.Progress, phases.Preflight, &err)()
	if err := preflight.Check(ctx, preflight.Deps{Config: s.Config, Facts: s.Facts, Host: s.HostAPI, Now: s.Now}); err != nil {
		return err
	}
	s.Progress.Done(phases.Preflight, "nothing is in the way")
	all, err := manifests(s)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if note := nodeNote(s); note != "" {
		fmt.Fprintf(&out, "# %s\n", note)
	}
	for _, m := range all {
		where := "the control plane"
		if m.host {
			where = "the host cluster"
		}
		fmt.Fprintf(&out, "# Phase %s, in %s\n", m.phase, where)
		text, err := write.Encode(m.objects)
		if err != nil {
			return err
		}
		out.Write(text)
	}
	_, err = w.Write(out.Bytes())
	return err
}

// nodeNote returns what must be done to the node of etcd.
func nodeNote(s *phases.State) string {
	if !s.Config.Etcd.OnNode() {
		return ""
	}
	name, labelled, err := s.Facts.EtcdNode(&s.Config.Etcd)
	if err != nil || labelled {
		return ""
	}
	return fmt.Sprintf("First: kubectl label node %s %s=", name, components.EtcdNodeLabel)
}

// Export writes the objects of an installation to files in dir, with the
// certificates and the kubeconfig. Running it again keeps the certificates.
func Export(ctx context.Context, d Deps, r *config.Configuration, dir string) error {
	there := *r
	there.DataPath, there.PKIPath = dir, filepath.Join(dir, "pki")
	files := credentials.FilesOf(&there)
	certificates, err := files.Certificates()
	if err != nil {
		return err
	}
	s, err := newState(ctx, d, &there)
	if err != nil {
		return err
	}
	if len(s.Facts.Certificates) == 0 {
		s.Facts.Certificates = certificates
	}
	all, err := manifests(s)
	if err != nil {
		return err
	}
	creds, err := s.Credentials()
	if err != nil {
		return err
	}
	if _, err := files.WriteCertificates(s.Owner(), creds); err != nil {
		return err
	}
	if _, err := files.WriteKubeconfig(creds); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "host")); err != nil {
		return fmt.Errorf("writing to %s: %w", dir, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "control-plane")); err != nil {
		return fmt.Errorf("writing to %s: %w", dir, err)
	}
	for i, m := range all {
		sub := "control-plane"
		if m.host {
			sub = "host"
		}
		text, err := write.Encode(m.objects)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, sub, fmt.Sprintf("%02d-%s.yaml", i, m.phase))
		if err := pki.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	path := filepath.Join(dir, "README.txt")
	if err := pki.WriteFile(path, []byte(howToApply(s)), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// howToApply returns the next steps for the files of an export.
func howToApply(s *phases.State) string {
	var out strings.Builder
	out.WriteString("How to install the control plane from these files. The files in host/ hold private keys in Secrets:\nkeep them as such.\n\n")
	if note := nodeNote(s); note != "" {
		fmt.Fprintf(&out, "  %s\n", strings.TrimPrefix(note, "First: "))
	}
	fmt.Fprintf(&out, `  kubectl apply --server-side --force-conflicts -f host/
  kubectl -n %s rollout status deployment/%s
  kubectl --kubeconfig %s apply --server-side --force-conflicts -f control-plane/

The first is for the host cluster, the last for the control plane, at %s.
`, s.Config.APIServer.Namespace, components.APIServer, credentials.KubeconfigName, s.Addresses.Server)
	return out.String()
}
