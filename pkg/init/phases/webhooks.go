package phases

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ssa "github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// Webhooks is the phase that registers the admission webhooks.
const Webhooks = "webhooks"

func webhooks() Phase {
	return Phase{
		Name: Webhooks, Doc: "Register the admission webhooks", Needs: []string{APIServer},
		controlPlane: webhookConfigurations, run: runWebhooks,
	}
}

func webhookConfigurations(in *Inputs) ([]client.Object, error) {
	args := in.Workloads[components.ControllerManager].ExtraArgs
	return components.WebhookConfigurations(in.WebhookURL(), in.Certificates.CABundle(), components.FlagValues(args, "--feature-gates")), nil
}

// runWebhooks registers the webhooks, and deletes what an earlier version registered and this one does not.
func runWebhooks(ctx context.Context, s *State, p Phase) error {
	in, err := s.Inputs()
	if err != nil {
		return err
	}
	cp, err := s.ControlPlane()
	if err != nil {
		return err
	}
	objects, err := p.ControlPlane(in)
	if err != nil {
		return err
	}
	changes, err := write.Apply(ctx, cp, objects)
	if err == nil {
		var deleted ssa.ChangeSet
		deleted, err = write.Prune(ctx, cp, objects, components.PrunedWebhookConfigurations()...)
		changes = append(changes, deleted...)
	}
	s.Outcome.add(changes)
	if err != nil {
		return err
	}
	s.Progress.Done(p.Name, write.Summary(changes))
	return nil
}
