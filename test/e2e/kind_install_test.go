//go:build kind

package e2e

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// f
func (s *session) testBadHosts(t *testing.T) {
	const host = "kubectl --context kind-cluster01 "
	t.Run("rights are too small", func(t *testing.T) {
		s.does(t, host+"create serviceaccount reader && "+host+"create clusterrole reader --verb=get,list,watch --resource='*.*' && "+
			host+"create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:reader")
		defer s.does(t, host+"delete serviceaccount/reader clusterrole/reader clusterrolebinding/reader")
		s.does(t, "kubectl config set-credentials reader --token=$("+host+"create token reader)")
		s.does(t, "kubectl config set-context reader --cluster=kind-cluster01 --user=reader")
		s.says(t, strings.Replace(s.init(""), "kind-cluster01", "reader", 1), "create", "namespaces", "secrets")
	})
	t.Run("image is missing", func(t *testing.T) {
		defer s.purge(t)
		s.says(t, s.init("--karmada-webhook-image=localhost:1/none/webhook:v0"), "localhost:1/none/webhook:v0")
	})
	t.Run("disk of etcd is read-only", func(t *testing.T) {
		defer s.purge(t)
		s.does(t, "docker exec cluster01-control-plane sh -c 'mkdir -p /mnt/ro && mount -t tmpfs -o ro tmpfs /mnt/ro'")
		defer s.does(t, "docker exec cluster01-control-plane umount /mnt/ro")
		s.says(t, s.init("--etcd-data=/mnt/ro/etcd"), "/mnt/ro/etcd", "read-only file system", "etcd")
	})
}

// g
func (s *session) testInitAgain(t *testing.T) {
	const list = "kubectl --context kind-cluster01 -n karmada-system get deployments,statefulsets,services,secrets -o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion} {.metadata.generation}{\"\\n\"}{end}' | grep -v 'Deployment\\|StatefulSet' ; " +
		"kubectl --context kind-cluster01 -n karmada-system get deployments,statefulsets -o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.generation}{\"\\n\"}{end}'"
	before := s.does(t, list)
	begun := time.Now()
	s.does(t, s.init(""), "Nothing had to be changed.")
	if took := time.Since(begun); took > limit {
		t.Errorf("it took %s", took)
	}
	if after := s.does(t, list); after != before {
		t.Errorf("the second run changed something:\nbefore\n%safter\n%s", before, after)
	}
	s.prints(t, "kubectl "+s.at()+" get clusters", row{"NAME": "kind-cluster01", "READY": "True"})
}

// testCertificates changes the authorities of a control plane with two API servers. No write fails until the old ones are removed.
func (s *session) testCertificates(t *testing.T) {
	certs := func(args string) string {
		return "kubectl karmada certs " + args + " --context kind-cluster01 --karmada-data=" + s.data
	}
	s.does(t, s.init("--karmada-apiserver-replicas=2"), "installed successfully")
	s.does(t, "kubectl "+s.at()+" create configmap written")
	w := startWriter(t, s.config, "default")
	s.does(t, certs("check"), "karmada-apiserver", "service-account (key)")
	s.does(t, certs("renew --ca"), "all certificates are of the new ones")
	if failed, gap := w.stop(); len(failed) > 0 {
		t.Errorf("%d writes failed, the first: %v; the longest time without one was %s", len(failed), failed[0], gap)
	}
	s.does(t, certs("renew --ca --finish"), "no longer trusted")
	s.does(t, "kubectl "+s.at()+" delete configmap written")
	for _, name := range []string{"kind-cluster01", "kind-cluster02"} {
		s.prints(t, "kubectl "+s.at()+" get clusters", row{"NAME": name, "READY": "True"})
	}
	s.does(t, s.init(""), "installed successfully")
	s.does(t, s.init(""), "Nothing had to be changed.")
}

// testLayouts changes to one Deployment for all roles and back, and propagates a change in both.
func (s *session) testLayouts(t *testing.T) {
	leases := "kubectl " + s.at() + " get leases -n karmada-system"
	s.does(t, s.init("--compact"), "karmada-aggregated-apiserver, karmada-webhook, karmada-controller-manager, karmada-scheduler removed", "installed successfully")
	s.does(t, s.init("--compact"), "Nothing had to be changed.")
	for _, replicas := range []string{"3", "2"} {
		for _, lease := range []string{"karmada-controller-manager", "karmada-scheduler"} {
			eventually(t, func() error {
				for _, got := range table(s.run(leases).out) {
					if got["NAME"] == lease && strings.HasPrefix(got["HOLDER"], "karmada-all-in-one-") == (replicas == "3") && got["HOLDER"] != "" {
						return nil
					}
				}
				return fmt.Errorf("%s has another holder", lease)
			})
		}
		s.does(t, "kubectl "+s.at()+" scale deployment nginx --replicas "+replicas)
		s.prints(t, "kubectl "+s.at()+" get deployment nginx", row{"NAME": "nginx", "READY": replicas + "/" + replicas})
		if replicas == "3" {
			s.does(t, s.init(""), "karmada-all-in-one removed", "installed successfully")
		}
	}
}

