package phases

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Webhooks is the phase that registers the admission webhooks.
const Webhooks = "webhooks"

func webhooks() Phase {
	return Phase{
		Name: Webhooks, Doc: "Register the admission webhooks", Needs: []string{APIServer},
		controlPlane: webhookConfigurations, run: write,
	}
}

func webhookConfigurations(in *Inputs) ([]client.Object, error) {
	return components.WebhookConfigurations(in.WebhookURL(), in.Certificates.CABundle()), nil
}
