//go:build integration

// Covers pkg/controlplane/controllers/binding.

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/binding"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/dependencies"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/detector"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/namespacesync"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// bindingLimit is how long the controllers may take. The garbage collector of the API server deletes the bindings of
// templates, and after a change of the CRDs it may wait for half a minute.
const bindingLimit = 90 * time.Second

// bindingPlane is a control plane with the controllers of the template side.
type bindingPlane struct {
	*testing.T
	cluster *testenv.Cluster
	client  client.Client // uncached
	writes  *bindingWrites
	stop    func()
}

// bindingWrites counts what the controllers write, events aside. A request that fails writes nothing.
type bindingWrites struct {
	mu    sync.Mutex
	count map[string]int
}

type countingWrites struct {
	next http.RoundTripper
	*bindingWrites
}

func (c countingWrites) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "/events") && (err != nil || resp.StatusCode < http.StatusMultipleChoices) {
		parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
		kind := parts[len(parts)-1]
		if req.Method != http.MethodPost {
			kind = parts[len(parts)-2]
		}
		c.mu.Lock()
		c.count[req.Method+" "+kind]++
		c.mu.Unlock()
	}
	return resp, err
}

func (w *bindingWrites) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.count
	w.count = map[string]int{}
	return out
}

func newBindingPlane(t *testing.T) *bindingPlane {
	t.Helper()
	p := &bindingPlane{T: t, cluster: testenv.Start(t, testenv.ControlPlane()), writes: &bindingWrites{count: map[string]int{}}}
	c, err := client.New(p.cluster.Config, client.Options{Scheme: kube.NewScheme()})
	p.must(err)
	p.client = c
	planetest.Install(p.T, p.client)
	for _, name := range []string{"m1", "m2"} {
		p.must(c.Create(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}))
		p.must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-" + name}}))
	}
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *bindingPlane) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func definition(group, version, plural, kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// start runs the controllers, as a new process would.
func (p *bindingPlane) start() {
	p.Helper()
	cfg := rest.CopyConfig(p.cluster.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingWrites{next, p.writes} })
	var store *templates.Store
	namespaces := propagation.DefaultNamespaces()
	stop := planetest.Start(p.T, cfg, func(ctx context.Context, mgr manager.Manager) error {
		store = planetest.Templates(p.T, mgr)
		e := env.New(mgr)
		e.Store, e.Interpreter, e.Gates = store, interpreter.New(), gates.New(gates.PriorityBasedScheduling)
		return errors.Join(
			mgr.Add(store),
			detector.Setup(ctx, e), binding.Setup(ctx, e), namespacesync.Setup(ctx, e, namespaces), dependencies.Setup(ctx, e),
		)
	})
	p.must(store.WaitForSync(p.Context()))
	p.stop = func() {
		if err := stop(); err != nil {
			p.Errorf("stopping the controllers: %v", err)
		}
	}
}

// change changes an object as it is, whatever the controllers write to it meanwhile.
func (p *bindingPlane) change(obj client.Object, change func()) {
	p.Helper()
	p.must(planetest.Change(p.Context(), p.client, obj, change))
}

// schedule does what the scheduler does.
func (p *bindingPlane) schedule(name string, replicas int32, clusters ...string) {
	p.Helper()
	targets := make([]workv1alpha2.TargetCluster, len(clusters))
	for i, c := range clusters {
		targets[i] = workv1alpha2.TargetCluster{Name: c, Replicas: replicas}
	}
	testenv.Eventually(p.T, bindingLimit, func(ctx context.Context) error {
		b := &workv1alpha2.ResourceBinding{}
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, b); err != nil {
			return err
		}
		b.Spec.Clusters = targets
		return p.client.Update(ctx, b)
	})
}