func (s *session) testDeinit(t *testing.T) {
	s.does(t, "kubectl "+s.at()+" delete deployment nginx && kubectl "+s.at()+" delete propagationpolicy propagaetion-nginx")
	s.does(t, "kubectl karmada unjoin kind-cluster01 "+s.at()+" --cluster-kubeconfig=$HOME/.kube/config --cluster-context=kind-cluster01")
	s.does(t, "echo n | kubectl karmada deinit --context kind-cluster01", "Please type (y)es or (n)o")
	s.prints(t, "kubectl --context kind-cluster01 -n karmada-system get deployments", row{"NAME": "karmada-apiserver", "READY": "1/1"})
	s.does(t, "echo y | kubectl karmada deinit --context kind-cluster01", "remove Karmada from Kubernetes successfully.")
	s.isGone(t)
	s.purge(t)
}

// purge removes an installation with its namespace.
func (s *session) purge(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		r := s.run("kubectl karmada deinit --context kind-cluster01 -f --purge-namespace")
		if r.code == 0 || strings.Contains(r.err, "not found") {
			return nil
		}
		return fmt.Errorf("deinit: %s%s", r.out, r.err)
	})
	eventually(t, func() error {
		if r := s.run("kubectl --context kind-cluster01 get namespace karmada-system"); r.code == 0 {
			return fmt.Errorf("the namespace is still there:\n%s", r.out)
		}
		return nil
	})
}

// isGone expects that nothing of an installation is left on the host.
func (s *session) isGone(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		r := s.run("kubectl --context kind-cluster01 -n karmada-system get all,secrets -o name")
		if r.code != 0 || strings.TrimSpace(r.out) != "" {
			return fmt.Errorf("there is still\n%s%s", r.out, r.err)
		}
		return nil
	})
	if out := s.does(t, "kubectl --context kind-cluster01 get nodes -l karmada.io/etcd -o name"); strings.TrimSpace(out) != "" {
		t.Errorf("the label stays on %s", out)
	}
}

// testKilled kills installations after the first phase, after the second, and so on, or after each sixth one,
// each going on with what those before left, until one gets through.
func (s *session) testKilled(t *testing.T) {
	attempts, step := 0, 6
	if everything() {
		step = 1
	}
	for !s.initUntil(t, attempts*step) {
		if attempts++; attempts > 40 {
			t.Fatal("the installation is never done")
		}
	}
	t.Logf("killed %d times", attempts)
	if attempts*step < 5 {
		t.Errorf("only %d installations could be killed", attempts)
	}
	s.does(t, s.init(""), "Nothing had to be changed.")
	s.does(t, "kubectl karmada join kind-cluster02 "+s.at()+" --cluster-kubeconfig=$HOME/.kube/config --cluster-context=kind-cluster02", "is joined successfully")
	s.prints(t, "kubectl "+s.at()+" get clusters", row{"NAME": "kind-cluster02", "READY": "True"})
	s.does(t, "kubectl karmada unjoin kind-cluster02 "+s.at()+" --cluster-kubeconfig=$HOME/.kube/config --cluster-context=kind-cluster02")
	s.purge(t)
}

// initUntil runs an installation and kills it when more than a number of phases are
// done. It reports whether the installation was finished before.
func (s *session) initUntil(t *testing.T, phases int) bool {
	t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+s.init(""))
	cmd.Dir, cmd.Env = s.home, s.env()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := 0
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "✓") {
			done++
		}
		if done > phases {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
			return false
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("installation %d: %v\n%s", phases, err, said.String())
	}
	return true
}

