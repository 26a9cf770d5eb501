//go:build kind

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// former is a control plane of Karmada's chart or operator in a namespace of the host of the federation, which is also its only member, with
// a Deployment and a token.
type former struct {
	*session
	name, namespace, token string
	port                   int
	// operator reports that Karmada's operator has it.
	operator bool
	// version is the tag of the images of the build, kube and etcd are those of images that the nodes have.
	version, kube, etcd string
	// host and plane are beginnings of commands in the namespace of the host cluster, and in the control plane; helm is one with the cluster.
	host, plane, helm, adopt string
}

// chartOf is the chart with what Karmada's installs, and the tag of its images.
const formerChart, formerTag = "test/e2e/testdata/formerchart", "v1.18.0"

func newFormer(t *testing.T, name, namespace string, port int, operator bool) *former {
	t.Helper()
	s := federationSession(t)
	images := docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "ls", "-q")
	tag := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(images)
		if found == nil {
			t.Fatalf("the host has no image %s:\n%s", pattern, images)
		}
		return found[1]
	}
	at := " --kubeconfig " + kubeconfig
	f := &former{
		session: s, name: name, namespace: namespace, port: port, operator: operator,
		version: tag(`karmada/karmada-scheduler:(\S+)`), kube: tag(`kube-apiserver:(\S+)`), etcd: tag(`/etcd:(\S+)`),
		host: "kubectl" + at + " --context host -n " + namespace + " ", helm: "helm" + at + " --kube-context host ",
		adopt: "karmadactl adopt" + at + " --context host -n " + namespace + " ",
	}
	s.config = filepath.Join(s.home, "former.config")
	f.plane = "kubectl --kubeconfig " + s.config + " "
	for _, c := range referenceComponents() {
		docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "tag", "--force", "docker.io/karmada/"+c.name+":"+f.version, "docker.io/karmada/"+c.name+":"+formerTag)
	}
	t.Cleanup(func() {
		s.run(f.helm + "uninstall " + name + " -n " + namespace)
		s.run(f.host + "delete namespace " + f.shop() + " " + namespace + " --wait=false")
		docker(t, "exec", node("host"), "rm", "-rf", "/var/lib/"+namespace)
	})
	s.file(t, "former.yaml", fmt.Sprintf("{karmadaImageVersion: %s, kube: {tag: %s}, etcdImage: {tag: %s}, nodePort: %d, operator: %t, webhook: %s}", formerTag, f.kube, f.etcd, port, operator, f.certificates(t)))
	chart := filepath.Join(repository(t), formerChart)
	if operator {
		s.does(t, f.helm+"template "+name+" "+chart+" -n "+namespace+" -f former.yaml | "+f.host+"apply -f -")
		s.does(t, f.host+"wait deployments --all --for=condition=Available --timeout=2m")
	} else {
		s.does(t, f.helm+"install "+name+" "+chart+" -n "+namespace+" -f former.yaml --wait --timeout 3m", "STATUS: deployed")
	}
	s.does(t, f.plane+"wait apiservice v1alpha1.cluster.karmada.io --for=condition=Available --timeout=60s")
	s.does(t, f.host+"wait job "+name+"-static-resource --for=condition=Complete --timeout=60s")
	s.does(t, "kubectl config view"+at+" --context host --minify --flatten | sed 's#server: .*#server: https://"+address(t, "host")+":6443#' > member.config")
	s.does(t, "karmadactl join moved --kubeconfig "+s.config+" --cluster-kubeconfig member.config")
	s.file(t, "shop.yaml", "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web}\nspec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [moved]}}}\n")
	s.does(t, f.plane+"create namespace "+f.shop())
	f.plane += "-n " + f.shop() + " "
	s.does(t, f.plane+"create deployment web --image nginx:1.19.0 && "+f.plane+"apply -f shop.yaml && "+f.plane+"create serviceaccount robot")
	s.prints(t, f.plane+"get deployment web", row{"READY": "1/1"})
	f.token = strings.TrimSpace(s.does(t, f.plane+"create token robot --duration 2h"))
	f.goesOn(t)
	return f
}

// shop is the namespace of the Deployment.
func (f *former) shop() string { return "shop-" + f.namespace }

