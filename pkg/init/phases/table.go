package phases

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// The names of the phases.
const (
	Preflight             = "preflight"
	Certificates          = "certs"
	Namespace             = "namespace"
	Etcd                  = "etcd"
	APIServer             = "apiserver"
	CRDs                  = "crds"
	RBAC                  = "rbac"
	Webhooks              = "webhooks"
	Aggregated            = "aggregated"
	AggregatedAPI         = "aggregated-api"
	KubeControllerManager = "kube-controller-manager"
	Scheduler             = "scheduler"
	ControllerManager     = "controller-manager"
	Webhook               = "webhook"
	AllInOne              = "all-in-one"
	Layout                = "layout"
	BootstrapToken        = "bootstrap-token"
	Kubeconfig            = "kubeconfig"
	Check                 = "check"
)

// All returns the phases; each comes after those that it needs. Workloads that wait for the API server without harm do not start
// before etcd is ready, only to leave the processors to what all others wait for.
func All() []Phase {
	return []Phase{
		{Name: Preflight, Doc: "Check the host cluster, the permissions and the local directories", ready: runPreflight},
		{Name: Certificates, Doc: "Load or create the certificates and the kubeconfigs of the components", Needs: []string{Preflight}, ready: makeCertificates},
		{Name: Namespace, Doc: "Write the namespace and the Secrets", Needs: []string{Certificates}, host: namespaceObjects},
		{
			Name: Etcd, Doc: "Install etcd", Needs: []string{Namespace}, Workload: components.Etcd, before: labelNode, host: etcdObjects,
		},
		{
			Name: APIServer, Doc: "Install the API server and wait until it answers here", Needs: []string{Namespace},
			host: apiServerObjects, ready: awaitAPIServer, hint: "the port is chosen with --port",
		},
		{Name: CRDs, Doc: "Write the APIs of the federation", Needs: []string{APIServer}, controlPlane: crdObjects, ready: awaitCRDs},
		{Name: RBAC, Doc: "Write the roles of users and of the components, and the limits of agents", Needs: []string{APIServer}, controlPlane: rbacObjects},
		{Name: Webhooks, Doc: "Register the admission webhooks", Needs: []string{APIServer}, controlPlane: webhookConfigurations, write: writeWebhooks},
		{
			Name: Aggregated, Doc: "Install the aggregated API server", Needs: []string{Etcd}, Workload: components.AggregatedAPIServer,
			host: deployment(components.AggregatedDeployment, components.AggregatedHostService),
		},
		{
			Name: AllInOne, Doc: "Install the roles of Karmada in one Deployment, with --compact", Needs: []string{Etcd}, Workload: components.AllInOne, before: awaitReplacedAPIServer,
			host: deployment(components.AllInOneDeployment, components.AggregatedHostService, components.WebhookService),
		},
		{
			Name: AggregatedAPI, Doc: "Register the aggregated API and wait until it is served", Needs: []string{APIServer, Aggregated, AllInOne},
			controlPlane: aggregatedAPIObjects, ready: awaitAggregatedAPI,
		},
		{
			Name: KubeControllerManager, Doc: "Install Kubernetes' controllers", Needs: []string{Etcd}, Workload: components.KubeControllerManager,
			host: deployment(components.KubeControllerManagerDeployment, components.KubeControllerManagerService),
		},
		{
			Name: Scheduler, Doc: "Install the scheduler", Needs: []string{Etcd}, Workload: components.Scheduler,
			host: deployment(components.SchedulerDeployment),
		},
		{
			Name: ControllerManager, Doc: "Install the controllers of the federation", Needs: []string{Etcd}, Workload: components.ControllerManager,
			host: deployment(components.ControllerManagerDeployment),
		},
		{
			Name: Webhook, Doc: "Install the webhook server", Needs: []string{Etcd}, Workload: components.Webhook, before: awaitReplacedAPIServer,
			host: deployment(components.WebhookDeployment, components.WebhookService),
		},
		{
			Name: Layout, Doc: "Remove the Deployments of the other layout", Needs: []string{Aggregated, AllInOne, Scheduler, ControllerManager, Webhook, AggregatedAPI, RBAC},
			ready: removeOtherLayout,
		},
		{
			Name: BootstrapToken, Doc: "Let clusters register in Pull mode", Needs: []string{APIServer},
			controlPlane: registrationObjects, ready: offerToken,
		},
		{Name: Kubeconfig, Doc: "Write the administrator's kubeconfig and examples of manifests", Needs: []string{APIServer}, ready: writeKubeconfig},
		{
			Name: Check, Doc: "See that the control plane accepts a policy", ready: awaitPolicy,
			Needs: []string{
				Etcd, CRDs, RBAC, Webhooks, AggregatedAPI, KubeControllerManager, Scheduler, ControllerManager, Webhook, AllInOne, Layout, BootstrapToken, Kubeconfig,
			},
		},
	}
}

// Addons returns the phases of addons, in their order, with an estimator for each of some clusters.
func Addons(addons, clusters []string) []Phase {
	var out []Phase
	for _, addon := range addons {
		rights := func(in *Inputs) ([]client.Object, error) { return components.RBACOf(in.System(), addon), nil }
		p := Phase{Name: addon, Workload: addon, rights: rights, controlPlane: servingObjects(addon), ready: awaitAPIs(addon)}
		switch addon {
		case components.Descheduler:
			p.host = deployment(components.DeschedulerDeployment)
		case components.MetricsAdapter:
			p.host = func(in *Inputs) ([]client.Object, error) { return components.MetricsAdapterHost(in.Config), nil }
		case components.Search:
			p.host = func(in *Inputs) ([]client.Object, error) { return components.SearchHost(in.Config), nil }
		case components.Estimator:
			for _, cluster := range clusters {
				e := p
				e.Name, e.Workload, e.controlPlane = components.EstimatorWorkload(cluster), components.EstimatorWorkload(cluster), estimatorService(cluster)
				e.host = func(in *Inputs) ([]client.Object, error) { return components.EstimatorHost(in.Config, cluster), nil }
				out = append(out, e)
			}
			continue
		}
		out = append(out, p)
	}
	return out
}

