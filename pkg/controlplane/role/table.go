package role

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/agent"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllermanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/descheduler"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/metricsadapter"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/operator"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/problemdetector"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/webhook"
)

// The Leases of the roles whose replicas elect a leader.
const (
	controllerManagerLock = prefix + "controller-manager"
	schedulerLock         = prefix + "scheduler"
)

// Table returns the roles.
func Table() []Role {
	return []Role{
		{
			Name: "agent", Doc: "Carry Works into the cluster it runs in, for clusters that the control plane cannot reach",
			Elects: true, HealthAddress: ":10357", MetricsAddress: ":8080", GCPercent: 50,
			New: newInstance(agent.NewOptions, agent.Setup),
		},
		{
			Name: "aggregated-apiserver", Doc: "Serve the Cluster API and the way into the members",
			HealthAddress: "0", MetricsAddress: "0", Serves: true,
			New: newInstance(aggregated.NewOptions, aggregated.Setup),
		},
		{
			Name: "cluster-problem-detector", Doc: "Report to the control plane whether the nodes of the cluster it runs in resolve the names of Services",
			LockName: problemdetector.LockName, LockNamespace: metav1.NamespaceSystem, HealthAddress: "0", MetricsAddress: "0", GCPercent: 50,
			New: newInstance(problemdetector.NewOptions, problemdetector.Setup),
		},
		{
			Name: "controller-manager", Doc: "Carry templates to the members and bring their status back",
			LockName: controllerManagerLock, HealthAddress: ":10357", MetricsAddress: ":8080",
			New: newInstance(controllermanager.NewOptions, controllermanager.Setup),
		},
		{
			Name: "descheduler", Doc: "Take replicas that stay unschedulable from their clusters",
			LockName: "karmada-descheduler", HealthAddress: ":10358", MetricsAddress: ":8080", Kinds: descheduling,
			New: newInstance(descheduler.NewOptions, descheduler.Setup),
		},
		{
			Name: metricsAdapter, Doc: "Serve the metrics of all members",
			HealthAddress: "0", MetricsAddress: ":8080", GCPercent: 50, Kinds: metricsadapter.Kinds,
			New: newInstance(metricsadapter.NewOptions, metricsadapter.Setup),
		},
		{
			Name: "operator", Doc: "Install control planes in the cluster it runs in, or in others, as Karmada objects have them",
			LockName: operator.Name, HealthAddress: ":8443", MetricsAddress: ":8080",
			New: newInstance(operator.NewOptions, operator.Setup),
		},
		{
			Name: "scheduler", Doc: "Decide which clusters get what",
			LockName: schedulerLock, HealthAddress: ":10351", MetricsAddress: ":8080", Kinds: scheduling,
			New: newInstance(scheduler.NewOptions, scheduler.Setup),
		},
		{
			Name: "scheduler-estimator", Doc: "Answer schedulers how many replicas fit into one cluster",
			HealthAddress: ":10351", MetricsAddress: ":8080", GCPercent: 50,
			New: newInstance(estimator.NewOptions, estimator.Setup),
		},
		{
			Name: searchRole, Doc: "Serve the ResourceRegistry API, which selects objects of members to cache",
			HealthAddress: "0", MetricsAddress: "0", Serves: true,
			New: newInstance(search.NewOptions, search.Setup),
		},
		{
			Name: "webhook", Doc: "Default and check what users write",
			HealthAddress: ":8000", MetricsAddress: ":8080", Serves: true,
			New: newInstance(webhook.NewOptions, webhook.Setup),
		},
	}
}
