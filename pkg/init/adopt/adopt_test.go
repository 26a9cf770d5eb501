package adopt

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

const namespace = "karmada-system"

func images(role string) string { return "ours.example/" + role + ":v9" }

// deployment is that of a program, which is available.
func deployment(name, program, image string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{components.BootstrapLabel: components.AppDefaults}}}
	d.Spec.Replicas = new(int32(1))
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: image, Command: []string{"/bin/" + program, "--kubeconfig=/etc/karmada/config/karmada.config"}}}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, ReadyReplicas: 1}
	for _, c := range change {
		c(d)
	}
	return d
}

// installed is a control plane that init installed, changed.
func installed(version string, change ...func(*appsv1.Deployment)) []client.Object {
	of := func(name string) *appsv1.Deployment {
		return deployment(name, name, "docker.io/karmada/"+name+":"+version, change...)
	}
	etcd := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd"}}
	etcd.Spec.Template.Spec.Containers = []corev1.Container{{Name: "etcd", Command: []string{"/usr/local/bin/etcd"}}}
	return []client.Object{
		of("karmada-controller-manager"), of("karmada-scheduler"), of("karmada-webhook"), of("karmada-aggregated-apiserver"), etcd,
		deployment("karmada-scheduler-estimator-m1", "karmada-scheduler-estimator", "docker.io/karmada/karmada-scheduler-estimator:"+version, change...),
		deployment("karmada-apiserver", "kube-apiserver", "registry.k8s.io/kube-apiserver:v1.36.2", change...), deployment("others", "other", "other:v1"),
	}
}

