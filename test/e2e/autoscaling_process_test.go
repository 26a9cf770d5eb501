//go:build !kind

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// autoscalingFlags make FederatedHPAs follow the usage within seconds.
func autoscalingFlags() []string {
	return []string{"--set", "controller-manager.horizontal-pod-autoscaler-sync-period=1s"}
}

// usage sets the simulated CPU usage of each pod of a Deployment.
func usage(t *testing.T, ns, name, cpu string) {
	t.Helper()
	must(t, "annotate", "deploy", name, "-n", ns, "--overwrite", "kwok.x-k8s.io/usage-cpu="+cpu)
}

// scaledTo returns a check of the replicas of the template, which both members have together.
func scaledTo(ns, name, want string) func() error {
	return all(is("", ns, "deploy/"+name, "{.spec.replicas}", want), is("", ns, "deploy/"+name, "{.status.readyReplicas}", want))
}

// Load on the pods of two members scales a workload from 1 to 10 over both, and back.
func TestAutoscaling_FollowsTheUsageInAllMembers(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: `+image+`, resources: {requests: {cpu: 100m}}}
`, policy("web", to("member1", "member2")+`
replicaScheduling:
  replicaSchedulingType: Divided
  replicaDivisionPreference: Weighted
  weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [member1]}, weight: 1}, {targetCluster: {clusterNames: [member2]}, weight: 1}]}`))
	eventually(t, scaledTo(ns, "web", "1"))
	usage(t, ns, "web", "50m")
	apply(t, ns, `
apiVersion: autoscaling.karmada.io/v1alpha1
kind: FederatedHPA
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
  behavior:
    scaleUp: {policies: [{type: Pods, value: 10, periodSeconds: 1}]}
    scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 10, periodSeconds: 1}]}
`)
	eventually(t, is("", ns, "fhpa/web", "{.status.currentReplicas}", "1"))
	usage(t, ns, "web", "500m")
	eventually(t, scaledTo(ns, "web", "10"))
	eventually(t, all(is("member1", ns, "deploy/web", "{.status.readyReplicas}", "5"), is("member2", ns, "deploy/web", "{.status.readyReplicas}", "5")))
	eventually(t, func() error {
		out := must(t, "top", "pods", "-n", ns, "-C", "member1,member2", "--sum")
		if !strings.HasSuffix(strings.TrimSpace(out), "5000m        10Mi") {
			return fmt.Errorf("the total is not 5 cores:\n%s", out)
		}
		return nil
	})
	if out := must(t, "top", "nodes", "--clusters", "member1,member2", "--no-headers"); strings.Count(out, "member") < 2 || strings.Contains(out, "unknown") {
		t.Errorf("nodes without usage:\n%s", out)
	}
	usage(t, ns, "web", "1m")
	eventually(t, scaledTo(ns, "web", "1"))
}
