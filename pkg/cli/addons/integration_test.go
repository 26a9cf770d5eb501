//go:build integration

package addons

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

const namespace = "karmada-system"

// site is a host cluster, which is its own member m1, and a control plane.
type site struct {
	host, plane         *testenv.Cluster
	hostAPI             kubernetes.Interface
	hostClient, planeCl client.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	clusters := testenv.StartAll(t, testenv.Member("host", 1), testenv.ControlPlane())
	s := &site{host: clusters[0], plane: clusters[1], hostAPI: kubernetes.NewForConfigOrDie(clusters[0].Config)}
	for i, c := range []*client.Client{&s.hostClient, &s.planeCl} {
		var err error
		if *c, err = client.New(clusters[i].Config, client.Options{Scheme: kube.NewScheme()}); err != nil {
			t.Fatal(err)
		}
	}
	s.serveClusters(t)
	return s
}

// serveClusters makes the control plane store Clusters, in place of the aggregated API server.
func (s *site) serveClusters(t *testing.T) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusters.cluster.karmada.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: clusterv1alpha1.GroupName, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clusters", Kind: "Cluster"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
	s.create(t, s.planeCl, crd, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error { return s.planeCl.List(ctx, &clusterv1alpha1.ClusterList{}) })
}

func (s *site) create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// token returns a token of a new service account of the host cluster with a ClusterRole, or without rights.
func (s *site) token(t *testing.T, account, role string) string {
	t.Helper()
	s.create(t, s.hostClient, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}})
	if role != "" {
		s.create(t, s.hostClient, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
		})
	}
	request, err := s.hostAPI.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// join makes the host cluster the member m1 in Push mode; m2 is in Pull mode.
func (s *site) join(t *testing.T) {
	t.Helper()
	s.create(t, s.planeCl,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m1"}, Data: map[string][]byte{
			"token": []byte(s.token(t, "controllers", "cluster-admin")), "caBundle": s.host.Config.CAData,
		}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: s.host.Config.Host, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: namespace, Name: "m1"},
		}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}},
	)
}

// install makes the namespace and the Secrets of a control plane in the host cluster.
func (s *site) install(t *testing.T) {
	t.Helper()
	o := config.New()
	o.DataPath, o.Phases.Only = t.TempDir(), []string{phases.Certificates, phases.Namespace}
	if err := o.Complete(nil, "karmadactl", phases.Names()); err != nil {
		t.Fatal(err)
	}
	if _, err := installer.Run(t.Context(), installer.Deps{Program: "karmadactl", Host: s.host.Config, Now: time.Now}, &o); err != nil {
		t.Fatal(err)
	}
}

// run runs "addons" with arguments and returns what it prints.
func (s *site) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := NewCommand(&env.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader("y\n"), Out: &out, ErrOut: &errOut},
		Root:      "karmadactl", Name: "karmadactl", Now: time.Now, Interruptible: context.WithCancel,
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--kubeconfig="+s.host.Kubeconfig, "--karmada-kubeconfig="+s.plane.Kubeconfig))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// mustRun is run without an error; each text must be in the output.
func (s *site) mustRun(t *testing.T, texts []string, args ...string) {
	t.Helper()
	stdout, stderr, err := s.run(t, args...)
	if err != nil {
		t.Fatalf("addons %v: %v\n%s", args, err, stderr)
	}
	for _, text := range texts {
		if !strings.Contains(stdout+stderr, text) {
			t.Errorf("addons %v does not print %q:\n%s%s", args, text, stdout, stderr)
		}
	}
}

// mustFail is run with an error that contains the text.
func (s *site) mustFail(t *testing.T, text string, args ...string) {
	t.Helper()
	stdout, stderr, err := s.run(t, args...)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("addons %v: got %v, want %q\n%s%s", args, err, text, stdout, stderr)
	}
}

func (s *site) hostObject(t *testing.T, name string, o client.Object) {
	t.Helper()
	if err := s.hostClient.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		t.Fatal(err)
	}
}

// left returns the names of the Deployments, Services and labelled Secrets of addons in the host cluster.
func (s *site) left(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.SecretList{}} {
		if err := s.hostClient.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var names struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal(text, &names); err != nil {
			t.Fatal(err)
		}
		for _, item := range names.Items {
			if name := item.Metadata.Name; strings.Contains(name, "estimator") || strings.HasPrefix(name, "m1-") || name == "karmada-descheduler" || name == "karmada-metrics-adapter" || name == "karmada-metrics-adapter-cert" || name == "karmada-search" || name == "karmada-search-cert" {
				out = append(out, name)
			}
		}
	}
	return out
}