// With returns the phases of addons that are installed with a control plane.
func With(addons []string) []Phase {
	out := Addons(addons, nil)
	for i := range out {
		out[i].Needs = []string{Etcd, APIServer, RBAC}
	}
	return out
}

// RemoveOthers removes the addons that are not installed with a control plane, if any is.
func RemoveOthers(ctx context.Context, s *State) error {
	var errs []error
	for _, part := range s.Config.AddonParts() {
		if len(s.Config.With) == 0 || slices.Contains(s.Config.With, part.Name) || !s.Facts.Runs(part.Name) {
			continue
		}
		for _, p := range Addons([]string{part.Name}, nil) {
			errs = append(errs, p.Remove(ctx, s))
		}
	}
	return errors.Join(errs...)
}

// AddonAPIs returns the phases of addons that write their APIs into a control plane alone.
func AddonAPIs(addons []string) []Phase {
	return withNamespaces(Addons(addons, nil))
}

// withNamespaces has addons write the namespaces that their objects are in, and leave their rights to the phase of all.
func withNamespaces(out []Phase) []Phase {
	for i, p := range out {
		out[i].rights = nil
		out[i].controlPlane = func(in *Inputs) ([]client.Object, error) {
			objects, err := p.controlPlane.of(in)
			return append(components.SystemNamespaces(in.System()), objects...), err
		}
	}
	return out
}

// ControlPlane returns the phases that write into the control plane alone, with those of addons, whose APIs are not waited for.
func ControlPlane(addons, clusters []string) []Phase {
	out := withNamespaces(Addons(addons, clusters))
	for i := range out {
		out[i].ready = nil
	}
	for _, p := range All() {
		if p.controlPlane != nil || p.Name == Check {
			out = append(out, p)
		}
	}
	return out
}

// Names returns the names of the phases in their order.
func Names() []string {
	var out []string
	for _, p := range All() {
		out = append(out, p.Name)
	}
	return out
}

// Chosen returns the phases that are to run. That one was chosen by its name whose workload the configuration does not install is an
// error.
func Chosen(c *config.Configuration) ([]Phase, error) {
	var out []Phase
	for _, p := range All() {
		switch installed := p.Workload == "" || c.Installs(p.Workload); {
		case c.Runs(p.Name) && installed:
			out = append(out, p)
		case slices.Contains(c.Phases.Only, p.Name):
			return nil, fmt.Errorf("the phase %q installs %s, which this configuration does not have (see --compact and --external-etcd-servers)", p.Name, p.Workload)
		}
	}
	return out, nil
}

// deployment returns the objects of a part with a Deployment and Services.
func deployment(deployment func(*components.Config) *appsv1.Deployment, services ...func(*components.Config) client.Object) objects {
	return func(in *Inputs) ([]client.Object, error) {
		var out []client.Object
		for _, service := range services {
			out = append(out, service(in.Config))
		}
		return append(out, deployment(in.Config)), nil
	}
}

func namespaceObjects(in *Inputs) ([]client.Object, error) {
	secrets, err := components.Secrets(in.Config)
	if err != nil {
		return nil, err
	}
	return append([]client.Object{components.HostNamespace(in.Config)}, secrets...), nil
}

func rbacObjects(in *Inputs) ([]client.Object, error) {
	return slices.Concat(components.SystemNamespaces(in.System()), components.FederationRBAC(), components.ComponentRBAC(in.System(), in.AllInOne()...), registration.Limits(components.Users())), nil
}

func etcdObjects(in *Inputs) ([]client.Object, error) {
	out := []client.Object{components.EtcdService(in.Config)}
	if !in.Etcd.Kept {
		set, err := components.EtcdStatefulSet(in.Config)
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	if in.Names != nil {
		out = append(out, components.EtcdClientService(in.Config))
	}
	return out, nil
}

func apiServerObjects(in *Inputs) ([]client.Object, error) {
	deployment, err := components.APIServerDeployment(in.Config)
	if err != nil {
		return nil, err
	}
	return []client.Object{components.APIServerService(in.Config), deployment}, nil
}

func aggregatedAPIObjects(in *Inputs) ([]client.Object, error) {
	host := fmt.Sprintf("%s.%s.svc", in.Name(components.AggregatedService), in.Namespace)
	return append(components.SystemNamespaces(in.System()), components.AggregatedAPI(in.System(), host, 443, in.Certificates.CABundle())...), nil
}

// servingObjects make the API server pass requests for the APIs of an addon on to its server.
func servingObjects(addon string) objects {
	if len(components.AddonAPIs(addon)) == 0 {
		return nil
	}
	return func(in *Inputs) ([]client.Object, error) {
		return components.AddonServing(addon, in.System(), in.Host(addon), 443, in.Certificates.CABundle()), nil
	}
}

// estimatorService makes the scheduler find an estimator whose name in the host cluster is another than the usual one.
func estimatorService(cluster string) objects {
	return func(in *Inputs) ([]client.Object, error) {
		workload := components.EstimatorWorkload(cluster)
		if in.Names == nil {
			return nil, nil
		}
		return []client.Object{components.EstimatorService(cluster, in.System(), in.Host(workload), components.EstimatorPort)}, nil
	}
}
