package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

var key = memory.Key("test", "demo")

// bench is an operator whose installations are recorded.
type bench struct {
	*memory.Env
	*reconciler
	installed []*config.Configuration
	hosts     []string
	fail      error
	loads     int
}

func newBench(t *testing.T, change func(*operatorv1alpha1.Karmada), objects ...client.Object) *bench {
	t.Helper()
	k := &operatorv1alpha1.Karmada{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u", Generation: 1}}
	k.Spec.Components = &operatorv1alpha1.KarmadaComponents{Etcd: &operatorv1alpha1.Etcd{Local: &operatorv1alpha1.LocalEtcd{}}}
	if change != nil {
		change(k)
	}
	b := &bench{Env: memory.New(t, append(objects, k)...)}
	b.reconciler = &reconciler{
		client: b.Client, reader: b.Client, config: &rest.Config{Host: "https://own"}, events: events.New(b.Recorder), now: b.Clock.Now, resync: time.Hour,
		connect: func(*rest.Config) (client.Client, error) { return b.Client, nil },
		load: func(context.Context, *config.Configuration) ([]*apiextensionsv1.CustomResourceDefinition, error) {
			b.loads++
			return []*apiextensionsv1.CustomResourceDefinition{{}}, nil
		},
		install: func(_ context.Context, d installer.Deps, c *config.Configuration) (*installer.Result, error) {
			b.installed, b.hosts = append(b.installed, c), append(b.hosts, d.Host.Host)
			return &installer.Result{Admin: []byte("kubeconfig")}, b.fail
		},
	}
	return b
}

func (b *bench) run() (reconcile.Result, error) {
	return b.Reconcile(b.Context(), reconcile.Request{NamespacedName: key})
}

// ready returns the status, reason and message of the condition Ready.
func (b *bench) ready() string {
	c := meta.FindStatusCondition(memory.Get[*operatorv1alpha1.Karmada](b.Env, key).Status.Conditions, string(operatorv1alpha1.Ready))
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func TestReconcile_Installs(t *testing.T) {
	b := newBench(t, nil)
	if after := b.MustReconcile(b.reconciler, key); after != time.Hour || len(b.installed) != 1 || b.hosts[0] != "https://own" {
		t.Fatalf("after %s, %d installations on %v", after, len(b.installed), b.hosts)
	}
	k := memory.Get[*operatorv1alpha1.Karmada](b.Env, key)
	if !slices.Contains(k.Finalizers, operatorv1alpha1.KarmadaFinalizer) || k.Labels[operatorv1alpha1.DisableCascadingDeletionLabel] != "false" {
		t.Errorf("no finalizer or label: %+v", k.ObjectMeta)
	}
	if b.ready() != "True Completed: karmada init job is completed" || k.Status.ObservedGeneration != 1 || k.Status.KarmadaVersion == "" || k.Status.KubernetesVersion == "" ||
		k.Status.APIServerService.Name != "demo-karmada-apiserver" || *k.Status.SecretRef != (operatorv1alpha1.LocalSecretReference{Namespace: "test", Name: "demo-karmada-admin-config"}) {
		t.Errorf("%s: %+v", b.ready(), k.Status)
	}
	secret := memory.Get[*corev1.Secret](b.Env, memory.Key("test", "demo-karmada-admin-config"))
	if string(secret.Data[adminKey]) != "kubeconfig" || secret.Labels[components.ManagedByLabel] != components.ManagedByOperator {
		t.Errorf("%+v", secret)
	}
	b.Stable(func() { b.MustReconcile(b.reconciler, key) })
}

func TestReconcile_Failures(t *testing.T) {
	b := newBench(t, nil)
	b.fail = errors.New("etcd: no node")
	if _, err := b.run(); err == nil || b.ready() != "False Failed: etcd: no node" {
		t.Errorf("%v, %s", err, b.ready())
	}
	b.fail = nil
	b.MustReconcile(b.reconciler, key)
	if !strings.HasPrefix(b.ready(), "True") {
		t.Error(b.ready())
	}
	if got := b.Events(); len(got) != 1 || !strings.Contains(got[0], "Warning Failed etcd: no node") {
		t.Errorf("got %q", got)
	}
}

func TestReconcile_Suspended(t *testing.T) {
	b := newBench(t, func(k *operatorv1alpha1.Karmada) { k.Spec.Suspend = new(true) })
	b.MustReconcile(b.reconciler, key)
	if writes := b.Writes(); len(writes) > 0 || len(b.installed) > 0 {
		t.Errorf("%v", writes)
	}
}

func TestReconcile_Refused(t *testing.T) {
	b := newBench(t, func(k *operatorv1alpha1.Karmada) { k.Spec.Components.Etcd = &operatorv1alpha1.Etcd{} })
	b.MustReconcile(b.reconciler, key)
	if len(b.installed) > 0 || !strings.HasPrefix(b.ready(), "False ValidationError: spec.components.etcd: Required value: unexpected empty etcd configuration") {
		t.Error(b.ready())
	}
	b.Stable(func() { b.MustReconcile(b.reconciler, key) })
}

func secret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name}, Data: bytesOf(data)}
}