func TestAddons(t *testing.T) {
	s := newSite(t)
	s.join(t)
	t.Run("without a control plane", func(t *testing.T) {
		s.mustFail(t, "there is no control plane in namespace karmada-system of the host cluster", "enable", "karmada-descheduler")
		s.create(t, s.hostClient, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		s.mustFail(t, "there is no control plane in namespace karmada-system of the host cluster", "enable", "karmada-descheduler")
	})
	s.install(t)
	t.Run("bad input", func(t *testing.T) { s.badInput(t) })
	t.Run("an estimator with the credentials of the control plane", func(t *testing.T) { s.estimator(t) })
	t.Run("an estimator with credentials that may only read", func(t *testing.T) { s.readOnlyEstimator(t) })
	t.Run("an export", func(t *testing.T) { s.export(t) })
	t.Run("the descheduler", func(t *testing.T) {
		s.mustRun(t, []string{"Enabled: karmada-descheduler"}, "enable", "karmada-descheduler", "--karmada-descheduler-replicas=2")
		d := &appsv1.Deployment{}
		s.hostObject(t, "karmada-descheduler", d)
		if d.Status.ReadyReplicas != 2 {
			t.Errorf("%d pods are ready when it returns, want 2", d.Status.ReadyReplicas)
		}
		if err := s.planeCl.Get(t.Context(), client.ObjectKey{Name: "system:karmada:descheduler"}, &rbacv1.ClusterRole{}); err != nil {
			t.Error(err)
		}
		s.mustRun(t, []string{"| karmada-descheduler         | enabled  |", "| karmada-scheduler-estimator | enabled  |"}, "list", "-C", "m1")
	})
	t.Run("the metrics adapter, whose API is not served", func(t *testing.T) {
		s.mustFail(t, "APIService v1beta1.metrics.k8s.io: timed out after 1s", "enable", "karmada-metrics-adapter", "--apiservice-timeout=1")
		if err := s.planeCl.Get(t.Context(), client.ObjectKey{Name: "v1beta2.custom.metrics.k8s.io"}, &apiregistrationv1.APIService{}); err != nil {
			t.Fatal(err)
		}
		s.mustRun(t, []string{"| karmada-metrics-adapter     | unhealthy |"}, "list", "-C", "m1")
	})
	t.Run("search, whose API is not served", func(t *testing.T) {
		s.mustFail(t, "reading the Deployment karmada-system/karmada-apiserver, which names the etcd", "enable", "karmada-search")
		app := map[string]string{"app": "karmada-apiserver"}
		server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karmada-apiserver"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "karmada-apiserver", Image: "example.org/kube-apiserver", Command: []string{"kube-apiserver", "--etcd-servers=https://store:2379", "--etcd-prefix=/team"},
			}}}},
		}}
		s.create(t, s.hostClient, server)
		s.mustFail(t, "APIService v1alpha1.search.karmada.io: timed out after 1s", "enable", "karmada-search", "--apiservice-timeout=1")
		d := &appsv1.Deployment{}
		s.hostObject(t, "karmada-search", d)
		if command := d.Spec.Template.Spec.Containers[0].Command; !slices.Contains(command, "--etcd-servers=https://store:2379") || !slices.Contains(command, "--etcd-prefix=/team") {
			t.Errorf("its store is not that of the control plane: %v", command)
		}
		if err := s.planeCl.Get(t.Context(), client.ObjectKey{Name: "system:karmada:search"}, &rbacv1.ClusterRole{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("everything is disabled", func(t *testing.T) { s.disable(t) })
}

// export writes the objects of addons to files, and installs nothing.
func (s *site) export(t *testing.T) {
	before, dir := s.left(t), t.TempDir()
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || name != "README.txt" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
		return string(data)
	}
	export := []string{"enable", "karmada-descheduler", "karmada-metrics-adapter", "--export=" + dir}
	s.mustRun(t, []string{"Written to " + dir + ": karmada-descheduler, karmada-metrics-adapter"}, export...)
	host := read("2-host/karmada-metrics-adapter.yaml")
	for file, texts := range map[string][]string{
		"1-control-plane/karmada-descheduler.yaml":     {"kind: ClusterRole\n", "name: system:karmada:descheduler"},
		"2-host/karmada-descheduler.yaml":              {"kind: Deployment\n", "name: karmada-descheduler\n"},
		"2-host/karmada-metrics-adapter.yaml":          {"kind: Deployment\n", "kind: Secret\n", "kind: Service\n"},
		"3-control-plane/karmada-metrics-adapter.yaml": {"kind: APIService\n", "name: v1beta1.metrics.k8s.io\n"},
		"README.txt": {"-f 1-control-plane/\n", "-f 2-host/\n", "rollout status deployment/karmada-metrics-adapter\n", "-f 3-control-plane/\n"},
	} {
		for _, text := range texts {
			if got := read(file); !strings.Contains(got, text) {
				t.Errorf("%s has no %q:\n%s", file, text, got)
			}
		}
	}
	s.mustRun(t, nil, export...)
	if read("2-host/karmada-metrics-adapter.yaml") != host {
		t.Error("another export has another certificate")
	}
	if after := s.left(t); !slices.Equal(before, after) {
		t.Errorf("it installed %v, before %v", after, before)
	}
}

