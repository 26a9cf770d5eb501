//go:build kind

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
)

// operator is an installed karmada-operator, and a namespace with Karmadas on the host of the federation.
type operator struct {
	*session
	// kubectl is the beginning of a command in the namespace of the Karmadas, and own in that of the operator.
	kubectl, own string
	// pod is that of the operator.
	pod string
	// version is the tag of the images of the build, kube and etcd those of images that the nodes have, and pause the name of one.
	version, kube, etcd, pause string
}

// TestOperator installs the operator by its chart. It makes control planes of Karmadas, keeps them as they are wanted, changes them with
// the spec, and removes them.
func TestOperator(t *testing.T) {
	o := installOperator(t)
	t.Run("ready", o.testReady)
	if t.Failed() {
		return // the others need the first control plane
	}
	t.Run("second pass", o.testSecondPass)
	t.Run("init", o.testInit)
	t.Run("restored", o.testRestored)
	t.Run("spec", o.testSpec)
	t.Run("invalid", o.testInvalid)
	t.Run("other hosts and stores", o.testOthers)
	t.Run("deletion", o.testDeletion)
	if everything() {
		t.Run("rights", o.testRights)
	}
	if log := o.does(t, o.own+"logs "+o.pod); strings.Contains(log, "forbidden") {
		t.Errorf("the operator lacks rights:\n%s", log)
	}
}

func installOperator(t *testing.T) *operator {
	t.Helper()
	if _, err := exec.LookPath("helm"); err != nil {
		t.Fatalf("hack/e2e-kind.sh builds helm: %v", err)
	}
	s := federationSession(t)
	const host = "kubectl --context host "
	o := &operator{session: s, kubectl: host + "-n planes ", own: host + "-n operator "}
	images := docker(t, "exec", node("host"), "ctr", "-n", "k8s.io", "images", "ls", "-q")
	for to, pattern := range map[*string]string{
		&o.version: `karmada/karmada-operator:(\S+)`, &o.kube: `kube-apiserver:(\S+)`, &o.etcd: `/etcd:(\S+)`, &o.pause: `(?m)^(\S+/pause:\S+)`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(images)
		if found == nil {
			t.Fatalf("no image %s on the host:\n%s", pattern, images)
		}
		*to = found[1]
	}
	chart, err := filepath.Abs("../../charts/karmada-operator")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Without the operator nobody removes finalizers.
		s.run(o.kubectl + "get karmadas -o name | xargs -r " + o.kubectl + `patch --type=merge -p '{"metadata":{"finalizers":null}}'`)
		s.run("helm --kube-context host -n operator uninstall karmada-operator")
		s.run(host + "delete --wait=false namespace/planes namespace/operator customresourcedefinition/karmadas.operator.karmada.io")
	})
	if everything() {
		o.audit(t)
	}
	s.does(t, "helm --kube-context host -n operator install karmada-operator "+chart+" --create-namespace --wait --timeout 2m --set operator.image.tag="+o.version, "STATUS: deployed")
	o.pod = strings.TrimSpace(s.does(t, o.own+"get pods -o jsonpath='{.items[0].metadata.name}'"))
	s.does(t, host+"create namespace planes")
	return o
}

// karmada returns a Karmada with images that the nodes have and small requests. parts are further settings of its components, and spec is
// further fields of the spec.
func (o *operator) karmada(name, etcd, spec string, parts map[string]string) string {
	all := map[string]string{
		"karmadaAPIServer": "imageTag: " + o.kube, "kubeControllerManager": "imageTag: " + o.kube, "karmadaMetricsAdapter": "replicas: 1",
		"karmadaAggregatedAPIServer": "", "karmadaControllerManager": "", "karmadaScheduler": "", "karmadaWebhook": "",
	}
	for part, more := range parts {
		all[part] = strings.TrimPrefix(all[part]+", "+more, ", ")
	}
	text := "apiVersion: operator.karmada.io/v1alpha1\nkind: Karmada\nmetadata: {name: " + name + ", namespace: planes}\nspec:\n" + spec + "  components:\n    etcd: {" + etcd + "}\n"
	for _, part := range slices.Sorted(maps.Keys(all)) {
		text += "    " + part + ": {" + small + ", " + all[part] + "}\n"
	}
	return text
}

