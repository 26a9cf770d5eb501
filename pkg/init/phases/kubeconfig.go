package phases

import (
	"context"

	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
)

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
	files := credentials.Files(s.Request.Directory)
	changed, err := files.WriteKubeconfig(creds)
	if err != nil {
		return err
	}
	s.Outcome.wroteFiles(changed)
	if err := writeExamples(files.Data, s.Request.Namespace); err != nil {
		return err
	}
	s.Progress.Done(p.Name, files.Kubeconfig())
	return nil
}
