//go:build kind

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// chartPort is the port of the node, and of the machine, on which users of the chart open the API server.
const chartPort = 31443

// testHelmCourse is what a course on clients writes down: the chart with edited values behind a mirror of all images, the host joined by its
// current context, the other cluster by its own, and two programs that list them. It differs from the course in:
//   - the clusters: those of the tour, each of one node with kube-proxy's default mode, and the address that Docker gave its API server;
//   - the release: the chart of this working copy, and the version of Kubernetes of the nodes;
//   - the import path of the typed client, which is that of this module.
func (s *session) testHelmCourse(t *testing.T) {
	const mirror = "mirror.example.com"
	s.does(t, "kubectl config use-context kind-cluster01")
	public := strings.TrimSpace(s.does(t, "docker network inspect kind -f '{{range .IPAM.Config}}{{println .Gateway}}{{end}}' | grep -m1 -v :"))
	values := s.chart(t)
	set(values, mirror, "global", "imageRegistry")
	set(values, "myifeng/k8s.gcr.io_kube-apiserver", "apiServer", "image", "repository")
	set(values, "NodePort", "apiServer", "serviceType")
	set(values, chartPort, "apiServer", "nodePort")
	set(values, "myifeng/k8s.gcr.io_kube-controller-manager", "kubeControllerManager", "image", "repository")
	set(values, "myifeng/k8s.gcr.io_etcd", "etcd", "internal", "image", "repository")
	set(values, append(get(values, "certs", "auto", "hosts").([]any), public), "certs", "auto", "hosts")
	s.values(t, "karmada/values.yaml", values)
	s.mirrored(t, "cluster01", values)

	s.does(t, "helm install karmada karmada -n karmada-system --create-namespace", "STATUS: deployed")
	s.pods(t, "kubectl get po -n karmada-system")
	s.does(t, "kubectl get secret karmada-kubeconfig  -n karmada-system  -o jsonpath={.data.kubeconfig} | base64 -d > karmada-config")
	s.server(t, "https://karmada-apiserver.karmada-system.svc.cluster.local:5443", fmt.Sprintf("https://%s:%d", public, chartPort))

	ready := func(names ...string) {
		for _, name := range names {
			s.prints(t, "kubectl --kubeconfig ./karmada-config get clusters", row{"NAME": name, "VERSION": s.kubeTag, "MODE": "Push", "READY": "True"})
		}
	}
	s.does(t, "karmadactl join member1 --kubeconfig=$HOME/karmada-config --cluster-kubeconfig=$HOME/.kube/config", "cluster(member1) is joined successfully")
	ready("member1")
	for name, service := range map[string]string{"v1alpha1.cluster.karmada.io": "karmada-system/karmada-aggregated-apiserver", "v1alpha1.policy.karmada.io": "Local", "v1alpha2.work.karmada.io": "Local"} {
		s.prints(t, "kubectl get apiservice --kubeconfig karmada-config", row{"NAME": name, "SERVICE": service, "AVAILABLE": "True"})
	}
	s.does(t, "karmadactl join member2 --kubeconfig=$HOME/karmada-config --cluster-kubeconfig=$HOME/.kube/config --cluster-context='kind-cluster02'", "cluster(member2) is joined successfully")
	ready("member1", "member2")

	if out := s.does(t, "kubectl api-resources --kubeconfig karmada-config | grep cluster"); !regexp.MustCompile(`(?m)^clusters +cluster\.karmada\.io/v1alpha1 +false +Cluster$`).MatchString(out) {
		t.Errorf("the resource of clusters is not in\n%s", out)
	}
	for _, program := range []string{"dynamic", "typed"} {
		s.does(t, "CGO_ENABLED=0 go build -C "+repository(t)+" -o $HOME/"+program+" ./docs/examples/"+program+" && KUBECONFIG=karmada-config ./"+program, "member1", "member2")
	}

	// The exercise: nginx in both clusters.
	s.file(t, "nginx.yaml", `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
`)
	s.does(t, "kubectl --kubeconfig karmada-config create deployment nginx --image "+image+" && kubectl --kubeconfig karmada-config apply -f nginx.yaml")
	for _, name := range []string{"member1", "member2"} {
		s.prints(t, "karmadactl --kubeconfig karmada-config get deployments", row{"NAME": "nginx", "CLUSTER": name, "READY": "1/1"})
	}
	s.does(t, "kubectl --kubeconfig karmada-config delete deployment nginx && karmadactl --kubeconfig karmada-config unjoin member1 --cluster-kubeconfig=$HOME/.kube/config && "+
		"karmadactl --kubeconfig karmada-config unjoin member2 --cluster-kubeconfig=$HOME/.kube/config --cluster-context=kind-cluster02")
	s.does(t, "helm uninstall karmada -n karmada-system")
}