// carried waits until Works carry what is wanted: a value per cluster, taken from
// the manifests of a kind and name.
func (p *bindingPlane) carried(kind, name string, want map[string]string, value func(*unstructured.Unstructured) string) {
	p.Helper()
	testenv.Eventually(p.T, bindingLimit, func(ctx context.Context) error {
		list := &workv1alpha1.WorkList{}
		if err := p.client.List(ctx, list); err != nil {
			return err
		}
		got := map[string]string{}
		for i := range list.Items {
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(list.Items[i].Spec.Workload.Manifests[0].Raw); err != nil {
				return err
			}
			if obj.GetKind() == kind && obj.GetName() == name && list.Items[i].DeletionTimestamp == nil {
				got[strings.TrimPrefix(list.Items[i].Namespace, "karmada-es-")] = value(obj)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// wrote waits until the controllers have written what is wanted, and no more.
func (p *bindingPlane) wrote(want map[string]int) {
	p.Helper()
	got := map[string]int{}
	testenv.Eventually(p.T, bindingLimit, func(context.Context) error {
		for key, n := range p.writes.take() {
			got[key] += n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	p.quiet()
}

// quiet fails when the controllers write anything in the next moment.
func (p *bindingPlane) quiet() {
	p.Helper()
	select {
	case <-time.After(500 * time.Millisecond):
	case <-p.Context().Done():
	}
	if got := p.writes.take(); len(got) != 0 {
		p.Errorf("writes %v", got)
	}
}

// unmatched waits until the named objects, and no others, have one event each that no policy matches them.
func (p *bindingPlane) unmatched(want ...string) {
	p.Helper()
	testenv.Eventually(p.T, bindingLimit, func(ctx context.Context) error {
		var list corev1.EventList
		if err := p.client.List(ctx, &list); err != nil {
			return err
		}
		var got []string
		for i := range list.Items {
			if e := &list.Items[i]; e.Message == "No policy match for resource" {
				for range max(e.Count, 1) {
					got = append(got, e.Type+" "+e.Reason+" "+e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name)
				}
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func bindingNginx() *appsv1.Deployment {
	labels := map[string]string{"app": "nginx"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nginx", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}},
			}},
		},
	}
}

func propagates(name, apiVersion, kind string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Finalizers: []string{policyv1alpha1.PropagationPolicyFinalizer},
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name},
		},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind}}},
	}
}

func replicasOf(obj *unstructured.Unstructured) string {
	n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return fmt.Sprint(n)
}

func dataOf(obj *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(obj.Object, "data", "key")
	return v
}

func TestTemplateSide(t *testing.T) {
	t.Parallel()
	p := newBindingPlane(t)
	both := []string{"m1", "m2"}

	p.Run("a deployment for two clusters costs four writes", func(t *testing.T) {
		p := p.in(t)
		p.must(p.client.Create(t.Context(), propagates("nginx", "apps/v1", "Deployment")))
		p.must(p.client.Create(t.Context(), bindingNginx()))
		p.schedule("nginx-deployment", 2, both...)
		p.carried("Deployment", "nginx", map[string]string{"m1": "2", "m2": "2"}, replicasOf)
		p.wrote(map[string]int{"PATCH deployments": 1, "POST resourcebindings": 1, "POST works": 2})
	})
	p.Run("a change of status costs none", func(t *testing.T) {
		p := p.in(t)
		d := bindingNginx()
		p.must(planetest.ChangeStatus(t.Context(), p.client, d, func() { d.Status.Replicas = 4 }))
		p.quiet()
	})
	p.Run("an edit costs one and one for each cluster", func(t *testing.T) {
		p := p.in(t)
		d := bindingNginx()
		p.change(d, func() { d.Annotations["color"] = "red" })
		p.carried("Deployment", "nginx", map[string]string{"m1": "red", "m2": "red"},
			func(obj *unstructured.Unstructured) string { return obj.GetAnnotations()["color"] })
		p.wrote(map[string]int{"PATCH resourcebindings": 1, "PATCH works": 2})
	})

	const noPolicy = "Warning ApplyPolicyFailed ConfigMap/"
	p.must(p.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}}))
	p.unmatched(noPolicy + "alone")
	p.stop()
	d := bindingNginx()
	p.change(d, func() { d.Annotations["color"] = "blue" })
	p.start()
	p.carried("Deployment", "nginx", map[string]string{"m1": "blue", "m2": "blue"},
		func(obj *unstructured.Unstructured) string { return obj.GetAnnotations()["color"] })
	p.wrote(map[string]int{"PATCH works": 2}) // what was missed, and nothing else
	p.stop()
	p.start()
	p.quiet()
	p.must(p.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "later"}}))
	// The event of the second one comes after the process could have repeated the first.
	p.unmatched(noPolicy+"alone", noPolicy+"later")

	p.Run("a type that appears is propagated", p.newType)
	p.Run("a binding that is deleted by hand leaves its works to the next", p.bindingGone)
	p.Run("a type that is deleted leaves its objects in the clusters", p.typeGone)
}

func (p *bindingPlane) in(t *testing.T) *bindingPlane {
	return &bindingPlane{T: t, cluster: p.cluster, client: p.client, writes: p.writes}
}

func (p *bindingPlane) newType(t *testing.T) {
	p = p.in(t)
	p.must(p.client.Create(t.Context(), definition("example.io", "v1", "guestbooks", "Guestbook", apiextensionsv1.NamespaceScoped)))
	p.must(p.client.Create(t.Context(), propagates("guestbooks", "example.io/v1", "Guestbook")))
	testenv.Eventually(t, bindingLimit, func(ctx context.Context) error {
		return p.client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.io/v1", "kind": "Guestbook", "metadata": map[string]any{"namespace": "default", "name": "g"},
			"data": map[string]any{"key": "1"},
		}})
	})
	p.schedule("g-guestbook", 0, "m2")
	p.carried("Guestbook", "g", map[string]string{"m2": "1"}, dataOf)
}
