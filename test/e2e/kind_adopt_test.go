//go:build kind

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestAdopt takes a control plane over whose roles run with the manifests, the flags and the credentials of Karmada's, in a namespace of
// the host cluster: the API answers meanwhile, and Works, bindings and objects of the member stay; and goes back.
func TestAdopt(t *testing.T) {
	s := federationSession(t)
	const namespace, former = "adopted", "v1.18.0"
	images := docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "ls", "-q")
	version := regexp.MustCompile(`karmada/karmada-scheduler:(\S+)`).FindStringSubmatch(images)
	kube := regexp.MustCompile(`kube-apiserver:(\S+)`).FindStringSubmatch(images)
	etcd := regexp.MustCompile(`\S*/etcd:\S+`).FindString(images)
	if version == nil || kube == nil || etcd == "" {
		t.Fatalf("the host has the images\n%s", images)
	}
	for _, c := range referenceComponents() {
		docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "tag", "--force", "docker.io/karmada/"+c.name+":"+version[1], "docker.io/karmada/"+c.name+":"+former)
	}
	// Other tests look for "/etcd:" among the images of the node.
	const formerEtcd, nextEtcd = "docker.io/former/etcd-former:3.6.0-0", "registry.k8s.io/etcd:3.6.8-0"
	for _, name := range []string{formerEtcd, nextEtcd} {
		docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "tag", "--force", etcd, name)
	}
	at := " --kubeconfig " + kubeconfig + " --context host -n " + namespace
	host := "kubectl" + at + " "
	t.Cleanup(func() { s.run(host + "delete namespace " + namespace + " --wait=false") })
	s.does(t, "karmadactl init"+at+" --karmada-data adopted --karmada-pki adopted/pki --port 31553 --etcd-data /var/lib/adopted-etcd --kube-image-tag "+kube[1]+" --etcd-image "+formerEtcd)
	plane := "kubectl --kubeconfig adopted/karmada-apiserver.config "
	s.config = s.home + "/adopted/karmada-apiserver.config"

	// The roles of Karmada, as administrators.
	s.does(t, "sed 's#server: .*#server: https://karmada-apiserver."+namespace+".svc.cluster.local:5443#' adopted/karmada-apiserver.config > karmada.config")
	for _, c := range referenceComponents() {
		manifest := strings.NewReplacer("reference-", "", "namespace: karmada-system", "namespace: "+namespace, ".karmada-system.svc", "."+namespace+".svc", `reference: "true"`, `apiserver: "true"`).Replace(c.manifest(former))
		s.file(t, c.name+".yaml", manifest)
		s.does(t, host+"create secret generic "+c.name+"-config --from-file=karmada.config --dry-run=client -o yaml | "+host+"apply -f - && "+host+"delete deployment "+c.name+" && "+host+"apply -f "+c.name+".yaml")
	}
	for _, c := range referenceComponents() {
		s.does(t, host+"rollout status deployment "+c.name+" --timeout=90s", "successfully rolled out")
	}
	s.does(t, plane+"get crd propagationpolicies.policy.karmada.io -o json | sed 's/\"Directly\"/\"Immediately\"/; s/\"Gracefully\"/\"Graciously\"/' | "+plane+"replace -f -")
	s.does(t, "kubectl config view --kubeconfig "+kubeconfig+" --context host --minify --flatten | sed 's#server: .*#server: https://"+address(t, "host")+":6443#' > member.config")
	// Karmada has no such policy.
	const policy = "validatingadmissionpolicy,validatingadmissionpolicybinding agents.karmada.io"
	s.does(t, plane+"delete "+policy)
	s.does(t, "karmadactl join adopted --kubeconfig adopted/karmada-apiserver.config --cluster-kubeconfig member.config")
	s.does(t, plane+"create namespace shop && "+plane+"-n shop create deployment web --image nginx:1.19.0 --replicas 2")
	s.file(t, "shop.yaml", "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: shop}\nspec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [adopted]}}}\n")
	s.does(t, plane+"apply -f shop.yaml")
	t.Cleanup(func() {
		s.run("kubectl --kubeconfig " + kubeconfig + " --context host delete namespace shop --wait=false")
	})
	s.prints(t, plane+"-n shop get deployment web", row{"READY": "2/2"})

	untouched := func() string {
		const fields = "-o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.resourceVersion}{\"\\n\"}{end}'"
		member := "kubectl --kubeconfig " + kubeconfig + " --context host -n shop "
		return s.does(t, plane+"get works,resourcebindings,clusterresourcebindings -A "+fields) + s.does(t, member+"get deployments "+fields) +
			s.does(t, member+"get pods -o jsonpath='{range .items[*]}{.metadata.uid} {.status.containerStatuses[0].restartCount}{\"\\n\"}{end}'")
	}
	adopt := "karmadactl adopt" + at + " "
	before := untouched()
	s.does(t, adopt+"--dry-run --image docker.io/karmada/karmada:"+version[1], "has "+former, "karmada-webhook", "docker.io/karmada/karmada:"+version[1])
	w, begun := s.write(), time.Now()
	s.does(t, adopt+"--force --image docker.io/karmada/karmada:"+version[1], "a policy is accepted", "The control plane is adopted")
	accepted, silence := w.stop()
	t.Logf("adopted in %s, of %d writes none was accepted for %s", time.Since(begun), len(accepted), silence)
	if silence > 5*time.Second || len(accepted) == 0 {
		t.Errorf("%d writes, none for %s", len(accepted), silence)
	}
	if after := untouched(); after != before {
		t.Errorf("it changed\n%s\nto\n%s", before, after)
	}
	s.does(t, plane+"get crd propagationpolicies.policy.karmada.io -o json | grep -q Directly && "+plane+"get "+policy)
	s.does(t, plane+"-n shop scale deployment web --replicas 3")
	s.prints(t, plane+"-n shop get deployment web", row{"READY": "3/3"})
	s.does(t, adopt+"--dry-run --image docker.io/karmada/karmada:"+version[1], "stays")
	image := host + "get statefulset etcd -o jsonpath='{.spec.template.spec.containers[0].image}'"
	s.does(t, adopt+"--etcd --force --image docker.io/karmada/karmada:"+version[1], "the API does not answer while it is replaced", "3.6.0-0 -> "+nextEtcd)
	s.does(t, image, nextEtcd)

	before = untouched()
	s.does(t, adopt+"--rollback", "as it was before")
	for _, c := range referenceComponents() {
		s.does(t, host+"get deployment "+c.name+" -o jsonpath='{.spec.template.spec.containers[0].image}'", c.name+":"+former)
	}
	s.does(t, image, formerEtcd)
	if after := untouched(); after != before {
		t.Errorf("going back changed\n%s\nto\n%s", before, after)
	}
	s.says(t, plane+"get "+policy, "NotFound")
	s.says(t, adopt+"--finish", "not all components are adopted")
	s.does(t, adopt+"--force --image docker.io/karmada/karmada:"+version[1], "The control plane is adopted")
	s.does(t, adopt+"--finish --image docker.io/karmada/karmada:"+version[1], "there is no way back")
	s.says(t, adopt+"--rollback", fmt.Sprintf("there is no Secret karmada-adoption in namespace %s", namespace))
}
