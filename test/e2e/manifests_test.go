package e2e

import (
	"fmt"
	"strings"
)

// image is what Deployments of the tests run.
const image = "nginx:1.19.0"

// deployment returns an nginx Deployment.
func deployment(name string, replicas int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  labels: {app: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: nginx
        image: %[3]s
        resources: {requests: {cpu: 10m}}
`, name, replicas, image)
}

// policy returns a PropagationPolicy for a Deployment of the same name.
func policy(name, placement string) string {
	return policyFor(name, "{apiVersion: apps/v1, kind: Deployment, name: "+name+"}", placement)
}

func policyFor(name, selector, placement string) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s}
spec:
  resourceSelectors: [%s]
  placement:
%s
`, name, selector, indent(placement, "    "))
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}

// to is a placement on clusters by name.
func to(clusters ...string) string {
	return "clusterAffinity: {clusterNames: [" + strings.Join(clusters, ", ") + "]}"
}

// byRoom divides replicas over all members by the room that they have.
const byRoom = `
replicaScheduling:
  replicaSchedulingType: Divided
  replicaDivisionPreference: Weighted
  weightPreference: {dynamicWeight: AvailableReplicas}`

// weighted divides replicas over the two members by static weights.
func weighted(one, two int) string {
	return fmt.Sprintf(`
clusterAffinity: {clusterNames: [member1, member2]}
replicaScheduling:
  replicaSchedulingType: Divided
  replicaDivisionPreference: Weighted
  weightPreference:
    staticWeightList:
    - {targetCluster: {clusterNames: [member1]}, weight: %d}
    - {targetCluster: {clusterNames: [member2]}, weight: %d}`, one, two)
}

// configMapNamed returns a ConfigMap.
func configMapNamed(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: b}"
}
