package phases

import (
	"context"
	"fmt"

	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
)

// Certificates is the phase that makes the certificates that are missing.
const Certificates = "certs"

func certificates() Phase {
	return Phase{
		Name: Certificates, Doc: "Load or create the certificates and the kubeconfigs of the components", Needs: []string{Preflight},
		run: runCertificates,
	}
}

// runCertificates makes what is missing and keeps it in local files.
func runCertificates(_ context.Context, s *State, _ Phase) error {
	files, self := credentials.FilesOf(s.Config), s.Owner()
	if !files.OwnedBy(self, s.Facts.Certificates) {
		moved, err := files.SetAside(s.Now())
		if err != nil {
			return err
		}
		s.Outcome.Note("the files of another control plane, which does not answer any more, were moved to %s", moved)
	}
	creds, err := s.Credentials()
	if err != nil {
		return err
	}
	changed, err := files.WriteCertificates(self, creds)
	if err != nil {
		return err
	}
	s.Outcome.wroteFiles(changed)
	result := "kept"
	if n := len(creds.Made); n > 0 {
		result = fmt.Sprintf("%d files made, in %s", n, files.PKI)
	}
	s.Progress.Done(Certificates, result)
	return nil
}

// Kubeconfig is the phase that writes the local files of the administrator.
const Kubeconfig = "kubeconfig"

func kubeconfig() Phase {
	return Phase{
		Name: Kubeconfig, Doc: "Write the administrator's kubeconfig and examples of manifests", Needs: []string{APIServer},
		run: runKubeconfig,
	}
}

// runKubeconfig writes the administrator's kubeconfig and the examples.
func runKubeconfig(_ context.Context, s *State, p Phase) error {
	creds, err := s.Credentials()
	if err != nil {
		return err
	}
	files := credentials.FilesOf(s.Config)
	changed, err := files.WriteKubeconfig(creds)
	if err != nil {
		return err
	}
	s.Outcome.wroteFiles(changed)
	if err := writeExamples(files.Data, s.Config.APIServer.Namespace); err != nil {
		return err
	}
	s.Progress.Done(p.Name, files.Kubeconfig())
	return nil
}
