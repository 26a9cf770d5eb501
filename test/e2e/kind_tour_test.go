//go:build kind

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTour is what users of kind write down: two clusters, the control plane on the
// first, both as members, one Deployment sent around by every kind of selector. Then
// what becomes of the control plane in rough hands.
func TestTour(t *testing.T) {
	s := newSession(t)
	s.clusters(t, kindCluster{"cluster01", "10.10.0.0/16", "10.11.0.0/16", true}, kindCluster{"cluster02", "10.20.0.0/16", "10.21.0.0/16", false})
	s.images(t, "cluster01")
	if everything() {
		t.Run("bad hosts", s.testBadHosts)
	}
	steps := []struct {
		name string
		run  func(*testing.T)
		// long is for what only runs with everything.
		long bool
	}{
		{"init", s.testInit, false},
		{"join", s.testJoin, false},
		{"cluster names", s.testClusterNames, false},
		{"labels", s.testLabels, false},
		{"fields", s.testFields, false},
		{"addons", s.testAddons, false},
		{"manifest for one image per role", s.testReferenceManifest, true},
		{"init again", s.testInitAgain, false},
		{"certificates", s.testCertificates, false},
		{"layouts", s.testLayouts, false},
		{"register and unregister", s.testUnregister, false},
		{"unjoin and deinit", s.testDeinit, false},
		{"chart of a course", s.testHelmCourse, false},
		{"chart of notes", s.testHelmNotes, false},
		{"init killed", s.testKilled, false},
		{"high availability", s.testAvailability, true},
	}
	for _, step := range steps {
		if step.long && !everything() {
			continue
		}
		if !t.Run(step.name, step.run) {
			return // every step builds on those before
		}
	}
}

// everything reports whether all tests on kind run, and not only those of CI.
func everything() bool { return os.Getenv("E2E_ALL") != "" }

func (s *session) testInit(t *testing.T) {
	out := s.does(t, s.init(""), "Karmada is installed successfully.", "join ${MEMBER_CLUSTER_NAME}", "--discovery-token-ca-cert-hash sha256:")
	if strings.Contains(out, "<no value>") {
		t.Errorf("the end message has holes:\n%s", out)
	}
	for _, pod := range []string{"etcd-0", "karmada-apiserver-", "karmada-aggregated-apiserver-", "karmada-controller-manager-", "karmada-scheduler-", "karmada-webhook-", "kube-controller-manager-"} {
		eventually(t, func() error {
			r := s.run("kubectl --context kind-cluster01 get pods -n karmada-system")
			for _, got := range table(r.out) {
				if strings.HasPrefix(got["NAME"], pod) && got["READY"] == "1/1" && got["STATUS"] == "Running" {
					return nil
				}
			}
			return fmt.Errorf("no running pod %s in\n%s%s", pod, r.out, r.err)
		})
	}
}

func (s *session) testJoin(t *testing.T) {
	for _, name := range []string{"kind-cluster01", "kind-cluster02"} {
		s.does(t, "kubectl karmada join "+name+" "+s.at()+" --cluster-kubeconfig=$HOME/.kube/config --cluster-context="+name, "cluster("+name+") is joined successfully")
	}
	out := s.does(t, "kubectl "+s.at()+" get clusters")
	if heading := strings.Fields(strings.SplitN(out, "\n", 2)[0]); strings.Join(heading, " ") != "NAME VERSION MODE READY AGE" {
		t.Errorf("get clusters shows %v", heading)
	}
	for _, name := range []string{"kind-cluster01", "kind-cluster02"} {
		s.prints(t, "kubectl "+s.at()+" get clusters", row{"NAME": name, "VERSION": s.kubeTag, "MODE": "Push", "READY": "True"})
	}
	s.does(t, "kubectl karmada version", "kubectl karmada version: version.Info{")
}

func (s *session) policy(t *testing.T, affinity string) {
	t.Helper()
	s.file(t, "propagationpolicy.yaml", `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: propagaetion-nginx # The default namespace is `+"`default`"+`.
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  placement:
    clusterAffinity:
`+indent(affinity, "      ")+"\n")
	s.does(t, "kubectl "+s.at()+" apply -f propagationpolicy.yaml", "propagationpolicy.policy.karmada.io/propagaetion-nginx")
}

// runs expects nginx in clusters and in no others.
func (s *session) runs(t *testing.T, ready string, clusters ...string) {
	t.Helper()
	deployments := "kubectl karmada " + s.at() + " get deployments.apps"
	pods := "kubectl karmada " + s.at() + " get pods"
	for _, name := range []string{"kind-cluster01", "kind-cluster02"} {
		if strings.Contains(strings.Join(clusters, " "), name) {
			s.prints(t, deployments, row{"NAME": "nginx", "CLUSTER": name, "READY": ready, "ADOPTION": "Y"})
			s.prints(t, pods, row{"CLUSTER": name, "READY": "1/1", "STATUS": "Running", "RESTARTS": "0"})
			s.prints(t, "kubectl --context "+name+" get pods", row{"READY": "1/1", "STATUS": "Running", "RESTARTS": "0"})
			continue
		}
		s.lacks(t, deployments, row{"CLUSTER": name})
		eventually(t, func() error {
			if r := s.run("kubectl --context " + name + " get pods"); !strings.Contains(r.err, "No resources found in default namespace.") {
				return fmt.Errorf("%s has pods:\n%s%s", name, r.out, r.err)
			}
			return nil
		})
	}
}

