package installer

import (
	"context"
	"slices"
)

// Names of the phases.
const (
	phasePreflight         = "preflight"
	phaseCertificates      = "certs"
	phaseNamespace         = "namespace"
	phaseEtcd              = "etcd"
	phaseAPIServer         = "apiserver"
	phaseCRDs              = "crds"
	phaseRBAC              = "rbac"
	phaseWebhooks          = "webhooks"
	phaseAggregated        = "aggregated"
	phaseAggregatedAPI     = "aggregated-api"
	phaseKCM               = "kube-controller-manager"
	phaseScheduler         = "scheduler"
	phaseControllerManager = "controller-manager"
	phaseWebhook           = "webhook"
	phaseBootstrap         = "bootstrap-token"
	phaseKubeconfig        = "kubeconfig"
	phaseCheck             = "check"
)

// Phase is a part of an installation that can be run again alone.
type Phase struct {
	// Name is also the value of --only and --skip-phases.
	Name string
	// Doc is one line.
	Doc string
	// Needs are the phases that must be done first; all others may run at the same
	// time.
	Needs []string

	run func(context.Context, *state) error
}

// Phases returns the phases; each comes after those that it needs.
func Phases() []Phase {
	deploy := func(phase, workload string) func(context.Context, *state) error {
		return func(ctx context.Context, s *state) error { return s.deploy(ctx, phase, workload) }
	}
	write := func(phase string) func(context.Context, *state) error {
		return func(ctx context.Context, s *state) error { return s.writeControlPlane(ctx, phase) }
	}
	pods := []string{phaseNamespace}
	api := []string{phaseAPIServer}
	// These wait for the API server without harm. They do not start before etcd is
	// ready only to leave the processors to what everybody waits for.
	later := []string{phaseEtcd}
	return []Phase{
		{phasePreflight, "Check the host cluster, the permissions and the local directories", nil, func(ctx context.Context, s *state) error { return s.preflight(ctx) }},
		{phaseCertificates, "Load or create the certificates and the kubeconfigs of the components", []string{phasePreflight}, func(ctx context.Context, s *state) error { return s.certificates(ctx) }},
		{phaseNamespace, "Write the namespace and the Secrets", []string{phaseCertificates}, func(ctx context.Context, s *state) error { return s.namespace(ctx) }},
		{phaseEtcd, "Install etcd", pods, func(ctx context.Context, s *state) error { return s.etcd(ctx) }},
		{phaseAPIServer, "Install the API server and wait until it answers here", pods, func(ctx context.Context, s *state) error { return s.apiServer(ctx) }},
		{phaseCRDs, "Write the APIs of the federation", api, func(ctx context.Context, s *state) error { return s.definitions(ctx) }},
		{phaseRBAC, "Write the roles of users and of the components", api, write(phaseRBAC)},
		{phaseWebhooks, "Register the admission webhooks", api, write(phaseWebhooks)},
		{phaseAggregated, "Install the aggregated API server", later, deploy(phaseAggregated, aggregatedName)},
		{phaseAggregatedAPI, "Register the aggregated API and wait until it is served", []string{phaseAPIServer, phaseAggregated}, func(ctx context.Context, s *state) error { return s.aggregatedAPI(ctx) }},
		{phaseKCM, "Install Kubernetes' controllers", later, deploy(phaseKCM, phaseKCM)},
		{phaseScheduler, "Install the scheduler", later, deploy(phaseScheduler, karmadaPrefix+phaseScheduler)},
		{phaseControllerManager, "Install the controllers of the federation", later, deploy(phaseControllerManager, karmadaPrefix+phaseControllerManager)},
		{phaseWebhook, "Install the webhook server", later, func(ctx context.Context, s *state) error { return s.webhookServer(ctx) }},
		{phaseBootstrap, "Let clusters register in Pull mode", api, func(ctx context.Context, s *state) error { return s.bootstrap(ctx) }},
		{phaseKubeconfig, "Write the administrator's kubeconfig and examples of manifests", api, func(ctx context.Context, s *state) error { return s.kubeconfig(ctx) }},
		{phaseCheck, "See that the control plane accepts a policy", []string{
			phaseEtcd, phaseCRDs, phaseRBAC, phaseWebhooks, phaseAggregatedAPI, phaseKCM, phaseScheduler,
			phaseControllerManager, phaseWebhook, phaseBootstrap, phaseKubeconfig,
		}, func(ctx context.Context, s *state) error { return s.check(ctx) }},
	}
}

const (
	karmadaPrefix  = "karmada-"
	aggregatedName = "karmada-aggregated-apiserver"
)

// PhaseNames returns the names of the phases in their order.
func PhaseNames() []string {
	var out []string
	for _, p := range Phases() {
		out = append(out, p.Name)
	}
	return out
}

// chosen are the phases that are to run.
func (o *Options) chosen() []Phase {
	return slices.DeleteFunc(Phases(), func(p Phase) bool {
		return len(o.Only) > 0 && !slices.Contains(o.Only, p.Name) || slices.Contains(o.Skip, p.Name)
	})
}

// runs says whether a phase is to run.
func (o *Options) runs(phase string) bool {
	return slices.ContainsFunc(o.chosen(), func(p Phase) bool { return p.Name == phase })
}
