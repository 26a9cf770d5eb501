//go:build !kind

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// addresses returns the addresses of the endpoints that a member has of a Service.
func addresses(context, ns, service string) (string, error) {
	return value(context, ns, "endpointslices", `{.items[?(@.metadata.labels.kubernetes\.io/service-name=="`+service+`")].endpoints[*].addresses[0]}`)
}

// reaches returns a check that a member has the endpoints that another one has of a Service.
func reaches(consumer, ns, service, provider, origin string) func() error {
	return func() error {
		want, err := addresses(provider, ns, origin)
		if err != nil {
			return err
		}
		got, err := addresses(consumer, ns, service)
		if err == nil && (want == "" || got != want) {
			err = fmt.Errorf("%s has endpoints %q of %s, %s has %q", consumer, got, service, provider, want)
		}
		return err
	}
}

// services shows Services that span a cluster in Push and one in Pull mode, whose agent collects and applies slices with
// its own credentials.
func (s *pullProcesses) services(t *testing.T) {
	t.Helper()
	if os.Getenv("E2E_SERVICES") != "true" {
		t.Fatal("the feature gate MultiClusterService is off: set E2E_SERVICES=true")
	}
	for _, kind := range []string{"serviceexports", "serviceimports"} {
		crd := filepath.Join("..", "..", "pkg", "apis", "crds", "bases", "multicluster.x-k8s.io_"+kind+".yaml")
		for _, name := range []string{"member1", "member2"} {
			must(t, member(name, "apply", "-f", crd)...)
		}
	}
	t.Run("MultiClusterService", s.multiClusterService)
	t.Run("ServiceExport", s.serviceExport)
}

func service(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80}]}`, name)
}

func (s *pullProcesses) multiClusterService(t *testing.T) {
	ns := namespace(t)
	between := func(provider, consumer string) string {
		return fmt.Sprintf(`
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {name: web}
spec: {types: [CrossCluster], providerClusters: [{name: %s}], consumerClusters: [{name: %s}]}`, provider, consumer)
	}
	apply(t, ns, deployment("web", 2), policy("web", to("member2")), service("web"), between("member2", "member1"))
	eventually(t, all(is("member2", ns, "deploy/web", "{.status.readyReplicas}", "2"), reaches("member1", ns, "web", "member2", "web")))
	must(t, "scale", "deploy", "web", "-n", ns, "--replicas", "1")
	eventually(t, reaches("member1", ns, "web", "member2", "web"))
	// The sides are swapped: the agent applies what the cluster in Push mode provides.
	apply(t, ns, policy("web", to("member1")), between("member1", "member2"))
	eventually(t, all(is("member1", ns, "deploy/web", "{.status.readyReplicas}", "1"), reaches("member2", ns, "web", "member1", "web")))
}

func (s *pullProcesses) serviceExport(t *testing.T) {
	ns := namespace(t)
	const multicluster = "apiVersion: multicluster.x-k8s.io/v1alpha1\n"
	selected := `{apiVersion: apps/v1, kind: Deployment, name: api}, {apiVersion: v1, kind: Service, name: api}, ` +
		`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, name: api}`
	apply(t, ns, deployment("api", 2), service("api"),
		multicluster+"kind: ServiceExport\nmetadata: {name: api}",
		multicluster+"kind: ServiceImport\nmetadata: {name: api}\nspec: {type: ClusterSetIP, ports: [{port: 80, protocol: TCP}]}",
		policyFor("export", selected, to("member2")),
		policyFor("import", "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, name: api}", to("member1")))
	eventually(t, all(
		is("member2", ns, "deploy/api", "{.status.readyReplicas}", "2"),
		reaches("member1", ns, "derived-api", "member2", "api"),
		is("", ns, "serviceimport/api", "{.status.clusters[*].cluster}", "member2"),
		is("member1", ns, "serviceimport/api", "{.status.clusters[*].cluster}", "member2"),
		is("member2", ns, "serviceexport/api", "{.status.conditions[?(@.type=='Ready')].status}", "True"),
	))
	must(t, "delete", "serviceexport", "api", "-n", ns)
	eventually(t, func() error {
		got, err := addresses("member1", ns, "derived-api")
		if err == nil && got != "" {
			err = errors.New("the endpoints " + got + " are still there")
		}
		return err
	})
}