// untouched is what stays: Works, bindings, the Deployment of the member, and the pod of etcd.
func (f *former) untouched(t *testing.T) string {
	t.Helper()
	const fields = "-o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.resourceVersion}{\"\\n\"}{end}'"
	etcd := "etcd-0"
	if f.operator {
		etcd = f.name + "-etcd-0"
	}
	return f.does(t, f.plane+"get works,resourcebindings,clusterresourcebindings -A "+fields) + f.does(t, f.host+"-n "+f.shop()+" get deployments "+fields) +
		f.does(t, f.host+"get pod "+etcd+" -o jsonpath='{.metadata.uid} {.status.containerStatuses[0].restartCount}'")
}

// goesOn expects that the token is valid, a policy is accepted, and the member is ready.
func (f *former) goesOn(t *testing.T) {
	t.Helper()
	f.does(t, fmt.Sprintf("kubectl --kubeconfig /dev/null --server https://%s:%d --insecure-skip-tls-verify --token %s auth whoami", address(t, "host"), f.port, f.token), ":"+f.shop()+":robot")
	f.does(t, f.plane+"annotate --overwrite propagationpolicy web again="+fmt.Sprint(time.Now().Unix()))
	f.prints(t, f.plane+"get clusters", row{"NAME": "moved", "READY": "True"})
}

// interrupted runs what may stop the API for a limited time.
func (f *former) interrupted(t *testing.T, what string, limit time.Duration, do func()) {
	t.Helper()
	w, begun := f.write(), time.Now()
	do()
	accepted, silence := w.stop()
	t.Logf("%s in %s, of %d writes none was accepted for %s", what, time.Since(begun), len(accepted), silence)
	if silence > limit || len(accepted) == 0 {
		t.Errorf("%s: %d writes, none for %s", what, len(accepted), silence)
	}
}

// steps are the commands that adopt prints, for the images of the build and the cluster of the test: that which goes on, and back.
func (f *former) steps(t *testing.T, refusal string) (on, back string) {
	t.Helper()
	refused := f.run(f.adopt)
	printed := regexp.MustCompile(`"((?:helm|kubectl) [^"]*)"`).FindAllStringSubmatch(refused.err, -1)
	if refused.code == 0 || !strings.Contains(refused.err, refusal) || len(printed) != 2 {
		t.Fatalf("adopt prints\n%s%s", refused.out, refused.err)
	}
	own := func(step string) string {
		step = regexp.MustCompile(`(karmada(-operator)?)-\S+\.tgz`).ReplaceAllString(step, filepath.Join(repository(t), "charts/$1"))
		step = regexp.MustCompile(`(karmadaImageVersion|operator.image.tag)=\S+`).ReplaceAllString(step, "$1="+f.version)
		return regexp.MustCompile(`(^|&& )(helm|kubectl) `).ReplaceAllStringFunc(step, func(start string) string {
			return strings.NewReplacer("helm ", f.helm, "kubectl ", f.host).Replace(start)
		})
	}
	return own(printed[0][1]), own(printed[1][1])
}

// TestAdopt_Chart has a release of Karmada's chart go on with the chart of this project, by the steps that the command prints: certificates,
// tokens, etcd, Works, bindings and objects of the member stay; and back.
func TestAdopt_Chart(t *testing.T) {
	f := newFormer(t, "former", "moved", 31453, false)
	before := f.untouched(t)
	on, back := f.steps(t, "Helm release former has")
	prepare := func() {
		t.Helper()
		f.interrupted(t, "prepared", 5*time.Second, func() {
			f.does(t, f.adopt+"--prepare --force 2>&1", "no longer requires a node of its own", "The control plane is prepared. Go on with")
		})
	}
	prepare()
	if r := f.run(on); r.code == 0 || !strings.Contains(r.err, "additional properties") {
		t.Fatalf("values that the chart does not have:\n%s%s", r.out, r.err)
	}
	f.file(t, "values.yaml", fmt.Sprintf("{apiServer: {image: {tag: %[1]s}, serviceType: NodePort, nodePort: %[2]d}, kubeControllerManager: {image: {tag: %[1]s}}, certs: {auto: {hosts: [localhost, %[3]s]}}}", f.kube, f.port, address(t, "host")))
	_, upgrade, _ := strings.Cut(on, " && ")
	up := func() {
		t.Helper()
		f.interrupted(t, "upgraded", 10*time.Second, func() {
			f.does(t, upgrade+" --timeout 4m", "STATUS: deployed", "etcd stays as Karmada's chart made it")
		})
		if after := f.untouched(t); after != before {
			t.Errorf("it changed\n%s\nto\n%s", before, after)
		}
		f.goesOn(t)
	}
	up()
	f.does(t, "karmadactl certs check --kubeconfig "+kubeconfig+" --context host -n "+f.namespace+" --release "+f.name)
	if everything() {
		// With server-side apply, the Secret of the webhook server, which this release has in its manifest, is a conflict.
		f.does(t, back+" --timeout 3m --force-conflicts")
		f.does(t, f.adopt+"--rollback", "as it was before")
		f.goesOn(t)
		prepare()
		up()
	}
	f.does(t, f.adopt+"--finish", "there is no way back")
	f.says(t, f.host+"get clusterrole former-hook-job", "NotFound")
	f.says(t, f.host+"get configmap former-crds-kustomization", "NotFound")
	// An upgrade from now on is one of this chart.
	f.does(t, upgrade+" --set scheduler.logVerbosity=3 --timeout 4m", "STATUS: deployed")
	if after := f.untouched(t); after != before {
		t.Errorf("a second upgrade changed\n%s\nto\n%s", before, after)
	}
}