func bytesOf(data map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for name, text := range data {
		out[name] = []byte(text)
	}
	return out
}

// TestReconcile_Secrets reads Secrets that the Karmada refers to, in its own namespace only.
func TestReconcile_Secrets(t *testing.T) {
	ref := func(namespace, name string) func(*operatorv1alpha1.Karmada) {
		return func(k *operatorv1alpha1.Karmada) {
			k.Spec.CustomCertificate = &operatorv1alpha1.CustomCertificate{APIServerCACert: &operatorv1alpha1.LocalSecretReference{Namespace: namespace, Name: name}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Karmada)
		want   string
	}{
		"a Secret":              {ref("", "ca"), "True"},
		"in the same namespace": {ref("test", "ca"), "True"},
		"in another namespace":  {ref("kube-system", "ca"), "False Failed: spec.customCertificate.apiServerCACert: the Secret kube-system/ca is in another namespace"},
		"that is not there":     {ref("", "none"), "False Failed: spec.customCertificate.apiServerCACert: secrets \"none\" not found"},
		"without a key":         {ref("", "half"), "False Failed: spec.customCertificate.apiServerCACert: the Secret test/half has no key \"tls.key\""},
		"etcd": {func(k *operatorv1alpha1.Karmada) {
			k.Spec.Components.Etcd = &operatorv1alpha1.Etcd{External: &operatorv1alpha1.ExternalEtcd{Endpoints: []string{"https://e"}, SecretRef: operatorv1alpha1.LocalSecretReference{Name: "ca"}}}
		}, "False Failed: spec.components.etcd.external.secretRef: the Secret test/ca has no key \"ca.crt\""},
	} {
		b := newBench(t, tc.change, secret("ca", map[string]string{"tls.crt": "c", "tls.key": "k"}), secret("half", map[string]string{"tls.crt": "c"}))
		_, _ = b.run()
		if !strings.HasPrefix(b.ready(), tc.want) {
			t.Errorf("%s: %s, want %s", name, b.ready(), tc.want)
		}
		if tc.want == "True" && string(b.installed[0].Certificates.CA.Key) != "k" {
			t.Errorf("%s: %+v", name, b.installed[0].Certificates)
		}
	}
}

// TestReconcile_RemoteHost installs in the cluster of a kubeconfig, with the endpoint that is given.
func TestReconcile_RemoteHost(t *testing.T) {
	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"https://remote"}}]}`
	change := func(k *operatorv1alpha1.Karmada) {
		k.Spec.HostCluster = &operatorv1alpha1.HostCluster{SecretRef: &operatorv1alpha1.LocalSecretReference{Name: "host"}}
		k.Spec.Components.KarmadaAPIServer = &operatorv1alpha1.KarmadaAPIServer{ServiceType: corev1.ServiceTypeNodePort}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "demo-karmada-apiserver", Labels: map[string]string{components.ManagedByLabel: components.ManagedByOperator}}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{NodePort: 31234}}}}
	b := newBench(t, change, secret("host", map[string]string{"kubeconfig": kubeconfig}), service)
	b.MustReconcile(b.reconciler, key)
	if b.hosts[0] != "https://remote" || b.installed[0].APIServer.NodePort != 31234 {
		t.Errorf("%v, %+v", b.hosts, b.installed[0].APIServer)
	}
	memory.Change(b.Env, key, func(k *operatorv1alpha1.Karmada) { k.Spec.HostCluster.APIEndpoint = "https://endpoint" })
	b.MustReconcile(b.reconciler, key)
	if b.hosts[1] != "https://endpoint" {
		t.Error(b.hosts)
	}
}

// TestReconcile_OwnHost sends the operator's own credentials to no address that a Karmada has.
func TestReconcile_OwnHost(t *testing.T) {
	b := newBench(t, func(k *operatorv1alpha1.Karmada) {
		k.Spec.HostCluster = &operatorv1alpha1.HostCluster{APIEndpoint: "http://elsewhere"}
	})
	b.MustReconcile(b.reconciler, key)
	if len(b.installed) > 0 || !strings.HasPrefix(b.ready(), "False ValidationError: spec.hostCluster.apiEndpoint: Forbidden") {
		t.Errorf("%v, %s", b.hosts, b.ready())
	}
}

// TestReconcile_RemoteHostWithoutFiles reads no file and runs no command of the operator for the kubeconfig of a user.
func TestReconcile_RemoteHostWithoutFiles(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of the operator"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{`"token":"t","tokenFile":"` + token + `"`, `"client-certificate":"/c","client-key":"/k"`, `"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"/bin/c","interactiveMode":"Never"}`} {
		kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"https://remote"}}],"users":[{"name":"u","user":{` + user + `}}]}`
		b := newBench(t, func(k *operatorv1alpha1.Karmada) {
			k.Spec.HostCluster = &operatorv1alpha1.HostCluster{SecretRef: &operatorv1alpha1.LocalSecretReference{Name: "host"}}
			k.Spec.Components.KarmadaAPIServer = &operatorv1alpha1.KarmadaAPIServer{ServiceType: corev1.ServiceTypeNodePort}
		}, secret("host", map[string]string{"kubeconfig": kubeconfig}))
		if _, err := b.run(); err == nil || len(b.installed) > 0 || !strings.Contains(b.ready(), "it names files or a command") {
			t.Errorf("%s: %v, %s", user, err, b.ready())
		}
	}
}

// TestReconcile_LoadBalancer waits for the address, which is a name of the certificate.
func TestReconcile_LoadBalancer(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "demo-karmada-apiserver", Labels: map[string]string{components.ManagedByLabel: components.ManagedByOperator}}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{NodePort: 31234}}}}
	b := newBench(t, func(k *operatorv1alpha1.Karmada) {
		k.Spec.Components.KarmadaAPIServer = &operatorv1alpha1.KarmadaAPIServer{ServiceType: corev1.ServiceTypeLoadBalancer}
	}, service)
	if after := b.MustReconcile(b.reconciler, key); after != addressInterval || b.ready() != "False Progressing: "+errNoAddress.Error() || len(b.installed) > 0 {
		t.Fatalf("after %s, %s", after, b.ready())
	}
	for _, tc := range []struct {
		ingress corev1.LoadBalancerIngress
		server  string
	}{{corev1.LoadBalancerIngress{IP: "10.0.0.1"}, "https://10.0.0.1:5443"}, {corev1.LoadBalancerIngress{Hostname: "lb.example"}, "https://lb.example:5443"}, {corev1.LoadBalancerIngress{IP: "fd00::1"}, "https://[fd00::1]:5443"}} {
		memory.Change(b.Env, client.ObjectKeyFromObject(service), func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{tc.ingress} })
		b.MustReconcile(b.reconciler, key)
		c := b.installed[len(b.installed)-1]
		if c.APIServer.Server != tc.server || !slices.Contains(slices.Concat(c.Certificates.ExternalIP, c.Certificates.ExternalDNS), tc.ingress.IP+tc.ingress.Hostname) {
			t.Errorf("%s: %q, %+v", tc.server, c.APIServer.Server, c.Certificates)
		}
	}
}

// TestReconcile_ForeignControlPlane leaves what it did not make.
func TestReconcile_ForeignControlPlane(t *testing.T) {
	foreign := secret("demo-karmada-cert", map[string]string{"apiserver.crt": "c"})
	reference := foreign.DeepCopy()
	reference.Labels = map[string]string{components.ManagedByLabel: components.ManagedByOperator}
	other := foreign.DeepCopy()
	other.Labels = map[string]string{components.ManagedByLabel: components.ManagedByOperator, components.InstanceLabel: "demo-karmada"}
	meta := metav1.ObjectMeta{Namespace: "test", Name: "demo-karmada-scheduler"}
	for name, tc := range map[string]struct {
		object client.Object
		want   string
	}{"a Deployment": {&appsv1.Deployment{ObjectMeta: meta}, "there is a Deployment test/demo-karmada-scheduler, which is not of this Karmada"}, "a Service": {&corev1.Service{ObjectMeta: meta}, "there is a Service"}, "of others": {foreign, "is not of this Karmada"}, "of another operator, without its authority": {reference, "has not the certificates of a control plane"}, "of a Karmada with the same names": {other, "is of Karmada demo-karmada"}} {
		b := newBench(t, nil, tc.object)
		_, _ = b.run()
		if len(b.installed) > 0 || !strings.Contains(b.ready(), tc.want) {
			t.Errorf("%s: %s", name, b.ready())
		}
	}
}

// TestReconcile_TakesOver takes a control plane of Karmada's operator over.
func TestReconcile_TakesOver(t *testing.T) {
	cert := secret("demo-karmada-cert", sharedCertificates(t))
	cert.Labels = map[string]string{components.ManagedByLabel: components.ManagedByOperator, components.InstanceLabel: "demo"}
	b := newBench(t, nil, cert)
	if _, err := b.run(); err != nil || len(b.installed) != 1 {
		t.Errorf("%d installations, %v", len(b.installed), err)
	}
	// Images that it would have in common with the former operator.
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "demo-karmada-scheduler", Labels: cert.Labels}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "docker.io/karmada/karmada-scheduler:v1.18.0"}}
	cert.ResourceVersion = ""
	b = newBench(t, func(k *operatorv1alpha1.Karmada) {
		k.Spec.Components.KarmadaScheduler = &operatorv1alpha1.KarmadaScheduler{CommonSettings: operatorv1alpha1.CommonSettings{Image: operatorv1alpha1.Image{ImageTag: "v1.18.0"}}}
	}, cert, d)
	if _, err := b.run(); err == nil || len(b.installed) > 0 || !strings.Contains(b.ready(), "image docker.io/karmada/karmada-scheduler:v1.18.0 for demo-karmada-scheduler") {
		t.Errorf("%v, %s", err, b.ready())
	}
}

// TestTakeFields takes what another operator updated, and leaves what Kubernetes' controllers did, and status.
func TestTakeFields(t *testing.T) {
	updated := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)}
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "demo-karmada-scheduler", ManagedFields: []metav1.ManagedFieldsEntry{
		updated("karmada-operator", ""), updated(kubeControllers, ""), updated("karmada-operator", "status"),
	}}}
	var patches [][]byte
	h := &host{Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
		data, err := p.Data(o)
		patches = append(patches, data)
		return err
	}})}
	if err := takeFields(t.Context(), h, d); err != nil || len(patches) != 1 {
		t.Fatalf("%q, %v", patches, err)
	}
	var changes []struct{ Value json.RawMessage }
	if err := json.Unmarshal(patches[0], &changes); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(changes[0].Value, &d.ManagedFields); err != nil {
		t.Fatal(err)
	}
	var managers []string
	for _, m := range d.ManagedFields {
		managers = append(managers, fmt.Sprint(m.Manager, " ", m.Operation, " ", m.Subresource))
	}
	slices.Sort(managers)
	if diff := cmp.Diff([]string{"karmada-operator Update status", "karmadactl-init Apply ", kubeControllers + " Update "}, managers); diff != "" {
		t.Error(diff)
	}
}

// sharedCertificates are those of Karmada's operator.
func sharedCertificates(t *testing.T) map[string]string {
	t.Helper()
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "karmada", Algorithm: pki.ECDSA}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := pki.NewLeaf(pki.LeafConfig{CommonName: "system:admin", Organization: []string{"system:masters"}, Algorithm: pki.ECDSA}, ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"apiserver.crt": "c"}
	for name, p := range map[string]pki.Pair{"ca": ca, "karmada": pair} {
		key, err := p.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		out[name+".crt"], out[name+".key"] = string(p.CertPEM()), string(key)
	}
	return out
}

// TestDefinitions downloads once, or for each pass.
func TestDefinitions(t *testing.T) {
	for policy, want := range map[operatorv1alpha1.DownloadPolicy]int{operatorv1alpha1.DownloadIfNotPresent: 1, operatorv1alpha1.DownloadAlways: 3} {
		b := newBench(t, func(k *operatorv1alpha1.Karmada) {
			k.Spec.CRDTarball = &operatorv1alpha1.CRDTarball{HTTPSource: &operatorv1alpha1.HTTPSource{URL: "https://example.org/crds.tar.gz"}, CRDDownloadPolicy: &policy}
		})
		for range 3 {
			b.MustReconcile(b.reconciler, key)
		}
		if b.loads != want {
			t.Errorf("%s: %d downloads, want %d", policy, b.loads, want)
		}
	}
}

// TestDelete removes what has the labels, and nothing else; or all stays.
func TestDelete(t *testing.T) {
	for label, gone := range map[string]bool{"false": true, "": true, "true": false, "yes": false} {
		managed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "demo-karmada-scheduler", Labels: map[string]string{components.ManagedByLabel: components.ManagedByOperator, components.InstanceLabel: "demo"}}}
		other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "other-karmada-scheduler", Labels: map[string]string{components.ManagedByLabel: components.ManagedByOperator, components.InstanceLabel: "other"}}}
		b := newBench(t, func(k *operatorv1alpha1.Karmada) {
			k.Finalizers, k.DeletionTimestamp = []string{operatorv1alpha1.KarmadaFinalizer}, new(metav1.Now())
			if label != "" {
				k.Labels = map[string]string{operatorv1alpha1.DisableCascadingDeletionLabel: label}
			}
		}, managed, other, secret("theirs", nil))
		b.MustReconcile(b.reconciler, key)
		err := b.Stored.Get(t.Context(), client.ObjectKeyFromObject(managed), &appsv1.Deployment{})
		if apierrors.IsNotFound(err) != gone {
			t.Errorf("label %q: %v", label, err)
		}
		for _, kept := range []client.Object{other, secret("theirs", nil)} {
			if err := b.Stored.Get(t.Context(), client.ObjectKeyFromObject(kept), kept.DeepCopyObject().(client.Object)); err != nil {
				t.Errorf("label %q: %v", label, err)
			}
		}
		if err := b.Stored.Get(t.Context(), key, &operatorv1alpha1.Karmada{}); !apierrors.IsNotFound(err) {
			t.Errorf("label %q: the Karmada stays: %v", label, err)
		}
	}
}
