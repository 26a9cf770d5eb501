package components

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// AllInOne is the component that runs every role of a control plane in one process. It is bound to the roles of its parts and has none
// of its own.
const AllInOne = "karmada-all-in-one"

// compactGC is how much the heap of the API server and of AllInOne grows before memory is collected: small installations have more
// processor than memory.
const compactGC = 50

// CompactParts are the components that the pods of AllInOne run in an installation with the compact layout.
func CompactParts() []string {
	return []string{AggregatedAPIServer, Webhook, ControllerManager, Scheduler}
}

// Workload returns the name of the workload whose pods have a component.
func (c *Config) Workload(component string) string {
	if c.Compact && slices.Contains(CompactParts(), component) {
		return AllInOne
	}
	return component
}

// AllInOneDeployment returns the Deployment that runs the roles of Karmada in one process. Its arguments are those of the roles alone,
// with the name of the role in front, other than those that all roles share.
func AllInOneDeployment(c *Config) *appsv1.Deployment {
	aggregated := c.aggregatedPod()
	out := pod{
		name: AllInOne, kubeconfig: true, ports: aggregated.ports, probe: aggregated.probe,
		command: []string{
			"/bin/karmada", "all-in-one",
			"--kubeconfig=" + kubeconfigFile,
			c.IPv6.metricsAddress(),
			fmt.Sprintf("--health-probe-bind-address=%s:%d", c.IPv6.podIP(), managerPort),
			"--leader-elect-resource-namespace=" + c.System(),
			fmt.Sprintf("--gc-percent=%d", compactGC),
			"--v=2",
		},
	}
	for _, p := range []pod{aggregated, c.webhookPod(), c.controllerManagerPod(), c.schedulerPod()} {
		out.command, out.extra = append(out.command, ofRole(p.name, p.command[1:])...), append(out.extra, ofRole(p.name, c.Workloads[p.name].ExtraArgs)...)
		out.files, out.mounts = append(out.files, p.files...), append(out.mounts, p.mounts...)
		for _, port := range p.ports {
			if port.ContainerPort == webhookPort || port.ContainerPort == metricsPort && p.name == Webhook {
				out.ports = append(out.ports, port)
			}
		}
	}
	slices.Sort(out.files)
	out.files = slices.Compact(out.files)
	return c.deployment(out)
}

// ofRole returns the arguments of a role as the process of all roles takes them. It takes those that all roles share once.
func ofRole(component string, args []string) []string {
	var out []string
	for _, arg := range args {
		if !slices.Contains(SharedFlags(), strings.TrimPrefix(argName(arg), "--")) {
			out = append(out, "--"+strings.TrimPrefix(component, "karmada-")+"."+strings.TrimPrefix(arg, "--"))
		}
	}
	return out
}

// SharedFlags are the flags that the process of all roles has once.
func SharedFlags() []string {
	return []string{
		"kubeconfig", "karmada-context", "master", "kube-api-qps", "kube-api-burst", "leader-elect", "leader-elect-resource-namespace", "leader-elect-resource-name",
		"leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period", "metrics-bind-address", "secure-metrics", "metrics-cert-dir",
		"health-probe-bind-address", "enable-pprof", "profiling-bind-address", "events", "gc-percent", "start-timeout", "v", "vmodule", "logging-format",
		"log-flush-frequency", "log-json-info-buffer-size", "log-json-split-stream", "log-text-info-buffer-size", "log-text-split-stream",
	}
}
