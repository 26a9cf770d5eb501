package phases

import (
	"context"
	"fmt"

	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
)

// makeCertificates makes what is missing and keeps it in local files.
func makeCertificates(_ context.Context, s *State, _ Phase) (string, error) {
	files, self := credentials.FilesOf(s.Config), s.Owner()
	if !files.OwnedBy(self, s.Facts.Certificates) {
		moved, err := files.SetAside(s.Now())
		if err != nil {
			return "", err
		}
		s.Outcome.Note("the files of another control plane, which does not answer any more, were moved to %s", moved)
	}
	creds, err := s.Credentials()
	if err != nil {
		return "", err
	}
	changed, err := files.WriteCertificates(self, creds)
	if err != nil {
		return "", err
	}
	s.Outcome.wroteFiles(changed)
	if n := len(creds.Made); n > 0 {
		return fmt.Sprintf("%d files made, in %s", n, files.PKI), nil
	}
	return "kept", nil
}

// writeKubeconfig writes the administrator's kubeconfig and the examples.
func writeKubeconfig(_ context.Context, s *State, _ Phase) (string, error) {
	creds, err := s.Credentials()
	if err != nil {
		return "", err
	}
	files := credentials.FilesOf(s.Config)
	changed, err := files.WriteKubeconfig(creds)
	if err != nil {
		return "", err
	}
	s.Outcome.wroteFiles(changed)
	if err := writeExamples(files.Data, s.Config.APIServer.Namespace); err != nil {
		return "", err
	}
	return files.Kubeconfig(), nil
}