const (
	// small are requests of which many fit a node.
	small    = "resources: {requests: {cpu: 20m}}"
	nodePort = "serviceType: NodePort"
	store    = "first-karmada-etcd-client.planes.svc.cluster.local"
)

// local is an etcd of the control plane, whose certificate has the name by which the second one reaches the store of the first one.
func (o *operator) local() string {
	return "local: {imageTag: " + o.etcd + ", serverCertSANs: [" + store + "], " + small + "}"
}

// apply applies Karmadas and waits until they are ready and nothing more is to be done.
func (o *operator) apply(t *testing.T, documents ...string) {
	t.Helper()
	o.file(t, "karmada.yaml", strings.Join(documents, "\n---\n"))
	o.pass(t, o.kubectl+"apply -f karmada.yaml")
	o.does(t, o.kubectl+"wait -f karmada.yaml --for=condition=Ready --timeout=60s")
	o.idle(t, -1)
}

// get returns a Karmada.
func (o *operator) get(t *testing.T, name string) *operatorv1alpha1.Karmada {
	t.Helper()
	k := &operatorv1alpha1.Karmada{}
	if err := json.Unmarshal([]byte(o.does(t, o.kubectl+"get karmada "+name+" -o json")), k); err != nil {
		t.Fatal(err)
	}
	return k
}

