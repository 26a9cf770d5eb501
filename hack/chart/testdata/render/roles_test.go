//go:build helm

package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/release"
)

// connect returns a client of a user, or of the administrator.
func connect(t *testing.T, host *testenv.Cluster, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(host.Config)
	config.Impersonate.UserName = user
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// annotationOf returns the annotation of pods with the certificates that they have.
func annotationOf(workload object) any {
	text, _, _ := unstructured.NestedString(workload, "spec", "template", "metadata", "annotations", "karmada.io/certificates")
	return text
}

// The Jobs of hooks fill and delete the Secrets of their release, with the rights that the chart gives them in an API server.
// They get no token of another ServiceAccount: by a Secret for it, by another type of one of theirs, or by a pod that mounts it.
func TestHooks_FillSecretsAndNoMore(t *testing.T) {
	host := testenv.Start(t, testenv.Member("host", 1))
	admin, hook := connect(t, host, ""), connect(t, host, "system:serviceaccount:team:try-certificates")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
	const values = `{components: [search, metricsAdapter, schedulerEstimator], schedulerEstimator: {memberClusters: [{clusterName: m1, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://m1"}}]}}`
	for key, o := range render(t, "try", values, true) {
		if kind, _, _ := strings.Cut(key, "/"); strings.Contains(" ServiceAccount Role RoleBinding Secret Deployment ", " "+kind+" ") {
			must(admin.Create(t.Context(), &unstructured.Unstructured{Object: o}))
		}
	}
	others := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "others"}}
	must(admin.Create(t.Context(), others))

	certificates := &release.Certificates{
		Release:  release.Release{Name: "try", Fixed: "try-", Namespace: "team", Domain: "cluster.local", SystemNamespace: "karmada-system"},
		Validity: 365 * 24 * time.Hour, EtcdReplicas: 1,
		Servers: []string{components.MetricsAdapter, components.Search, components.EstimatorWorkload("m1")},
	}
	// pods returns the annotation of pods that replaces them, at an upgrade.
	pods := func() any {
		t.Helper()
		objects, err := renderBy(engine.New(host.Config), "try", values, true)
		must(err)
		for key, o := range objects {
			if kind, _, _ := strings.Cut(key, "/"); kind == "Secret" && o["data"] == nil {
				t.Errorf("%s would be made again", key)
			}
		}
		return annotationOf(objects["Deployment/try-scheduler"])
	}
	must(certificates.Write(t.Context(), hook, time.Now)) // an installation
	if now := pods(); now != annotationOf(render(t, "try", values, true)["Deployment/try-scheduler"]) {
		t.Error("an upgrade replaces pods whose certificates are good")
	}
	_, err := renderBy(engine.New(host.Config), "more", "{installMode: component, components: [search], search: {certs: try-cert}}", true)
	if want := "helm upgrade try --reuse-values --set components={search}"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("components of another release of this chart: got %v, want %q", err, want)
	}
	past := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"karmada.io/renew-after":"1"}}}`))
	must(admin.Patch(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "try-cert"}}, past))
	due := pods()
	if annotation := annotationOf(render(t, "try", values, true)["StatefulSet/try-etcd"]); annotation != "" {
		t.Errorf("renewed certificates stop etcd: %v", annotation)
	}
	if due == annotationOf(render(t, "try", values, true)["Deployment/try-scheduler"]) {
		t.Error("an upgrade leaves pods whose certificates are renewed")
	}
	certificates.Renewed = "1000000000"
	must(certificates.Write(t.Context(), hook, time.Now))
	if now := pods(); now == due || now != pods() {
		t.Error("the upgrade after that replaces pods again and again")
	}
	secrets := &corev1.SecretList{}
	must(admin.List(t.Context(), secrets, client.InNamespace("team"), client.MatchingLabels{"app.kubernetes.io/managed-by": "karmada-release"}))
	for i := range secrets.Items {
		for name, content := range secrets.Items[i].Data {
			if len(content) == 0 {
				t.Errorf("%s of Secret %s is empty", name, secrets.Items[i].Name)
			}
		}
		if len(secrets.Items[i].Data) == 0 {
			t.Errorf("Secret %s is empty", secrets.Items[i].Name)
		}
	}

	tokenOf := func(name string) *corev1.Secret {
		return &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}, ServiceAccountName: "default"}
	deployment := &unstructured.Unstructured{Object: object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"namespace": "team", "name": "try-scheduler"}}}
	kept := "try-cert"
	for what, attempt := range map[string]func() error{
		"a Secret for a token":                func() error { return hook.Create(t.Context(), tokenOf("token")) },
		"a Secret for a token by applying it": func() error { return hook.Patch(t.Context(), tokenOf("token"), client.Apply, client.FieldOwner("x")) },
		"another type of a Secret of theirs": func() error {
			return hook.Patch(t.Context(), tokenOf(kept), client.Apply, client.FieldOwner("x"), client.ForceOwnership)
		},
		"a Secret of theirs, deleted, as another": func() error {
			must(hook.Delete(t.Context(), tokenOf("try-search-cert")))
			return hook.Patch(t.Context(), tokenOf("try-search-cert"), client.Apply, client.FieldOwner("x"))
		},
		"a token": func() error {
			return hook.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "default"}}, &authenticationv1.TokenRequest{})
		},
		"a pod": func() error {
			return hook.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}, Spec: pod})
		},
		"a change of a workload": func() error {
			return hook.Patch(t.Context(), deployment, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		},
		"another Secret":    func() error { return hook.Get(t.Context(), client.ObjectKeyFromObject(others), others) },
		"a list of Secrets": func() error { return hook.List(t.Context(), &corev1.SecretList{}, client.InNamespace("team")) },
	} {
		if err := attempt(); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(certificates.Remove(t.Context(), hook))
	must(admin.List(t.Context(), secrets, client.InNamespace("team"), client.MatchingLabels{"app.kubernetes.io/managed-by": "karmada-release"}))
	if len(secrets.Items) > 0 {
		t.Errorf("left: %v", fmt.Sprint(secrets.Items))
	}
	t.Run("a release of Karmada's chart", func(t *testing.T) { continuesFormer(t, host, admin) })
}

// continuesFormer expects that a release of Karmada's chart, whose workloads are in the cluster, keeps what cannot be changed.
func continuesFormer(t *testing.T, host *testenv.Cluster, admin client.Client) {
	labels := map[string]string{"app": "karmada-apiserver", "part": "server"}
	apart := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: "kubernetes.io/hostname"}}}}
	of := func(release, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: map[string]string{"meta.helm.sh/release-name": release}}
	}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Affinity: apart, Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	scheduler := *pod.DeepCopy()
	scheduler.Spec.Containers[0].Image = "old.example/karmada/karmada-scheduler:v1.18.0"
	etcd := &appsv1.StatefulSet{ObjectMeta: of("former", "etcd"), Spec: appsv1.StatefulSetSpec{ServiceName: "etcd", Selector: selector, Template: pod}}
	for _, o := range []client.Object{
		etcd, &appsv1.Deployment{ObjectMeta: of("former", "former-apiserver"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pod}},
		&appsv1.Deployment{ObjectMeta: of("former", "former-scheduler"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: scheduler}},
		&appsv1.Deployment{ObjectMeta: of("another", "former-webhook"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pod}},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := renderBy(engine.New(host.Config), "former", "{}", true)
	if err != nil {
		t.Fatal(err)
	}
	kept, other := object{"app": "karmada-apiserver", "part": "server"}, object{"app": "former-webhook"}
	for _, tc := range []struct {
		key  string
		want any
		path []string
	}{
		{"Deployment/former-apiserver", kept, []string{"spec", "selector", "matchLabels"}},
		{"Deployment/former-apiserver", kept, []string{"spec", "template", "metadata", "labels"}},
		{"Deployment/former-apiserver", float64(1), []string{"spec", "strategy", "rollingUpdate", "maxUnavailable"}},
		{"Service/former-apiserver", kept, []string{"spec", "selector"}},
		{"Deployment/former-webhook", other, []string{"spec", "selector", "matchLabels"}},
		{"StatefulSet/etcd", kept, []string{"spec", "selector", "matchLabels"}},
		{"StatefulSet/etcd", "etcd", []string{"spec", "serviceName"}},
		{"Service/etcd", kept, []string{"spec", "selector"}},
		{"Service/etcd-client", kept, []string{"spec", "selector"}},
	} {
		got, _, err := unstructured.NestedFieldNoCopy(objects[tc.key], tc.path...)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s %v: %v %s", tc.key, tc.path, err, diff)
		}
	}
	containers, _, _ := unstructured.NestedSlice(objects["StatefulSet/etcd"], "spec", "template", "spec", "containers")
	if len(containers) != 1 || containers[0].(object)["image"] != "a" {
		t.Errorf("etcd is changed to %v", containers)
	}
	_, err = renderBy(engine.New(host.Config), "former", "{scheduler: {image: {registry: old.example, tag: v1.18.0}}}", true)
	if want := "scheduler.image: old.example/karmada/karmada-scheduler:v1.18.0 is what former-scheduler of Karmada's chart has"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an image of Karmada's: got %v, want %q", err, want)
	}
	if text := fmt.Sprint(objects["Deployment/former-apiserver"]); !strings.Contains(text, "--etcd-servers=https://etcd-client.team.svc.cluster.local:2379") {
		t.Errorf("the API server stores elsewhere: %s", text)
	}
}

// An API server accepts all objects, and those of two releases in one namespace.
func TestObjects_AreAccepted(t *testing.T) {
	host := testenv.Start(t, testenv.Member("host", 1))
	admin := connect(t, host, "")
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}); err != nil {
		t.Fatal(err)
	}
	create := func(release, values string, options ...client.CreateOption) {
		t.Helper()
		for key, o := range render(t, release, values, true) {
			if key == "NOTES" {
				continue
			}
			if err := admin.Create(t.Context(), &unstructured.Unstructured{Object: o}, options...); err != nil {
				t.Errorf("%s with %s: %s: %v", release, values, key, err)
			}
		}
	}
	for _, values := range bases() {
		create("try", values, client.DryRunAll, client.FieldValidation("Strict"))
	}
	create("karmada", bases()[2]) // etcd that exists
	create("try", bases()[0])     // with an authority of the user, and everything else
}

// The Jobs of components register their APIs, and delete them unless another release has them by now.
func TestAPIs_AreThoseOfTheRelease(t *testing.T) {
	controlPlane := testenv.Start(t, testenv.ControlPlane())
	cp := connect(t, controlPlane, "")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-search"}}
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.search.karmada.io"}}
	addons := func(name string) *release.Resources {
		return &release.Resources{Release: release.Release{Name: name, Namespace: "team", Domain: "cluster.local", SystemNamespace: "karmada-system"}, Addons: []string{components.Search}}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- addons("try").WriteAddons(ctx, controlPlane.Config, io.Discard, time.Now) }()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		return errors.Join(cp.Get(ctx, client.ObjectKeyFromObject(api), api), cp.Get(ctx, client.ObjectKeyFromObject(service), service))
	})
	stop()
	if err := <-done; err == nil {
		t.Error("no server answers, and the Job is done")
	}
	for _, tc := range []struct {
		release string
		there   bool
	}{{"other", true}, {"try", false}, {"try", false}} {
		if err := addons(tc.release).RemoveAddons(t.Context(), controlPlane.Config); err != nil {
			t.Fatal(err)
		}
		for _, o := range []client.Object{api, service} {
			if err := cp.Get(t.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || (err == nil) != tc.there {
				t.Errorf("%T %s, deleted by release %s: %v", o, o.GetName(), tc.release, err)
			}
		}
	}
}

// The Jobs of hooks change nothing but the objects of their release.
func TestRoles_NameTheirObjects(t *testing.T) {
	roles := 0
	for key, o := range render(t, "try", allValuesOfOne, true) {
		if !strings.HasPrefix(key, "Role/") {
			continue
		}
		roles++
		for _, rule := range o["rules"].([]any) {
			rule := rule.(object)
			named, _ := rule["resourceNames"].([]any)
			for _, name := range named {
				if !strings.HasPrefix(fmt.Sprint(name), "try-") {
					t.Errorf("%s: %v is not of the release", key, name)
				}
			}
			if len(named) == 0 {
				t.Errorf("%s: the rule names no object: %v", key, rule)
			}
		}
	}
	if roles == 0 {
		t.Error("there is no Role")
	}
}