func TestDiscover_Components(t *testing.T) {
	m := memory.New(t, installed("v1.18.0")...)
	p, err := discover(t.Context(), m.Client, namespace, images, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Components {
		got = append(got, c.Name+" "+c.Version+" "+c.Target)
	}
	want := []string{
		"karmada-webhook v1.18.0 ours.example/karmada-webhook:v9", "karmada-aggregated-apiserver v1.18.0 ours.example/karmada-aggregated-apiserver:v9", "karmada-scheduler v1.18.0 ours.example/karmada-scheduler:v9",
		"karmada-scheduler-estimator-m1 v1.18.0 ours.example/karmada-scheduler-estimator:v9", "karmada-controller-manager v1.18.0 ours.example/karmada-controller-manager:v9",
	}
	if diff := cmp.Diff(want, got); diff != "" || p.Err() != nil {
		t.Error(diff, p.Err())
	}
	if p.Installer != ByInit || p.Version != "v1.18.0" || !slices.Equal(p.Kept, []string{"karmada-apiserver", "etcd"}) {
		t.Errorf("%+v", p)
	}
}

// TestDiscover_Refusals has each reason for which nothing is done.
func TestDiscover_Refusals(t *testing.T) {
	label := func(key, value string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Labels = map[string]string{key: value, components.InstanceLabel: "demo"} }
	}
	annotation := func(key, value string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations = map[string]string{key: value} }
	}
	operator := deployment("karmada-operator", "karmada-operator", "docker.io/karmada/karmada-operator:v1.18.0")
	operator.Namespace = "operators"
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"none":        {nil, "there is no karmada-controller-manager in namespace karmada-system"},
		"v1.16":       {installed("v1.16.4"), ""},
		"v1.19":       {installed("v1.19.1"), ""},
		"too old":     {installed("v1.15.0"), "only v1.16 to v1.19"},
		"too new":     {installed("v1.20.0"), "only v1.16 to v1.19"},
		"no version":  {installed("latest"), "has no tag of a release"},
		"a digest":    {installed("v1.18.0@sha256:" + strings.Repeat("a", 64)), ""},
		"Helm":        {installed("v1.18.0", label(components.ManagedByLabel, "Helm"), annotation(helmRelease, "karmada")), "helm get values karmada -n karmada-system > values.yaml && helm upgrade karmada karmada-"},
		"an operator": {installed("v1.18.0", label(components.ManagedByLabel, components.ManagedByOperator)), "the operator of Karmada demo writes"},
		"an operator that is there": {append(installed("v1.18.0", label(components.ManagedByLabel, components.ManagedByOperator)), operator),
			"kubectl scale deployment karmada-operator -n operators --replicas=0 && helm install karmada-operator-next karmada-operator-"},
		"Argo CD":           {installed("v1.18.0", annotation("argocd.argoproj.io/tracking-id", "a")), "Argo CD writes"},
		"Argo CD, by label": {installed("v1.18.0", label("argocd.argoproj.io/instance", "a")), "Argo CD writes"},
		"Flux":              {installed("v1.18.0", label("kustomize.toolkit.fluxcd.io/name", "a")), "(Kustomization a)"},
		"Flux with Helm":    {installed("v1.18.0", label("helm.toolkit.fluxcd.io/name", "a")), "(HelmRelease a)"},
		"not available":     {installed("v1.18.0", func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), "is not available: repair it first"},
		"paused":            {installed("v1.18.0", func(d *appsv1.Deployment) { d.Spec.Paused = true }), "is not available"},
		"adopted by others": {installed("v9", label(components.ManagedByLabel, "Helm"), func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Image = images(programOf(&d.Spec.Template.Spec, 0))
		}), ""},
	} {
		m := memory.New(t, tc.objects...)
		m.Index(&appsv1.Deployment{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
		p, err := discover(t.Context(), m.Client, namespace, images, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Err(); tc.want == "" && got != nil || tc.want != "" && (got == nil || !strings.Contains(got.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, got, tc.want)
		}
	}
}

func TestTag(t *testing.T) {
	for image, want := range map[string]string{"a/b:v1": "v1", "a:5000/b": "", "a:5000/b:v1": "v1", "b": "", "a/b:v1@sha256:x": "v1"} {
		if got := tag(image); got != want {
			t.Errorf("%s: %q", image, got)
		}
	}
}

func TestNotes(t *testing.T) {
	c := &corev1.Container{Command: []string{"/bin/karmada-controller-manager", "--cluster-lease-duration=40s", "--kube-api-qps=40"}}
	if got := notes(components.ControllerManager, c); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// policy is a PropagationPolicy with a purge mode.
func policy(mode string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": policyv1alpha1.GroupVersion.String(), "kind": "PropagationPolicy", "metadata": map[string]any{"namespace": "ns", "name": strings.ToLower(mode)},
		"spec": map[string]any{"failover": map[string]any{"application": map[string]any{"purgeMode": mode}}},
	}}
	return u
}

func TestRenamePurgeModes(t *testing.T) {
	m := memory.New(t, policy("Immediately"), policy("Graciously"), policy("Never"), policy("Directly"))
	found, err := renamePurgeModes(t.Context(), m.Client, purgingKinds(), current(), true)
	if err != nil || len(found) != 2 || len(m.Writes()) > 0 {
		t.Fatalf("%v, %v", found, err)
	}
	if _, err := renamePurgeModes(t.Context(), m.Client, purgingKinds(), current(), false); err != nil {
		t.Fatal(err)
	}
	if writes := m.Writes(); len(writes) != 2 {
		t.Errorf("%q", writes)
	}
	got := memory.Get[*policyv1alpha1.PropagationPolicy](m, memory.Key("ns", "immediately"))
	if got.Spec.Failover.Application.PurgeMode != policyv1alpha1.PurgeModeDirectly {
		t.Errorf("%+v", got.Spec.Failover)
	}
	if found, err := renamePurgeModes(t.Context(), m.Client, purgingKinds(), former(), true); err != nil || len(found) != 3 {
		t.Errorf("%v, %v", found, err)
	}
}

// newAdoption returns one whose host cluster and control plane are in memory. Deployments are ready at all times.
func newAdoption(t *testing.T, host, plane *memory.Env) *Adoption {
	t.Helper()
	var objects []runtime.Object
	list := memory.List[*appsv1.DeploymentList](host)
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	sets := memory.List[*appsv1.StatefulSetList](host)
	for i := range sets.Items {
		objects = append(objects, &sets.Items[i])
	}
	api := fake.NewClientset(objects...)
	a := &Adoption{Program: "karmadactl", Namespace: namespace, Images: images, Timeout: 10 * time.Second, Progress: progress.Discard{}, Now: time.Now, host: host.Client, api: api, plane: plane.Client}
	a.tracker = rollout.NewTracker(api, namespace, time.Now, nil)
	return a
}

// plane returns a control plane with its APIs and webhooks.
func plane(t *testing.T) *memory.Env {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	url := "https://karmada-webhook.karmada-system.svc:443/old"
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "validating-config"}}
	validating.Webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "old.karmada.io", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: []byte("ca")}}}
	objects := []client.Object{validating, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "mutating-config"}}}
	for _, crd := range all {
		if crd.Spec.Names.Kind == "PropagationPolicy" { // as before v1.18
			text, err := json.Marshal(crd)
			if err != nil {
				t.Fatal(err)
			}
			old := &apiextensionsv1.CustomResourceDefinition{}
			if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(`"Directly"`), []byte(`"Immediately"`)), old); err != nil {
				t.Fatal(err)
			}
			crd = old
		}
		objects = append(objects, crd)
	}
	return memory.New(t, append(objects, policy("Directly"))...)
}