func (s *site) badInput(t *testing.T) {
	for text, args := range map[string]string{
		"to enable karmada-scheduler-estimator, name clusters":                  "enable karmada-scheduler-estimator",
		`cluster "m2" is in Pull mode, so the control plane has no credentials`: "enable karmada-scheduler-estimator -C m2",
		"clusters don't exist: m3, m4":                                          "enable karmada-scheduler-estimator -C m4,m1,m3",
		"cannot have an estimator":                                              "enable karmada-scheduler-estimator -C " + strings.Repeat("m", 40),
		"--member-context needs":                                                "enable karmada-scheduler-estimator -C m1 --member-context=x",
		"--cluster and --all-clusters":                                          "enable karmada-scheduler-estimator -C m1 --all-clusters",
		"must be 0 or greater":                                                  "enable karmada-descheduler --pod-timeout=-1",
		"the kubeconfig of --member-kubec":                                      "enable karmada-scheduler-estimator -C m1 --member-kubeconfig=/nowhere",
	} {
		s.mustFail(t, text, strings.Fields(args)...)
	}
	if names := s.left(t); len(names) > 0 {
		t.Errorf("bad input wrote %v", names)
	}
}

func (s *site) estimator(t *testing.T) {
	s.mustRun(t, []string{
		"Enabled: karmada-scheduler-estimator-m1", "karmada-scheduler-estimator-m1: ready, 4 created", "clusters in Pull mode are left out (m2)",
		"which is this machine: pods of the host cluster do not reach it",
	}, "enable", "karmada-scheduler-estimator", "--all-clusters")
	secret := &corev1.Secret{}
	s.hostObject(t, "m1-kubeconfig", secret)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["m1-kubeconfig"])
	if err != nil || cfg.Host != s.host.Config.Host || cfg.BearerToken == "" {
		t.Fatalf("the kubeconfig of the estimator: %v, %v", cfg, err)
	}
	if _, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	s.hostObject(t, "karmada-scheduler-estimator-m1-cert", secret)
	pair, err := pki.ParsePair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Cert.VerifyHostname("karmada-scheduler-estimator-m1.karmada-system.svc.cluster.local"); err != nil {
		t.Error(err)
	}
	if err := pair.Cert.VerifyHostname("karmada-apiserver.karmada-system.svc.cluster.local"); err == nil {
		t.Error("the certificate of an estimator is good for the API server")
	}
	s.mustRun(t, []string{"karmada-scheduler-estimator-m1: ready, unchanged"}, "enable", "karmada-scheduler-estimator", "-C", "m1")
}

func (s *site) readOnlyEstimator(t *testing.T) {
	write := func(name, token string) string {
		cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: "m1", Server: s.host.Config.Host, CA: s.host.Config.CAData, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		other, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: "precious", Server: "https://elsewhere", Token: "of-another-cluster"})
		if err != nil {
			t.Fatal(err)
		}
		pki.MergeKubeconfig(cfg, other)
		path := filepath.Join(t.TempDir(), name)
		if err := pki.WriteKubeconfig(path, cfg); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none := write("none", s.token(t, "none", ""))
	s.mustFail(t, `the credentials for cluster "m1" may not list nodes, pods, deployments.apps, replicasets.apps: grant that`,
		"enable", "karmada-scheduler-estimator", "-C", "m1", "--member-kubeconfig="+none)
	s.create(t, s.hostClient, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "estimator"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"nodes", "pods", "deployments", "replicasets"}, Verbs: []string{"get", "list", "watch"}},
	}})
	token := s.token(t, "reader", "estimator")
	s.mustRun(t, []string{"karmada-scheduler-estimator-m1: ready, 2 configured"},
		"enable", "karmada-scheduler-estimator", "-C", "m1", "--member-kubeconfig="+write("reader", token))
	secret := &corev1.Secret{}
	s.hostObject(t, "m1-kubeconfig", secret)
	if text := string(secret.Data["m1-kubeconfig"]); strings.Contains(text, "precious") || strings.Contains(text, "of-another-cluster") || !strings.Contains(text, token) {
		t.Error("the estimator does not have the one context alone")
	}
}

func (s *site) disable(t *testing.T) {
	s.mustRun(t, []string{"the estimators of m1 stay", "Disable Karmada addon [karmada-descheduler karmada-metrics-adapter karmada-search]"}, "disable", "karmada-metrics-adapter", "all")
	if diff := cmp.Diff([]string{"karmada-scheduler-estimator-m1", "karmada-scheduler-estimator-m1", "karmada-scheduler-estimator-m1-cert", "m1-kubeconfig"}, s.left(t)); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		s.mustRun(t, nil, "disable", "all", "--all-clusters", "--force")
	}
	if names := s.left(t); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	services := &apiregistrationv1.APIServiceList{}
	if err := s.planeCl.List(t.Context(), services); err != nil {
		t.Fatal(err)
	}
	for _, a := range services.Items {
		if strings.HasSuffix(a.Name, "metrics.k8s.io") || strings.HasSuffix(a.Name, "search.karmada.io") {
			t.Errorf("left: APIService %s", a.Name)
		}
	}
	s.mustRun(t, nil, "enable", "karmada-scheduler-estimator", "-C", "m1")
	plan, err := installer.PlanRemoval(t.Context(), s.host.Config, namespace, installer.RemovalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Run(t.Context(), func(string) {}); err != nil {
		t.Error(err)
	}
	if names := s.left(t); len(names) > 0 {
		t.Errorf("deinit leaves %v", names)
	}
}
