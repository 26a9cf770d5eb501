package phases

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Namespace is the phase that writes the namespace of the control plane and its Secrets.
const Namespace = "namespace"

func namespace() Phase {
	return Phase{
		Name: Namespace, Doc: "Write the namespace and the Secrets", Needs: []string{Certificates},
		host: namespaceObjects, run: runNamespace,
	}
}

func namespaceObjects(in *Inputs) ([]client.Object, error) {
	secrets, err := components.Secrets(in.Config)
	if err != nil {
		return nil, err
	}
	return append([]client.Object{components.HostNamespace(in.Config)}, secrets...), nil
}

// runNamespace writes the namespace, then what is in it.
func runNamespace(ctx context.Context, s *State, p Phase) error {
	in, err := s.Inputs()
	if err != nil {
		return err
	}
	objects, err := p.Host(in)
	if err != nil {
		return err
	}
	if _, err := s.apply(ctx, s.Host, objects[:1]); err != nil {
		return fmt.Errorf("create namespace %s failed: %w", in.Namespace, err)
	}
	result, err := s.apply(ctx, s.Host, objects[1:])
	if err != nil {
		return err
	}
	s.Progress.Done(p.Name, "Secrets "+result)
	return nil
}