// h
func (s *session) testReferenceManifest(t *testing.T) {
	version := strings.TrimSpace(s.does(t, "kubectl --context kind-cluster01 -n karmada-system get deployment karmada-scheduler -o jsonpath='{.spec.template.spec.containers[0].image}'"))
	_, tag, _ := strings.Cut(version, ":")
	var manifest strings.Builder
	for _, c := range referenceComponents() {
		manifest.WriteString(c.manifest(tag))
	}
	s.file(t, "reference.yaml", manifest.String())
	s.does(t, "kubectl --context kind-cluster01 apply -f reference.yaml")
	defer s.does(t, "kubectl --context kind-cluster01 delete -f reference.yaml --wait=false")
	for _, c := range referenceComponents() {
		s.does(t, "kubectl --context kind-cluster01 -n karmada-system rollout status deployment reference-"+c.name+" --timeout=60s", "successfully rolled out")
	}
	// None of them ended since.
	out := s.does(t, "kubectl --context kind-cluster01 -n karmada-system get pods -l reference=true")
	for _, got := range table(out) {
		if got["RESTARTS"] != "0" || got["STATUS"] != "Running" {
			t.Errorf("%v", got)
		}
	}
}

// reference is a component as manifests for one image per role have it.
type reference struct {
	name   string
	flags  string
	probe  string
	volume string
}

func referenceComponents() []reference {
	const kc = "/etc/karmada/config/karmada.config"
	const p = "/etc/karmada/pki"
	const etcd = "--etcd-servers=https://etcd-0.etcd.karmada-system.svc.cluster.local:2379 --etcd-cafile=" + p + "/etcd-ca.crt --etcd-certfile=" + p + "/etcd-client.crt --etcd-keyfile=" + p + "/etcd-client.key "
	return []reference{
		{
			"karmada-scheduler", "--kubeconfig=" + kc + " --metrics-bind-address=$(POD_IP):8080 --health-probe-bind-address=$(POD_IP):10351 --enable-scheduler-estimator=true --leader-elect=true --scheduler-estimator-ca-file=" + p + "/ca.crt --scheduler-estimator-cert-file=" + p + "/karmada.crt --scheduler-estimator-key-file=" + p + "/karmada.key --leader-elect-resource-namespace=karmada-system --v=2",
			"{httpGet: {path: /healthz, port: 10351, scheme: HTTP}}", "",
		},
		{
			"karmada-controller-manager", "--kubeconfig=" + kc + " --metrics-bind-address=$(POD_IP):8080 --health-probe-bind-address=$(POD_IP):10357 --cluster-status-update-frequency=10s --leader-elect-resource-namespace=karmada-system --v=2",
			"{httpGet: {path: /healthz, port: 10357, scheme: HTTP}}", "",
		},
		{
			"karmada-webhook", "--kubeconfig=" + kc + " --bind-address=$(POD_IP) --metrics-bind-address=$(POD_IP):8080 --health-probe-bind-address=$(POD_IP):8000 --secure-port=8443 --cert-dir=/var/serving-cert --v=2",
			"{httpGet: {path: /readyz, port: 8443, scheme: HTTPS}}", "karmada-webhook-cert",
		},
		{
			"karmada-aggregated-apiserver", "--kubeconfig=" + kc + " --authentication-kubeconfig=" + kc + " --authorization-kubeconfig=" + kc + " " + etcd + "--tls-cert-file=" + p + "/karmada.crt --tls-private-key-file=" + p + "/karmada.key --tls-min-version=VersionTLS13 --audit-log-path=- --audit-log-maxage=0 --audit-log-maxbackup=0 --bind-address=$(POD_IP) --v=2",
			"{httpGet: {path: /readyz, port: 443, scheme: HTTPS}}", "",
		},
	}
}

func (r reference) manifest(tag string) string {
	mount, volume := "", ""
	if r.volume != "" {
		mount = "\n        - {name: serving, mountPath: /var/serving-cert, readOnly: true}"
		volume = "\n      - {name: serving, secret: {secretName: " + r.volume + "}}"
	}
	var flags strings.Builder
	for flag := range strings.FieldsSeq(r.flags) {
		fmt.Fprintf(&flags, "        - %s\n", flag)
	}
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: reference-%[1]s, namespace: karmada-system}
spec:
  selector: {matchLabels: {app: reference-%[1]s}}
  template:
    metadata: {labels: {app: reference-%[1]s, reference: "true"}}
    spec:
      automountServiceAccountToken: false
      containers:
      - name: %[1]s
        image: docker.io/karmada/%[1]s:%[2]s
        imagePullPolicy: IfNotPresent
        command:
        - /bin/%[1]s
%[3]s        env:
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        readinessProbe: %[4]s
        volumeMounts:
        - {name: karmada-config, mountPath: /etc/karmada/config, readOnly: true}
        - {name: cert, mountPath: /etc/karmada/pki, readOnly: true}%[5]s
      volumes:
      - {name: karmada-config, secret: {secretName: %[1]s-config}}
      - {name: cert, secret: {secretName: karmada-cert}}%[6]s
`, r.name, tag, flags.String(), r.probe, mount, volume)
}
