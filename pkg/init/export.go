package installer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// The directories of an export, in the order in which they are applied.
const (
	exportHost         = "host"
	exportControlPlane = "control-plane"
)

// manifests returns the objects of all chosen phases, in the order in which they are to be applied.
func manifests(s *phases.State) ([]write.Manifest, error) {
	in, err := s.Inputs()
	if err != nil {
		return nil, err
	}
	chosen, err := phases.Chosen(s.Config)
	if err != nil {
		return nil, err
	}
	var out []write.Manifest
	for _, cluster := range []string{exportHost, exportControlPlane} {
		for _, p := range chosen {
			objects, err := p.Host(in)
			if cluster == exportControlPlane {
				objects, err = p.ControlPlane(in)
			}
			if err != nil {
				return nil, err
			}
			if len(objects) > 0 {
				out = append(out, write.Manifest{Dir: cluster, Name: fmt.Sprintf("%02d-%s", len(out), p.Name), Objects: objects})
			}
		}
	}
	return out, nil
}

// Print checks the host cluster and writes the objects of an installation to w,
// those of the host cluster first.
func Print(ctx context.Context, d Deps, r *config.Configuration, w io.Writer) (err error) {
	s, err := newState(ctx, d, r)
	if err != nil {
		return err
	}
	if err := phases.Run(ctx, s, phases.All()[:1]); err != nil {
		return err
	}
	all, err := manifests(s)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if note := nodeNote(s); note != "" {
		fmt.Fprintf(&out, "# %s\n", note)
	}
	for _, m := range all {
		_, phase, _ := strings.Cut(m.Name, "-")
		fmt.Fprintf(&out, "# Phase %s, in the %s\n", phase, map[string]string{exportHost: "host cluster", exportControlPlane: "control plane"}[m.Dir])
		text, err := write.Encode(m.Objects)
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
	return write.Files(dir, []string{exportHost, exportControlPlane}, all, howToApply(s))
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