// metrics returns the sum of the series of the operator that a pattern matches.
func (o *operator) metrics(pattern string) (sum float64, err error) {
	r := o.run(o.own + "get --raw /api/v1/namespaces/operator/pods/" + o.pod + ":8080/proxy/metrics")
	for _, found := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(r.out, -1) {
		n, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	if r.code != 0 {
		return 0, fmt.Errorf("the metrics of the operator: %s", r.err)
	}
	return sum, nil
}

const (
	passes = `controller_runtime_reconcile_total\{.*\}`
	queued = `(?:controller_runtime_active_workers|workqueue_depth)\{.*\}`
	writes = `rest_client_requests_total\{.*,host="[^"]*:443",method="(?:POST|PATCH|DELETE)"\}`
)

// idle waits until the operator has ended more than a number of passes, and no other runs or is queued. It returns the number.
func (o *operator) idle(t *testing.T, more float64) (done float64) {
	t.Helper()
	within(t, 90*time.Second, func() error {
		busy, err := o.metrics(queued)
		if err != nil {
			return err
		}
		if done, err = o.metrics(passes); err != nil {
			return err
		}
		if busy > 0 || done <= more {
			return fmt.Errorf("%v passes, more than %v are wanted; %v run or are queued", done, more, busy)
		}
		return nil
	})
	return done
}

// pass runs a line that enqueues a Karmada, and waits until the operator has reconciled it and is idle.
func (o *operator) pass(t *testing.T, line string) {
	t.Helper()
	before := o.idle(t, -1)
	o.does(t, line)
	o.idle(t, before)
}

// relabel has the operator reconcile the first Karmada.
func (o *operator) relabel(t *testing.T) {
	t.Helper()
	o.pass(t, o.kubectl+"label karmada first pass="+strconv.FormatInt(time.Now().UnixNano(), 10)+" --overwrite")
}

// admin writes the kubeconfig of a control plane to a file of its name, and returns the flag that names it.
func (o *operator) admin(t *testing.T, name string) string {
	t.Helper()
	o.does(t, o.kubectl+"get secret "+name+`-karmada-admin-config -o jsonpath='{.data.karmada\.config}' | base64 -d > `+name+".yaml")
	return "--kubeconfig " + name + ".yaml "
}

func (o *operator) testReady(t *testing.T) {
	begun := time.Now()
	o.apply(t, o.karmada("first", o.local(), "", map[string]string{"karmadaAPIServer": nodePort}))
	k := o.get(t, "first")
	took := k.Status.Conditions[0].LastTransitionTime.Sub(k.CreationTimestamp.Time)
	t.Logf("Ready after %s; idle after %s", took, time.Since(begun))
	want := operatorv1alpha1.KarmadaStatus{
		ObservedGeneration: k.Generation, KarmadaVersion: o.version, KubernetesVersion: o.kube, Conditions: k.Status.Conditions,
		SecretRef:        &operatorv1alpha1.LocalSecretReference{Namespace: "planes", Name: "first-karmada-admin-config"},
		APIServerService: &operatorv1alpha1.APIServerService{Name: "first-karmada-apiserver"},
	}
	if got, want := fmt.Sprintf("%+v", jsonOf(t, k.Status)), fmt.Sprintf("%+v", jsonOf(t, want)); got != want {
		t.Errorf("status %s, want %s", got, want)
	}
	at := o.admin(t, "first")
	o.does(t, "kubectl "+at+"get clusters")
	o.does(t, "kubectl "+at+"wait --for=condition=Available --timeout=30s apiservice/v1alpha1.cluster.karmada.io apiservice/v1beta1.metrics.k8s.io")
	o.file(t, "policy.yaml", "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n")
	o.does(t, "kubectl "+at+"apply -n default -f policy.yaml")
	o.does(t, "karmadactl status "+at, "no problems", "etcd ok")
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testSecondPass counts what the operator writes on the host when nothing is to be changed.
func (o *operator) testSecondPass(t *testing.T) {
	o.does(t, o.kubectl+"rollout status deployments,statefulsets --timeout=60s")
	versions := o.kubectl + `get deployments,statefulsets,services,secrets,poddisruptionbudgets -o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}'`
	before := o.does(t, versions)
	wrote, err := o.metrics(writes)
	if err != nil || wrote == 0 {
		t.Fatalf("%v writes, %v", wrote, err)
	}
	o.relabel(t)
	if again, err := o.metrics(writes); err != nil || again != wrote {
		t.Errorf("a pass wrote %v times, %v", again-wrote, err)
	}
	if after := o.does(t, versions); after != before {
		t.Errorf("a pass changed\n%sto\n%s", before, after)
	}
}

// testInit is refused by the control plane of an operator.
func (o *operator) testInit(t *testing.T) {
	o.says(t, "karmadactl init --context host -n planes --karmada-data="+o.home+"/init", "namespace planes has the control plane of Karmada first, which karmada-operator manages")
}

// testRestored has others change and delete what the operator manages.
func (o *operator) testRestored(t *testing.T) {
	o.pass(t, o.kubectl+"scale deployment first-karmada-scheduler --replicas=2 && "+
		o.kubectl+`patch deployment first-karmada-webhook -p '{"spec":{"template":{"spec":{"containers":[{"name":"theirs","image":"`+o.pause+`"}]}}}}'`)
	o.pass(t, o.kubectl+`patch deployment first-karmada-kube-controller-manager --type=json -p '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+o.pause+`"}]' && `+
		o.kubectl+"delete deployment/first-karmada-controller-manager service/first-karmada-webhook")
	eventually(t, func() error {
		r := o.run(o.kubectl + "get service/first-karmada-webhook -o name && " + o.kubectl + "rollout status --timeout=30s deployment/first-karmada-controller-manager")
		if r.code != 0 {
			return fmt.Errorf("not restored: %s%s", r.out, r.err)
		}
		return nil
	})
	o.does(t, o.kubectl+"wait karmada/first --for=condition=Ready --timeout=60s")
	o.does(t, o.kubectl+"get deployment first-karmada-kube-controller-manager -o jsonpath='{.spec.template.spec.containers[0].image}'", ":"+o.kube)
	o.does(t, o.kubectl+"get deployment first-karmada-scheduler -o jsonpath={.spec.replicas}", "2")
	o.does(t, o.kubectl+"get deployment first-karmada-webhook -o jsonpath='{.spec.template.spec.containers[*].name}'", "theirs")
}

// testSpec adds to the spec. testOthers takes a part of it out again.
func (o *operator) testSpec(t *testing.T) {
	o.apply(t, o.karmada("first", o.local(), "", map[string]string{
		"karmadaAPIServer":           nodePort + ", podDisruptionBudgetConfig: {minAvailable: 1}, sidecarContainers: [{name: beside, image: '" + o.pause + "'}]",
		"karmadaAggregatedAPIServer": "replicas: 2", "karmadaScheduler": "extraArgs: {v: '5'}", "karmadaDescheduler": small,
	}))
	if k := o.get(t, "first"); k.Status.ObservedGeneration != k.Generation {
		t.Errorf("generation %d, observed %d", k.Generation, k.Status.ObservedGeneration)
	}
	o.does(t, o.kubectl+"rollout status --timeout=60s deployment/first-karmada-descheduler deployment/first-karmada-aggregated-apiserver deployment/first-karmada-scheduler deployment/first-karmada-apiserver")
	for line, want := range map[string]string{
		"deployment first-karmada-aggregated-apiserver -o jsonpath={.status.readyReplicas}":            "2",
		"deployment first-karmada-scheduler -o jsonpath='{.spec.template.spec.containers[0].command}'": `"--v=5"`,
		"deployment first-karmada-apiserver -o jsonpath='{.spec.template.spec.containers[*].name}'":    "beside",
		"poddisruptionbudget first-karmada-apiserver -o jsonpath={.spec.minAvailable}":                 "1",
	} {
		o.does(t, o.kubectl+"get "+line, want)
	}
}

// testInvalid names the field that cannot be used.
func (o *operator) testInvalid(t *testing.T) {
	o.file(t, "invalid.yaml", o.karmada("invalid", "external: {endpoints: [nowhere], secretRef: {name: none}}", "", nil))
	o.pass(t, o.kubectl+"apply -f invalid.yaml")
	ready := o.get(t, "invalid").Status.Conditions[0]
	if ready.Reason != operatorv1alpha1.ReasonValidationError || !strings.Contains(ready.Message, "spec.components.etcd.external.endpoints[0]") {
		t.Errorf("%+v", ready)
	}
	o.does(t, o.kubectl+"delete -f invalid.yaml --timeout=30s")
}

// testOthers takes parts of the first control plane out, and installs two more control planes in the namespace: one with an authority of the user and the etcd of the first one, the other
// on a host cluster that a kubeconfig names.
func (o *operator) testOthers(t *testing.T) {
	o.does(t, "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.crt -days 30 -subj /CN=authority-of-the-test -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature")
	o.does(t, o.kubectl+"create secret tls authority --cert=ca.crt --key=ca.key")
	for _, name := range []string{"etcd-ca.crt", "etcd-client.crt", "etcd-client.key"} {
		o.does(t, o.kubectl+"get secret first-karmada-cert -o jsonpath='{.data."+strings.ReplaceAll(name, ".", `\.`)+"}' | base64 -d > "+name)
	}
	o.does(t, o.kubectl+"create secret generic store --from-file=ca.crt=etcd-ca.crt --from-file=tls.crt=etcd-client.crt --from-file=tls.key=etcd-client.key")
	o.does(t, "kind get kubeconfig --internal --name "+strings.TrimSuffix(node("host"), "-control-plane")+" | sed 's#server: .*#server: https://"+address(t, "host")+":6443#' > host.yaml")
	o.does(t, o.kubectl+"create secret generic host --from-file=kubeconfig=host.yaml")

	begun := time.Now()
	o.apply(t,
		o.karmada("first", o.local(), "", map[string]string{"karmadaAPIServer": nodePort, "karmadaAggregatedAPIServer": "replicas: 2"}),
		o.karmada("second", "external: {endpoints: ['https://"+store+":2379'], secretRef: {name: store}}",
			"  customCertificate: {apiServerCACert: {name: authority}}\n", map[string]string{"karmadaAPIServer": "extraArgs: {etcd-prefix: /second}"}),
		o.karmada("third", o.local(), "  hostCluster: {secretRef: {name: host}}\n", map[string]string{"karmadaAPIServer": nodePort}))
	t.Logf("two more are idle after %s", time.Since(begun))
	o.says(t, o.kubectl+"get deployment first-karmada-descheduler", "NotFound")
	o.says(t, o.kubectl+"get poddisruptionbudget first-karmada-apiserver", "NotFound")
	if names := o.does(t, o.kubectl+"get deployment first-karmada-apiserver -o jsonpath='{.spec.template.spec.containers[*].name}'"); strings.Contains(names, "beside") {
		t.Errorf("the API server has the containers %s", names)
	}
	o.admin(t, "second")
	o.does(t, "grep certificate-authority-data second.yaml | sed 's/.*: //' | base64 -d | openssl x509 -noout -subject", "authority-of-the-test")
	o.does(t, "grep client-certificate-data second.yaml | sed 's/.*: //' | base64 -d | openssl verify -CAfile ca.crt", "OK")
	o.does(t, "grep server: second.yaml", "https://second-karmada-apiserver.planes.svc.cluster.local:5443")
	o.says(t, o.kubectl+"get statefulset second-karmada-etcd", "NotFound")
	third := o.admin(t, "third")
	o.does(t, "kubectl "+third+"apply -n default -f policy.yaml", "created")
	// The control planes have nothing of one another.
	o.does(t, "kubectl "+o.admin(t, "first")+"get propagationpolicies -A -o name", "/p")
	if owners := strings.Fields(o.does(t, o.kubectl+"get deployments -o jsonpath='{range .items[*]}{.metadata.labels.app\\.kubernetes\\.io/instance}{\"\\n\"}{end}' | sort -u")); !slices.Equal(owners, []string{"first", "second", "third"}) {
		t.Errorf("Deployments are of %v", owners)
	}
}

// objects returns the names of what is of a Karmada.
func (o *operator) objects(t *testing.T, name string) string {
	t.Helper()
	return o.does(t, o.kubectl+"get deployments,statefulsets,services,secrets,poddisruptionbudgets -o name -l app.kubernetes.io/managed-by=karmada-operator,app.kubernetes.io/instance="+name)
}

// testDeletion removes control planes, or leaves one because of its label.
func (o *operator) testDeletion(t *testing.T) {
	kept := o.objects(t, "third")
	o.does(t, o.kubectl+"label karmada third operator.karmada.io/disable-cascading-deletion=true --overwrite")
	o.does(t, o.kubectl+"delete karmada second third --timeout=60s")
	if left := o.objects(t, "second"); left != "" {
		t.Errorf("left of the second:\n%s", left)
	}
	if left := o.objects(t, "third"); left != kept || !strings.Contains(left, "deployment.apps/third-karmada-apiserver") {
		t.Errorf("left of the third:\n%s\nof\n%s", left, kept)
	}
	o.does(t, "kubectl --kubeconfig first.yaml get propagationpolicy p -n default")
	o.does(t, o.kubectl+"delete karmada first --timeout=60s")
	if left := o.objects(t, "first"); left != "" {
		t.Errorf("left of the first:\n%s", left)
	}
	if secrets := strings.Fields(o.does(t, o.kubectl+"get secrets -l '!app.kubernetes.io/managed-by' -o name")); !slices.Equal(secrets, []string{"secret/authority", "secret/host", "secret/store"}) {
		t.Errorf("the Secrets of the user: %v", secrets)
	}
	o.does(t, o.kubectl+"get namespace planes -o jsonpath={.status.phase}", "Active")
}