// TestAdopt_Operator puts the operator of this project in the place of Karmada's, by the steps that the command prints: its Karmada is ready
// again, with the same etcd, Works, bindings and objects of the member; and back.
func TestAdopt_Operator(t *testing.T) {
	f := newFormer(t, "former-karmada", "operated", 31454, true)
	t.Cleanup(func() {
		f.run(f.host + `patch karmada former-karmada --type=merge -p '{"metadata":{"finalizers":null}}'`)
		f.run(f.helm + "uninstall karmada-operator-next -n operators; " + f.host + "delete --wait=false namespace/operators customresourcedefinition/karmadas.operator.karmada.io")
	})
	// Its operator, which has done what it had to.
	f.does(t, f.host+"apply -f "+repository(t)+"/charts/karmada-operator/files/ && "+f.host+"wait crd karmadas.operator.karmada.io --for=condition=Established --timeout=30s && "+f.host+"create namespace operators && "+f.host+"-n operators create deployment karmada-operator --image "+formerPause(t))
	o := &operator{session: f.session, kube: f.kube, etcd: f.etcd}
	karmada := strings.ReplaceAll(o.karmada(f.name, o.local(), "", map[string]string{"karmadaAPIServer": fmt.Sprintf("serviceType: NodePort, certSANs: [%s]", address(t, "host"))}), "namespace: planes", "namespace: "+f.namespace)
	f.file(t, "karmada.yaml", karmada)
	f.does(t, f.host+"apply -f karmada.yaml")
	before := f.untouched(t)

	on, back := f.steps(t, "the operator of Karmada former-karmada writes")
	f.does(t, f.adopt+"--prepare --force", "The control plane is prepared. Go on with")
	up := func() {
		t.Helper()
		f.interrupted(t, "taken over", 10*time.Second, func() {
			f.does(t, on+" --timeout 2m", "STATUS: deployed")
			f.does(t, f.host+"wait karmada "+f.name+" --for=condition=Ready --timeout=3m")
		})
		if after := f.untouched(t); after != before {
			t.Errorf("it changed\n%s\nto\n%s", before, after)
		}
		f.goesOn(t)
	}
	up()
	if got := f.does(t, f.host+"get deployments -o jsonpath='{range .items[*]}{.spec.template.spec.containers[1:]}{end}'"); got != "" {
		t.Errorf("containers of the former operator stay: %s", got)
	}
	if got := f.does(t, f.host+"-n operators get deployment karmada-operator -o jsonpath={.spec.replicas}"); got != "0" {
		t.Errorf("the former operator has %s replicas", got)
	}
	const generations = "get deployments,statefulsets,services -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.generation} {.metadata.resourceVersion}{\"\\n\"}{end}'"
	settled := f.does(t, f.host+generations)
	f.does(t, f.host+"annotate karmada "+f.name+" again=1")
	f.does(t, f.host+"wait karmada "+f.name+" --for=condition=Ready --timeout=1m")
	if got := f.does(t, f.host+generations); got != settled {
		t.Errorf("a second pass changed\n%s\nto\n%s", settled, got)
	}
	if everything() {
		f.does(t, back)
		f.does(t, f.host+"-n operators rollout status deployment karmada-operator --timeout=1m")
		f.goesOn(t)
		up()
	}
	f.does(t, f.adopt+"--finish", "there is no way back")
	f.does(t, f.host+"delete karmada "+f.name+" --timeout=2m")
	f.says(t, f.host+"get deployment former-karmada-apiserver", "NotFound")
}