func TestAgents(t *testing.T) {
	var objects []client.Object
	for name, mode := range map[string]clusterv1alpha1.ClusterSyncMode{"pushed": clusterv1alpha1.Push, "registered": clusterv1alpha1.Pull, "by-hand": clusterv1alpha1.Pull} {
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}})
	}
	m := memory.New(t, append(objects, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "system:karmada:registered:agent"}})...)
	got, err := agents(t.Context(), m.Client)
	if diff := cmp.Diff([]Agent{{"by-hand", RightsUnknown}, {"registered", RightsOfRegistration}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestRollback replaces what was changed, keeps what others set, and is possible until the end.
func TestRollback(t *testing.T) {
	host, plane := memory.New(t, installed("v1.18.0")...), plane(t)
	a := newAdoption(t, host, plane)
	p, err := discover(t.Context(), host.Client, namespace, images, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.record(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if text, err := a.record(t.Context(), p); err != nil || text != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	if err := a.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "not all components are adopted") {
		t.Errorf("finished: %v", err)
	}
	ctx, stop := t.Context(), func() {}
	defer stop()
	go a.tracker.Run(ctx)
	for i := range p.Components {
		if _, err := a.replace(ctx, &p.Components[i]); err != nil {
			t.Fatal(err)
		}
	}
	key := memory.Key(namespace, "karmada-scheduler")
	memory.Change(host, key, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
	if d := memory.Get[*appsv1.Deployment](host, key); d.Spec.Template.Spec.Containers[0].Image != images("karmada-scheduler") {
		t.Errorf("%+v", d.Spec.Template.Spec)
	}
	memory.Change(plane, memory.Key("", "propagationpolicies.policy.karmada.io"), func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Scope = "Cluster" })
	memory.Change(plane, memory.Key("", "validating-config"), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Webhooks = nil })
	for _, o := range limits() {
		if err := plane.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range limits() {
		if err := plane.Stored.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v", o, o.GetName(), err)
		}
	}
	d := memory.Get[*appsv1.Deployment](host, key)
	if d.Spec.Template.Spec.Containers[0].Image != "docker.io/karmada/karmada-scheduler:v1.18.0" || *d.Spec.Replicas != 3 {
		t.Errorf("%+v", d.Spec)
	}
	if c := memory.Get[*apiextensionsv1.CustomResourceDefinition](plane, memory.Key("", "propagationpolicies.policy.karmada.io")); c.Spec.Scope != "Namespaced" {
		t.Errorf("%+v", c.Spec.Scope)
	}
	if got := memory.Get[*policyv1alpha1.PropagationPolicy](plane, memory.Key("ns", "directly")); got.Spec.Failover.Application.PurgeMode != "Immediately" {
		t.Errorf("%+v", got.Spec.Failover)
	}
	if c := memory.Get[*admissionregistrationv1.ValidatingWebhookConfiguration](plane, memory.Key("", "validating-config")); len(c.Webhooks) != 1 {
		t.Errorf("%+v", c.Webhooks)
	}
}

func TestFinish(t *testing.T) {
	adopted := installed("v9", func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Image = images(programOf(&d.Spec.Template.Spec, 0))
	})
	host, plane := memory.New(t, adopted...), plane(t)
	generator := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: generatorRole}}
	if err := plane.Client.Create(t.Context(), generator); err != nil {
		t.Fatal(err)
	}
	a := newAdoption(t, host, plane)
	if err := a.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no Secret karmada-adoption") {
		t.Errorf("%v", err)
	}
	p, _ := discover(t.Context(), host.Client, namespace, images, false)
	if _, err := a.record(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := a.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := host.Stored.Get(t.Context(), memory.Key(namespace, recordSecret), &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
	if err := plane.Stored.Get(t.Context(), client.ObjectKeyFromObject(generator), generator); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
	if err := a.Rollback(t.Context()); err == nil {
		t.Error("there is a way back")
	}
	// What goes back to an adopted control plane leaves the limits of agents.
	if err := plane.Client.Create(t.Context(), limits()[0]); err != nil {
		t.Fatal(err)
	}
	_, err := a.record(t.Context(), p)
	if err = errors.Join(err, a.Rollback(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := plane.Stored.Get(t.Context(), client.ObjectKeyFromObject(limits()[0]), limits()[0]); err != nil {
		t.Error(err)
	}
}

// TestFinish_Chart deletes what the hooks of a release of Karmada's chart left, and nothing of others.
func TestFinish_Chart(t *testing.T) {
	release := func(d *appsv1.Deployment) { d.Annotations = map[string]string{helmRelease: "karmada"} }
	account := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: "karmada-hook-job"}
	}
	for name, tc := range map[string]struct {
		subjects []rbacv1.Subject
		kept     bool
	}{
		"alone": {[]rbacv1.Subject{account(namespace)}, false}, "shared": {[]rbacv1.Subject{account(namespace), account("other")}, true},
	} {
		named := metav1.ObjectMeta{Name: "karmada-hook-job"}
		objects := append(installed("v1.18.0", release), &rbacv1.ClusterRole{ObjectMeta: named}, &rbacv1.ClusterRoleBinding{ObjectMeta: named, Subjects: tc.subjects})
		for _, name := range []string{"karmada-config", "karmada-crds-work-bases", "karmada-other"} {
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		}
		host := memory.New(t, objects...)
		a := newAdoption(t, host, plane(t))
		p, err := discover(t.Context(), host.Client, namespace, images, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.record(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := a.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "not all components are adopted") {
			t.Errorf("finished: %v", err)
		}
		for _, c := range p.Components { // with images of the user's registry
			memory.Change(host, memory.Key(namespace, c.Name), func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = "mirror.example/" + c.Role + ":v9"
			})
		}
		if err := a.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, m := range memory.List[*corev1.ConfigMapList](host).Items {
			left = append(left, m.Name)
		}
		if !slices.Equal(left, []string{"karmada-other"}) {
			t.Errorf("%s: ConfigMaps %q", name, left)
		}
		if kept := len(memory.List[*rbacv1.ClusterRoleBindingList](host).Items) > 0 && len(memory.List[*rbacv1.ClusterRoleList](host).Items) > 0; kept != tc.kept {
			t.Errorf("%s: the ClusterRole is kept: %t", name, kept)
		}
	}
}

// TestKubeconfigOf finds the kubeconfig in the Secret that a component mounts, in the forms of each installer.
func TestKubeconfigOf(t *testing.T) {
	for name, tc := range map[string]struct {
		argument string
		mount    corev1.VolumeMount
		items    []corev1.KeyToPath
		key      string
	}{
		"a directory": {"--kubeconfig=/etc/karmada/config/karmada.config", corev1.VolumeMount{MountPath: "/etc/karmada/config"}, nil, "karmada.config"},
		"a file":      {"--kubeconfig=/etc/kubeconfig", corev1.VolumeMount{MountPath: "/etc/kubeconfig", SubPath: "kubeconfig"}, nil, "kubeconfig"},
		"a path":      {"--kubeconfig=/etc/a/b", corev1.VolumeMount{MountPath: "/etc/a"}, []corev1.KeyToPath{{Key: "k", Path: "b"}}, "k"},
	} {
		d := deployment("karmada-controller-manager", "karmada-controller-manager", "a:v1.18.0")
		pod := &d.Spec.Template.Spec
		tc.mount.Name = "v"
		pod.Containers[0].Command[1], pod.Containers[0].VolumeMounts = tc.argument, []corev1.VolumeMount{tc.mount}
		pod.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: tc.items}}}}
		host := memory.New(t, d, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, Data: map[string][]byte{tc.key: []byte("kubeconfig")}})
		p, err := discover(t.Context(), host.Client, namespace, images, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := newAdoption(t, host, plane(t)).kubeconfigOf(t.Context(), p.manager()); err != nil || string(got) != "kubeconfig" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