// testHelmNotes is what a user notes down: the chart as a package with other repositories of images, then the same package as the agent of
// another cluster, with the certificate that the administrator has. It differs from the notes in:
//   - apiServer.hostNetwork, without which port 5443 of the host leads nowhere;
//   - karmadaImageVersion stays that of the chart, and there are no images of kubectl and cfssl;
//   - nothing of the Job is left after an uninstallation, so there is nothing to delete but the namespace;
//   - karmadactl beside kubectl-karmada comes from the working copy, not from a release.
func (s *session) testHelmNotes(t *testing.T) {
	s.does(t, "kubectl config use-context kind-cluster01")
	address := strings.TrimSpace(s.does(t, "docker inspect -f '{{.NetworkSettings.Networks.kind.IPAddress}}' cluster01-control-plane"))
	s.does(t, "helm package "+filepath.Join(repository(t), "charts", "karmada")+" --version 0.0.3")
	s.file(t, "karmada.yaml", `
etcd:
  internal:
    image:
      repository: karmada/etcd
kubeControllerManager:
  image:
    repository: karmada/kube-controller-manager
apiServer:
  hostNetwork: true
  image:
    repository: karmada/kube-apiserver


search:
  image:
    repository: karmada/karmada-search
descheduler:
  image:
    repository: karmada/karmada-descheduler
schedulerEstimator:
  image:
    repository: karmada/karmada-scheduler-estimator
agent:
  image:
    repository: karmada/karmada-agent
aggregatedApiServer:
  image:
    repository: karmada/karmada-aggregated-apiserver
controllerManager:
  image:
    repository: karmada/karmada-controller-manager
webhook:
  image:
    repository: karmada/karmada-webhook
scheduler:
  image:
    repository: karmada/karmada-scheduler

certs:
  auto:
    hosts: [
      "kubernetes.default.svc",
      "*.etcd.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}",
      "*.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}",
      "*.{{ .Release.Namespace }}.svc",
      "localhost",
      "127.0.0.1",
      "`+address+`"
    ]
`)
	values := s.chart(t)
	for component, repository := range map[string]string{"kubeControllerManager": "karmada/kube-controller-manager", "apiServer": "karmada/kube-apiserver"} {
		set(values, repository, component, "image", "repository")
	}
	set(values, "karmada/etcd", "etcd", "internal", "image", "repository")
	s.does(t, "docker exec cluster02-control-plane ctr -n k8s.io images ls -q | grep -q karmada-agent || kind load image-archive "+os.Getenv("E2E_IMAGE")+" --name cluster02")
	s.mirrored(t, "cluster01", values)
	s.mirrored(t, "cluster02", values)

	s.does(t, "helm install karmada -n karmada-system --create-namespace karmada-0.0.3.tgz -f karmada.yaml", "STATUS: deployed")
	s.pods(t, "kubectl get pods -n karmada-system")
	if err := os.MkdirAll(filepath.Join(s.home, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.does(t, "tar -czf kubectl-karmada-linux-amd64.tgz -C "+bin+" kubectl-karmada && tar -zxf kubectl-karmada-linux-amd64.tgz && which kubectl && cp kubectl-karmada bin/")
	s.does(t, "PATH=$HOME/bin:$PATH kubectl karmada version", "kubectl karmada version: version.Info{GitVersion:")

	s.does(t, "kubectl get secret -n karmada-system karmada-kubeconfig -o jsonpath={.data.kubeconfig} | base64 -d > karmada-config")
	s.server(t, "https://karmada-apiserver.karmada-system.svc.cluster.local:5443", "https://"+address+":5443")
	s.does(t, "kubectl config use-context kind-cluster02")
	s.file(t, "agent.yaml", fmt.Sprintf(`installMode: "agent"
agent:
  image:
    repository: karmada/karmada-agent
  clusterName: "member"
  kubeconfig:
    caCrt: |
%s
    crt: |
%s
    key: |
%s
    server: "https://%s:5443"
`, s.pasted(t, "certificate-authority-data"), s.pasted(t, "client-certificate-data"), s.pasted(t, "client-key-data"), address))
	s.does(t, "helm install karmada-agent -n karmada-system --create-namespace  karmada-0.0.3.tgz -f agent.yaml", "STATUS: deployed")
	s.pods(t, "kubectl get pods -n karmada-system")
	s.prints(t, "kubectl get cluster --kubeconfig karmada-config", row{"NAME": "member", "VERSION": s.kubeTag, "MODE": "Pull", "READY": "True"})

	s.does(t, "helm uninstall karmada-agent -n karmada-system && kubectl delete ns karmada-system")
	s.does(t, "kubectl config use-context kind-cluster01 && helm uninstall karmada -n karmada-system")
	for _, left := range []string{"sa/karmada-pre-job", "clusterRole/karmada-pre-job", "clusterRoleBinding/karmada-pre-job"} {
		s.says(t, "kubectl delete "+left+" -n karmada-system", "NotFound")
	}
	s.does(t, "kubectl delete ns karmada-system")
}

// repository is the directory of the working copy.
func repository(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// chart copies the chart into the home of the user, as if it had been unpacked there, and returns its values.
func (s *session) chart(t *testing.T) map[string]any {
	t.Helper()
	s.does(t, "rm -rf karmada && cp -r "+filepath.Join(repository(t), "charts", "karmada")+" karmada")
	data, err := os.ReadFile(filepath.Join(s.home, "karmada", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func (s *session) values(t *testing.T, name string, values map[string]any) {
	t.Helper()
	data, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	s.file(t, name, string(data))
}

func get(values map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		values = values[name].(map[string]any)
	}
	return values[path[len(path)-1]]
}

func set(values map[string]any, to any, path ...string) {
	get(values, path[:len(path)-1]...).(map[string]any)[path[len(path)-1]] = to
}

// mirrored gives the images of a node the names by which values ask for them: nothing can be downloaded.
func (s *session) mirrored(t *testing.T, cluster string, values map[string]any) {
	t.Helper()
	names := map[string]string{} // by the last part of the name of an image of the node
	for own := range strings.FieldsSeq(docker(t, "exec", cluster+"-control-plane", "ctr", "-n", "k8s.io", "images", "ls", "-q")) {
		if name, _, tagged := strings.Cut(own[strings.LastIndex(own, "/")+1:], ":"); tagged && !strings.Contains(own, "@") {
			names[name] = own
		}
	}
	script := "set -e\n"
	for _, component := range slices.Sorted(maps.Keys(values)) {
		part, _ := values[component].(map[string]any)
		if component == "etcd" {
			part, _ = part["internal"].(map[string]any)
		}
		image, _ := part["image"].(map[string]any)
		if image == nil {
			continue
		}
		registry, _ := get(values, "global", "imageRegistry").(string)
		if registry == "" {
			registry = image["registry"].(string)
		}
		tag, _ := image["tag"].(string)
		if tag == "" {
			tag = get(values, "karmadaImageVersion").(string)
		}
		repository := image["repository"].(string)
		if own := names[repository[strings.LastIndexAny(repository, "/_")+1:]]; own != "" {
			script += fmt.Sprintf("ctr -n k8s.io images tag --force %s %s/%s:%s\n", own, registry, repository, tag)
		}
	}
	s.file(t, "mirror.sh", script)
	s.does(t, "docker exec -i "+cluster+"-control-plane bash < mirror.sh")
}

// pods waits until all pods of a table are ready.
func (s *session) pods(t *testing.T, line string) {
	t.Helper()
	eventually(t, func() error {
		r := s.run(line)
		rows := table(r.out)
		if len(rows) == 0 {
			return fmt.Errorf("$ %s\n%s%s", line, r.out, r.err)
		}
		for _, got := range rows {
			ready, all, _ := strings.Cut(got["READY"], "/")
			if got["STATUS"] != "Completed" && (got["STATUS"] != "Running" || ready != all) {
				return fmt.Errorf("$ %s\n%s", line, r.out)
			}
		}
		return nil
	})
}

// server has the user change the server of the kubeconfig.
func (s *session) server(t *testing.T, from, to string) {
	t.Helper()
	s.does(t, "grep -q 'server: "+from+"$' karmada-config && sed -i 's#"+from+"#"+to+"#' karmada-config")
}

// pasted is a field of the kubeconfig as the user pastes it into a block of a file.
func (s *session) pasted(t *testing.T, field string) string {
	t.Helper()
	return indent(strings.TrimSpace(s.does(t, "sed -n 's/.*"+field+": //p' karmada-config | base64 -d")), "      ")
}