// formerPause is an image of a program that does nothing.
func formerPause(t *testing.T) string {
	t.Helper()
	return regexp.MustCompile(`(?m)^\S+/pause:\S+`).FindString(docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "ls", "-q"))
}

// certificates writes the Secrets that Karmada makes, and the kubeconfig of the administrator. It returns the pair of the webhook server as a
// value of the chart.
func (f *former) certificates(t *testing.T) string {
	t.Helper()
	now := time.Now()
	files := map[string][]byte{}
	save := func(name string, pair pki.Pair, err error) pki.Pair {
		t.Helper()
		if err == nil {
			files[name+".crt"] = pair.CertPEM()
			files[name+".key"], err = pair.KeyPEM()
		}
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	authority := func(name, commonName string) pki.Pair {
		t.Helper()
		pair, err := pki.NewCA(pki.CAConfig{CommonName: commonName, Algorithm: pki.RSA}, nil, now)
		return save(name, pair, err)
	}
	hosts := []string{
		"kubernetes.default.svc", "*.etcd." + f.namespace + ".svc.cluster.local", "*." + f.namespace + ".svc.cluster.local", "*." + f.namespace + ".svc", "*.karmada-system.svc", "localhost", "127.0.0.1",
		address(t, "host"), "*." + f.name + "-etcd." + f.namespace + ".svc.cluster.local",
	}
	leaf := func(name, commonName, organization string, ca pki.Pair) pki.Pair {
		t.Helper()
		pair, err := pki.NewLeaf(pki.LeafConfig{CommonName: commonName, Organization: []string{organization}, Hosts: hosts, Algorithm: pki.RSA}, ca, now)
		return save(name, pair, err)
	}
	caFile := "server-ca"
	if f.operator {
		caFile = "ca"
	}
	ca := authority(caFile, "karmada")
	masters := leaf("karmada", "system:admin", "system:masters", ca)
	proxy := authority("front-proxy-ca", "front-proxy-ca")
	leaf("front-proxy-client", "front-proxy-client", "", proxy)
	etcd := map[string][]byte{}
	if f.operator {
		leaf("apiserver", "karmada-apiserver", "", ca)
		store := authority("etcd-ca", "karmada-etcd-ca")
		leaf("etcd-server", "karmada-etcd-server", "", store)
		leaf("etcd-client", "karmada-etcd-client", "", store)
		for _, name := range []string{"etcd-ca.crt", "etcd-ca.key", "etcd-server.crt", "etcd-server.key", "etcd-client.crt", "etcd-client.key"} {
			etcd[name] = files[name]
		}
	} else {
		delete(files, "front-proxy-ca.key")
	}

	list := []any{&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}}
	secret := func(name string, data map[string][]byte) {
		meta := metav1.ObjectMeta{Namespace: f.namespace, Name: f.name + "-" + name}
		if f.operator {
			meta.Labels = map[string]string{"app.kubernetes.io/managed-by": "karmada-operator", "app.kubernetes.io/instance": f.name}
		}
		list = append(list, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Data: data})
	}
	for server, outside := range map[string]bool{"https://" + f.name + "-apiserver." + f.namespace + ".svc.cluster.local:5443": false, fmt.Sprintf("https://%s:%d", address(t, "host"), f.port): true} {
		cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: f.name + "-apiserver", Server: server, CA: files[caFile+".crt"], Client: masters})
		if err != nil {
			t.Fatal(err)
		}
		content, err := clientcmd.Write(*cfg)
		if err != nil {
			t.Fatal(err)
		}
		if outside {
			f.file(t, "former.config", string(content))
			continue
		}
		secret("kubeconfig", map[string][]byte{"kubeconfig": content})
	}
	secret("cert", files)
	if f.operator {
		secret("etcd-cert", etcd)
	}
	content, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": list})
	if err != nil {
		t.Fatal(err)
	}
	f.file(t, "secrets.json", string(content))
	f.does(t, f.host+"apply -f secrets.json")
	pair, err := json.Marshal(map[string][]byte{"crt": files["karmada.crt"], "key": files["karmada.key"]})
	if err != nil {
		t.Fatal(err)
	}
	return string(pair)
}