func (s *session) testClusterNames(t *testing.T) {
	s.policy(t, "clusterNames:\n  - kind-cluster01")
	s.does(t, "kubectl "+s.at()+" create deployment nginx --image "+image, "deployment.apps/nginx created")
	s.runs(t, "1/1", "kind-cluster01")
	s.policy(t, "clusterNames: # Modify the selected cluster to propagate the Deployment.\n  - kind-cluster02")
	s.runs(t, "1/1", "kind-cluster02")
}

func (s *session) testLabels(t *testing.T) {
	s.does(t, "kubectl "+s.at()+" scale deployment nginx --replicas 2")
	for _, name := range []string{"cluster01", "cluster02"} {
		s.does(t, "kubectl "+s.at()+" label cluster kind-"+name+" app="+name, "labeled")
		s.does(t, "kubectl "+s.at()+" label cluster kind-"+name+" deploy-type=kind", "labeled")
	}
	s.prints(t, "kubectl "+s.at()+" get cluster --show-labels", row{"NAME": "kind-cluster01", "LABELS": "app=cluster01,deploy-type=kind"})
	s.policy(t, "labelSelector:\n  matchLabels:\n    app: cluster01")
	s.runs(t, "2/2", "kind-cluster01")
	s.policy(t, "labelSelector:\n  matchExpressions:\n  - key: app\n    operator: In\n    values:\n    - cluster01\n    - cluster02")
	s.runs(t, "2/2", "kind-cluster01", "kind-cluster02")
}

func (s *session) testFields(t *testing.T) {
	both := "kubectl " + s.at() + " patch clusters.cluster.karmada.io kind-cluster01 kind-cluster02 "
	s.does(t, both+`-p '{"spec": {"provider": "kind"} }'`, "cluster.cluster.karmada.io/kind-cluster01 patched", "cluster.cluster.karmada.io/kind-cluster02 patched")
	s.does(t, both+`-p '{"spec": {"region": "local"} }'`, "patched")
	for _, name := range []string{"cluster01", "cluster02"} {
		s.does(t, "kubectl "+s.at()+" patch clusters.cluster.karmada.io kind-"+name+` -p '{"spec": {"zones": ["`+name+`"]} }'`, "patched")
	}
	s.policy(t, `fieldSelector:
  matchExpressions:
  - {key: provider, operator: In, values: [kind]}
  - {key: region, operator: In, values: [local]}
  - {key: zone, operator: In, values: [cluster02]}`)
	s.runs(t, "2/2", "kind-cluster02")
}

// testUnregister has a member leave in Push mode, come back in Pull mode with a namespace of its own, and leave again.
func (s *session) testUnregister(t *testing.T) {
	const member = "kubectl --context kind-cluster02 "
	const at = " --cluster-kubeconfig=$HOME/.kube/config --cluster-context=kind-cluster02"
	s.does(t, "kubectl karmada unjoin kind-cluster02 "+s.at()+at)
	s.does(t, "kind load image-archive "+os.Getenv("E2E_IMAGE")+" --name cluster02")
	agent := strings.TrimSpace(s.does(t, "kubectl --context kind-cluster01 -n karmada-system get deployment karmada-scheduler -o jsonpath='{.spec.template.spec.containers[0].image}'"))
	register := strings.TrimSpace(s.does(t, "kubectl karmada token create --print-register-command "+s.at()))
	s.does(t, member+"create namespace beforehand")
	s.does(t, register+" --cluster-name kind-cluster02 --kubeconfig $HOME/.kube/config --context kind-cluster02 --karmada-agent-image "+agent)
	s.prints(t, "kubectl "+s.at()+" get clusters", row{"NAME": "kind-cluster02", "MODE": "Pull", "READY": "True"})

	s.does(t, "kubectl "+s.at()+" create namespace beforehand")
	s.file(t, "beforehand.yaml", deployment("web", 1)+"---\n"+policy("web", to("kind-cluster02")))
	s.does(t, "kubectl "+s.at()+" -n beforehand apply -f beforehand.yaml")
	s.prints(t, member+"-n beforehand get deployments", row{"NAME": "web", "READY": "1/1"})

	s.does(t, "kubectl "+s.at()+" delete -n beforehand -f beforehand.yaml")
	s.does(t, "kubectl karmada unregister kind-cluster02"+at)
	s.does(t, member+"get namespace beforehand") // it is not ours
	for line, left := range map[string]string{
		member + "get namespaces -o name":             "namespace/karmada-",
		member + "get leases -A -o name":              "lease.coordination.k8s.io/kind-cluster02",
		"kubectl " + s.at() + " get csr -o name":      "certificatesigningrequest",
		"kubectl " + s.at() + " get clusters -o name": "kind-cluster02",
	} {
		eventually(t, func() error {
			if r := s.run(line); r.code != 0 || strings.Contains(r.out, left) {
				return fmt.Errorf("$ %s\n%s%s", line, r.out, r.err)
			}
			return nil
		})
	}
	s.does(t, member+"delete namespace beforehand && kubectl "+s.at()+" delete namespace beforehand")
}
