//go:build kind

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testAddons installs estimators and the descheduler, has the scheduler call the estimators, and leaves one for deinit.
func (s *session) testAddons(t *testing.T) {
	addons := func(verb, rest string) string {
		return "kubectl karmada addons " + verb + " --context kind-cluster01 --karmada-kubeconfig " + s.config + " " + rest
	}
	s.does(t, addons("enable", "karmada-scheduler-estimator karmada-descheduler -C kind-cluster01,kind-cluster02"),
		"Enabled: karmada-scheduler-estimator-kind-cluster01, karmada-scheduler-estimator-kind-cluster02, karmada-descheduler")
	s.does(t, addons("enable", "karmada-scheduler-estimator --all-clusters"), "karmada-scheduler-estimator-kind-cluster02: ready, unchanged")
	s.does(t, addons("list", "-C kind-cluster02"), "| karmada-descheduler         | enabled  |", "| karmada-scheduler-estimator | enabled  |")
	s.isCalled(t, "kind-cluster01", "karmada-scheduler-estimator-kind-cluster01")
	s.isCalled(t, "kind-cluster01", "karmada-scheduler-estimator-kind-cluster02")

	t.Run("capacity through the API server of the host", func(t *testing.T) { s.testCapacityFromOutside(t) })
	t.Run("the metrics adapter", func(t *testing.T) {
		s.does(t, addons("enable", "karmada-metrics-adapter"), "Enabled: karmada-metrics-adapter")
		s.does(t, addons("list", ""), fmt.Sprintf("| %-42s | enabled  |", "karmada-metrics-adapter"))
		s.does(t, "kubectl "+s.at()+" get --raw /apis/metrics.k8s.io/v1beta1", `"nodes"`, `"pods"`)
		s.does(t, addons("disable", "karmada-metrics-adapter -f"), "Disabled: karmada-metrics-adapter")
		if out := s.does(t, "kubectl "+s.at()+" get apiservices -o name"); strings.Contains(out, "metrics.k8s.io") {
			t.Errorf("left:\n%s", out)
		}
	})
	t.Run("search", func(t *testing.T) {
		s.does(t, addons("enable", "karmada-search"), "Enabled: karmada-search")
		s.does(t, addons("list", ""), fmt.Sprintf("| %-42s | enabled  |", "karmada-search"))
		s.file(t, "registry.yaml", namespacesRegistry)
		s.does(t, "kubectl "+s.at()+" apply -f registry.yaml && kubectl "+s.at()+" wait --for=condition=Ready resourceregistry/namespaces --timeout=60s")
		s.does(t, "kubectl "+s.at()+" get --raw /apis/search.karmada.io/v1alpha1/search/cache/api/v1/namespaces/kube-system", `"kind-cluster01"`, `"kind-cluster02"`)
		s.does(t, "kubectl "+s.at()+" delete -f registry.yaml")
		s.does(t, addons("disable", "karmada-search -f"), "Disabled: karmada-search")
	})
}

const namespacesRegistry = `
apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata: {name: namespaces}
spec:
  targetCluster: {}
  resourceSelectors: [{apiVersion: v1, kind: Namespace}]
`

// testCapacityFromOutside calls estimators that only the pods of the host cluster reach by their Services.
func (s *session) testCapacityFromOutside(t *testing.T) {
	s.file(t, "web.yaml", strings.Replace(deployment("web", 1), "containers:", "nodeSelector: {none: such}\n      containers:", 1))
	capacity := "kubectl karmada capacity " + s.at() + " --estimators --for web.yaml"
	host := " --host-kubeconfig .kube/config --host-context kind-cluster01"
	s.prints(t, capacity+host, row{"CLUSTER": "kind-cluster02", "REPLICAS": "0", "SOURCE": "estimator"})
	// The models of a host with less than one free processor have room for none, too.
	if r := s.run(capacity + host); r.code != 0 || strings.Contains(r.err, "estimator of cluster") {
		t.Errorf("an estimator was not reached:\n%s%s", r.out, r.err)
	}
	s.does(t, capacity, "name its kubeconfig with --host-kubeconfig")
	s.says(t, capacity+host+" --scheduler-estimator-ca-file=/missing/ca.crt", "there is no file /missing/ca.crt")
}

// estimatorByHand does what docs/estimators.md has for a cluster in Pull mode.
func (s *session) estimatorByHand(t *testing.T, host, cluster string) {
	t.Helper()
	address := strings.TrimSpace(s.does(t, "kubectl --context "+cluster+` get nodes -o jsonpath='{.items[0].status.addresses[?(@.type=="InternalIP")].address}'`))
	estimatorImage := strings.TrimSpace(s.does(t, "kubectl --context "+host+" -n karmada-system get deployment karmada-scheduler -o jsonpath='{.spec.template.spec.containers[0].image}'"))
	for name, change := range map[string]*strings.Replacer{
		"estimator.yaml": strings.NewReplacer("MEMBER", cluster, "docker.io/karmada/karmada-scheduler-estimator:v1.19.0", estimatorImage),
		"service.yaml":   strings.NewReplacer("MEMBER", cluster, "ADDRESS", address),
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "samples", "estimator", name))
		if err != nil {
			t.Fatal(err)
		}
		s.file(t, name, change.Replace(string(text)))
	}
	pki := s.data + "/pki/"
	s.does(t, "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout tls.key -subj /CN=karmada-scheduler-estimator -out tls.csr")
	s.file(t, "tls.ext", "subjectAltName=IP:"+address+"\nextendedKeyUsage=serverAuth\n")
	s.does(t, "openssl x509 -req -in tls.csr -CA "+pki+"ca.crt -CAkey "+pki+"ca.key -days 365 -extfile tls.ext -out tls.crt")
	s.does(t, "kubectl --context "+cluster+" -n karmada-system create secret generic karmada-scheduler-estimator-cert --from-file=tls.crt --from-file=tls.key --from-file=ca.crt="+pki+"ca.crt")
	s.does(t, "kubectl --context "+cluster+" apply -f estimator.yaml && kubectl --context "+cluster+" -n karmada-system rollout status deployment karmada-scheduler-estimator --timeout=60s")
	s.does(t, "kubectl "+s.at()+" apply -f service.yaml")
}

// isCalled expects that the scheduler calls an estimator, and that it answers, while a workload is divided by free room.
func (s *session) isCalled(t *testing.T, context, app string) {
	t.Helper()
	s.file(t, "divided.yaml", deployment("divided", 2)+"\n---\n"+policy("divided", byRoom))
	s.does(t, "kubectl "+s.at()+" apply -f divided.yaml")
	defer s.does(t, "kubectl "+s.at()+" delete -f divided.yaml")
	pod := strings.TrimSpace(s.does(t, "kubectl --context "+context+" -n karmada-system get pods -l app="+app+" --field-selector status.phase=Running -o jsonpath='{.items[0].metadata.name}'"))
	replicas := 2
	eventually(t, func() error {
		r := s.run("kubectl --context " + context + " get --raw /api/v1/namespaces/karmada-system/pods/" + pod + ":8080/proxy/metrics")
		for line := range strings.Lines(r.out) {
			if strings.HasPrefix(line, "karmada_scheduler_estimator_estimating_request_total{") && strings.Contains(line, `result="success"`) {
				return nil
			}
		}
		replicas++ // the scheduler connects in the background, and schedules again when replicas change
		s.run(fmt.Sprintf("kubectl %s scale deployment divided --replicas=%d", s.at(), replicas))
		return fmt.Errorf("%s was not called:\n%.500s%s", app, r.out, r.err)
	})
}
