//go:build kind

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestChart installs a second control plane beside that of the federation by the Helm chart: a policy is accepted as soon
// as helm returns, an upgrade does not interrupt the API, and nothing but the data of etcd is left at the end.
func TestChart(t *testing.T) {
	if _, err := exec.LookPath("helm"); err != nil {
		t.Fatalf("hack/e2e-kind.sh builds helm: %v", err)
	}
	s := federationSession(t)
	own := docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "ls", "-q")
	version := regexp.MustCompile(`karmada/karmada-scheduler:(\S+)`).FindStringSubmatch(own)
	kube := regexp.MustCompile(`kube-apiserver:(\S+)`).FindStringSubmatch(own)
	etcd := regexp.MustCompile(`/etcd:(\S+)`).FindStringSubmatch(own)
	if version == nil || kube == nil || etcd == nil {
		t.Fatalf("the host has the images\n%s", own)
	}
	chart, err := filepath.Abs("../../charts/karmada")
	if err != nil {
		t.Fatal(err)
	}
	s.file(t, "values.yaml", fmt.Sprintf(`
karmadaImageVersion: %s
apiServer: {replicaCount: 2, serviceType: NodePort, nodePort: 31443, image: {tag: %s}}
kubeControllerManager: {image: {tag: %s}}
etcd: {internal: {image: {tag: %s}}}
certs: {auto: {hosts: [localhost, %s]}}
`, version[1], kube[1], kube[1], etcd[1], address(t, "host")))
	helm := func(verb, rest string) string {
		return "helm " + verb + " try --kubeconfig " + kubeconfig + " --kube-context host -n chart " + rest
	}
	const wait = " --wait --timeout 3m"
	host := "kubectl --kubeconfig " + kubeconfig + " --context host -n chart "
	t.Cleanup(func() { s.run(host + "delete namespace chart --wait=false") })

	begun := time.Now()
	s.does(t, helm("install", chart+" -f values.yaml --create-namespace"+wait), "STATUS: deployed")
	t.Logf("installed in %s", time.Since(begun))
	s.does(t, host+"get secret try-kubeconfig -o jsonpath={.data.kubeconfig} | base64 -d | sed 's#server: .*#server: https://"+address(t, "host")+":31443#' > try.yaml")
	s.file(t, "policy.yaml", "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n")
	s.does(t, "kubectl --kubeconfig try.yaml apply -f policy.yaml")
	s.says(t, helm("upgrade", chart+" -f values.yaml --set scheduler.replicas=2"), "additional properties 'replicas' not allowed")

	s.config = filepath.Join(s.home, "try.yaml")
	w := s.write()
	s.does(t, helm("upgrade", chart+" -f values.yaml --set apiServer.maxRequestsInflight=1400"+wait), "STATUS: deployed")
	if accepted, silence := w.stop(); silence > 5*time.Second || len(accepted) == 0 {
		t.Errorf("an upgrade of two replicas stopped %d writes for %s", len(accepted), silence)
	}
	// One Deployment for all roles, and back.
	s.does(t, helm("upgrade", chart+" -f values.yaml --set compact=true"+wait), "STATUS: deployed")
	s.does(t, "kubectl --kubeconfig try.yaml annotate propagationpolicy p layout=compact")
	if pods := s.does(t, host+"get pods --field-selector=status.phase=Running -o name"); !strings.Contains(pods, "try-all-in-one-") {
		t.Errorf("compact has the pods\n%s", pods)
	}
	s.does(t, helm("rollback", "1"+wait))
	s.does(t, "kubectl --kubeconfig try.yaml get propagationpolicy p")

	// Another authority: an upgrade keeps what was written.
	karmadactl := func(args string) string {
		return "karmadactl certs " + args + " --kubeconfig " + kubeconfig + " --context host -n chart"
	}
	s.does(t, karmadactl("check"))
	s.does(t, karmadactl("renew --ca"), "are trusted, and all certificates are of the new ones")
	secrets := host + "get secrets -l app.kubernetes.io/managed-by=karmada-release -o jsonpath='{range .items[*]}{.metadata.name} {.data}{\"\\n\"}{end}'"
	workloads := host + "get deployments,statefulsets -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.generation}{\"\\n\"}{end}'"
	written, layout := s.does(t, secrets), s.does(t, workloads)
	s.does(t, helm("upgrade", chart+" -f values.yaml"+wait), "STATUS: deployed")
	if s.does(t, secrets) != written {
		t.Error("an upgrade changed certificates that certs renew wrote")
	}
	if got := s.does(t, workloads); got != layout {
		t.Errorf("an upgrade with the same values changed the workloads\n%s\nto\n%s", layout, got)
	}
	s.does(t, karmadactl("renew --ca --finish"), "are no longer trusted")
	s.does(t, host+"get secret try-kubeconfig -o jsonpath={.data.kubeconfig} | base64 -d | sed 's#server: .*#server: https://"+address(t, "host")+":31443#' > try.yaml")
	s.does(t, "kubectl --kubeconfig try.yaml get propagationpolicy p")

	// A part of a control plane that has its Secrets as Karmada's own chart makes them.
	s.does(t, host+"get secret try-kubeconfig -o jsonpath={.data.kubeconfig} | base64 -d > admin.yaml && "+host+"create secret generic other-kubeconfig --from-file=kubeconfig=admin.yaml")
	files := ""
	for from, to := range map[string]string{"ca.crt": "server-ca.crt", "karmada.crt": "karmada.crt", "karmada.key": "karmada.key"} {
		s.does(t, host+"get secret try-cert -o jsonpath='{.data."+strings.Replace(from, ".", `\.`, 1)+"}' | base64 -d > "+to)
		files += " --from-file=" + to
	}
	s.does(t, host+"create secret generic other-cert"+files)
	part := strings.Replace(helm("install", chart), " try ", " part ", 1) + " --set karmadaImageVersion=" + version[1] +
		" --set installMode=component,systemNamespace=chart --set metricsAdapter.kubeconfig=other-kubeconfig --set metricsAdapter.certs="
	s.says(t, part+"try-cert --set components={metricsAdapter}", "helm upgrade try --reuse-values --set components={metricsAdapter}")
	s.does(t, part+"other-cert --set components={metricsAdapter}"+wait, "STATUS: deployed")
	s.does(t, "kubectl --kubeconfig try.yaml get apiservice v1beta1.metrics.k8s.io", "chart/karmada-metrics-adapter", "True")
	s.does(t, strings.Replace(helm("uninstall", "--wait"), " try ", " part ", 1))
	s.says(t, "kubectl --kubeconfig try.yaml get apiservice v1beta1.metrics.k8s.io", "NotFound")
	s.does(t, host+"delete secret other-kubeconfig other-cert")

	s.does(t, helm("uninstall", "--wait"))
	left := s.does(t, host+"get deployments,statefulsets,services,secrets,jobs,roles,rolebindings,poddisruptionbudgets -o name")
	if strings.TrimSpace(left) != "" {
		t.Errorf("uninstalled, and left:\n%s", left)
	}
}

// address of the node of a cluster.
func address(t *testing.T, cluster string) string {
	t.Helper()
	return docker(t, "inspect", "-f", "{{.NetworkSettings.Networks.kind.IPAddress}}", node(cluster))
}
