//go:build kind

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// maxInterruption is how long requests may fail when a provider fails: a multiple of the 5 s that are the goal, so that a
// busy machine does not fail the test. The log has the figure.
const maxInterruption = 15 * time.Second

// TestServices sends requests from pods in one cluster to pods in others.
func TestServices(t *testing.T) {
	connect(t)
	const gate = "--feature-gates=MultiClusterService=true"
	withFlags(t, "host", "karmada-controller-manager", gate, "--cluster-failure-threshold=1s", "--cluster-status-update-frequency=1s")
	if pull := os.Getenv("E2E_PULL"); pull != "" && pull != "0" {
		withFlags(t, "member2", "karmada-agent", gate)
	}
	t.Run("export and import", testServicesExported)
	t.Run("pods on both sides", testServicesEverywhere)
	t.Run("provider fails", testServicesProviderFails)
}

// service is the Service of the Deployments that server returns.
const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
`

// testServicesExported: member2 requests the Service of member1 by the name of its import.
func testServicesExported(t *testing.T) {
	ns := namespace(t)
	for _, kind := range []string{"serviceexports", "serviceimports"} {
		mustWith(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: `+kind+`}
spec:
  resourceSelectors: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: `+kind+`.multicluster.x-k8s.io}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
`, "apply", "-f", "-")
		t.Cleanup(func() {
			ctl("", "delete", "clusterpropagationpolicy", kind)
			ctl("", "delete", "clusterresourcebinding", kind+".multicluster.x-k8s.io-customresourcedefinition")
		})
	}
	apply(t, ns, server("web"), service, policyFor("web", "{apiVersion: apps/v1, kind: Deployment, name: web}, {apiVersion: v1, kind: Service, name: web}", to("member1")),
		"apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceExport\nmetadata: {name: web}",
		policyFor("export", "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, name: web}", to("member1")),
		"apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\nmetadata: {name: web}\nspec: {type: ClusterSetIP, ports: [{name: http, port: 80, protocol: TCP}]}",
		policyFor("import", "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, name: web}", to("member2"))+"  propagateDeps: true\n",
		caller("caller", "http://derived-web."+ns), policy("caller", to("member2")))
	eventually(t, answered("member2", ns, "caller", "member1"))
	eventually(t, is("", ns, "serviceexport/web", `{.status.conditions[?(@.type=="Ready")].status}`, "True"))
}

// multiClusterService is one for the Service.
func multiClusterService(providers, consumers string) string {
	return fmt.Sprintf(`
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: web}
spec: {types: [CrossCluster], providerClusters: [%s], consumerClusters: [%s]}
`, providers, consumers)
}

// testServicesEverywhere: all clusters provide and consume, and two have pods.
func testServicesEverywhere(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, server("web"), policy("web", to("member1", "member2")), service, multiClusterService("", ""),
		caller("caller", "http://web."+ns), policy("caller", to("member1", "member2", "member3")))
	for _, member := range connected() {
		eventually(t, answered(member, ns, "caller", "member1", "member2"))
	}
}

// testServicesProviderFails: two clusters provide for member2. One loses its pods, gets them again, and dies.
func testServicesProviderFails(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, service, multiClusterService("{name: member1}, {name: member3}", "{name: member2}"),
		server("one"), policy("one", to("member1")), server("three"), policy("three", to("member3")),
		caller("caller", "http://web."+ns), policy("caller", to("member2")))
	both := answered("member2", ns, "caller", "member1", "member3")
	eventually(t, both)
	fails := func(what string, left string, action func()) {
		begun := time.Now()
		action()
		eventually(t, answered("member2", ns, "caller", left))
		if took := interruption(t, "member2", ns, "caller", begun); took > maxInterruption {
			t.Errorf("%s: requests failed for %s", what, took)
		}
	}
	fails("the pods of member1 end", "member3", func() { must(t, "scale", "deployment", "one", "-n", ns, "--replicas=0") })
	must(t, "scale", "deployment", "one", "-n", ns, "--replicas=1")
	eventually(t, both)
	fails("member3 dies", "member1", func() { docker(t, "kill", node("member3")) })
}
