//go:build integration

// Covers pkg/controlplane/controllers/agentcsr.

package controllers_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/bindingstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

const (
	shopID       = "5d8a4c5e-0000-4000-8000-000000000001"
	shopManifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"shop"}}`
)

// shopWork is the name of the Work of the template.
var shopWork = names.Work("Deployment", "shop", "default")

// federate makes a template whose binding targets clusters, and its Works, as the
// scheduler and the binding controller do.
func (p *agentPlane) federate(t *testing.T, clusters ...string) {
	t.Helper()
	labels := map[string]string{"app": "shop"}
	template := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}
	p.must(t, p.admin.Create(t.Context(), template))
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop-deployment", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: shopID}},
		Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "shop", UID: template.UID}},
	}
	for _, cluster := range clusters {
		binding.Spec.Clusters = append(binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
	}
	p.must(t, p.admin.Create(t.Context(), binding))
	for _, cluster := range clusters {
		p.must(t, p.admin.Create(t.Context(), shopWorkIn(cluster, shopWork)))
	}
}

// shopWorkIn is a Work that claims to be of the binding.
func shopWorkIn(cluster, name string) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-" + cluster, Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: shopID},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "default", workv1alpha2.ResourceBindingNameAnnotation: "shop-deployment"},
			Finalizers:  []string{workv1alpha2.ExecutionControllerFinalizer},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(shopManifest)}}}}},
	}
}

// reportStatus writes what an agent reports about a Work of the template.
func reportStatus(t *testing.T, c client.Client, cluster, work, status string) error {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": []metav1.Condition{{Type: "Applied", Status: "True", Reason: "r", Message: "m\x1b[2J", LastTransitionTime: metav1.Now()}},
		"manifestStatuses": []map[string]any{{
			"identifier": map[string]any{"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "namespace": "default", "name": "shop"},
			"health":     "Healthy", "status": json.RawMessage(status),
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	target := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: work}}
	return c.Status().Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", patch))
}

func (p *agentPlane) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAgent_AllowedVerbsHostileContent has the agent of a compromised cluster use
// what it may write to harm others.
func TestAgent_AllowedVerbsHostileContent(t *testing.T) {
	t.Parallel()
	p := startAgentPlane(t, func(ctx context.Context, mgr manager.Manager) error {
		e := env.New(mgr)
		e.Interpreter = interpreter.New()
		return bindingstatus.Setup(ctx, e, bindingstatus.Options{Templates: live{mgr.GetAPIReader()}})
	})
	evil, good := p.mustEnrol(t, "evil", "id-1"), p.mustEnrol(t, "good", "id-2")
	p.federate(t, "evil", "good")
	p.must(t, reportStatus(t, good.Client, "good", shopWork, `{"replicas":2,"readyReplicas":2}`))
	t.Run("statuses", func(t *testing.T) { p.survivesStatuses(t, evil) })
	t.Run("Works", func(t *testing.T) { p.refusesWorks(t, evil) })
	t.Run("where the cluster is", func(t *testing.T) { p.refusesEndpoints(t, evil) })
	t.Run("a full cluster", func(t *testing.T) { p.keepsRoomInClusters(t, evil) })
	t.Run("load", func(t *testing.T) { p.hasAFlow(t, evil) })
	t.Run("certificate requests", func(t *testing.T) { p.boundsRequests(t, evil) })
	t.Run("metadata", func(t *testing.T) { p.refusesMetadata(t, evil) })
}

// survivesStatuses reports statuses of all sorts from one cluster; the replicas of
// the other are always shown.
func (p *agentPlane) survivesStatuses(t *testing.T, evil *member.Identity) {
	t.Helper()
	for _, tc := range []struct {
		status string
		ready  int32
	}{
		{`{"replicas":1,"readyReplicas":1}`, 3},
		{`{"replicas":1,"readyReplicas":"many"}`, 2},
		{`{"replicas":1,"readyReplicas":-7}`, 2},
		{`{"replicas":2,"readyReplicas":2}`, 4},
		{`{"replicas":1,"readyReplicas":2147483647}`, 2},
		{`{"readyReplicas":3,"x":"` + strings.Repeat("x", 100<<10) + `"}`, 2},
		{`{"replicas":3,"readyReplicas":3}`, 5},
	} {
		p.must(t, reportStatus(t, evil.Client, "evil", shopWork, tc.status))
		testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
			template := &appsv1.Deployment{}
			if err := p.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "shop"}, template); err != nil {
				return err
			}
			if template.Status.ReadyReplicas != tc.ready {
				return fmt.Errorf("after %.60s: %d ready replicas, want %d", tc.status, template.Status.ReadyReplicas, tc.ready)
			}
			binding := &workv1alpha2.ResourceBinding{}
			if err := p.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "shop-deployment"}, binding); err != nil {
				return err
			}
			if len(binding.Status.AggregatedStatus) != 2 {
				return fmt.Errorf("%d aggregated statuses", len(binding.Status.AggregatedStatus))
			}
			for _, item := range binding.Status.AggregatedStatus {
				if item.Status != nil && len(item.Status.Raw) > 64<<10 {
					return errors.New("a status of more than 64 KiB is in the binding")
				}
			}
			return nil
		})
	}
}

// keepsRoomInClusters fills the Cluster of an agent as far as it may: an administrator can cordon and label it afterwards.
func (p *agentPlane) keepsRoomInClusters(t *testing.T, evil *member.Identity) {
	t.Helper()
	own := func() *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{}
		p.must(t, p.admin.Get(t.Context(), client.ObjectKey{Name: "evil"}, c))
		return c
	}
	before := own()
	for i, size := 0, 1<<20; size > 1<<10; i++ {
		c := own()
		c.Status.RemedyActions = append(c.Status.RemedyActions, strings.Repeat(fmt.Sprint(i%10), size))
		err := evil.Client.Status().Update(t.Context(), c)
		if err == nil || apierrors.IsConflict(err) { // the control plane may write it meanwhile
			continue
		}
		if !apierrors.IsInvalid(err) {
			t.Fatalf("writing %d bytes more: %v", size, err)
		}
		size /= 2
	}
	c := own()
	if size := len(strings.Join(c.Status.RemedyActions, "")); size < 512<<10 {
		t.Errorf("the agent filled %d bytes only", size)
	}
	c.Status.Conditions = make([]metav1.Condition, 1000)
	if err := evil.Client.Status().Update(t.Context(), c); !apierrors.IsInvalid(err) {
		t.Errorf("writing 1,000 conditions: %v", err)
	}
	c = own()
	c.Labels, c.Annotations = map[string]string{"a": "b"}, map[string]string{"a": strings.Repeat("x", 200<<10)}
	c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule})
	p.must(t, p.admin.Update(t.Context(), c))
	c.Labels, c.Annotations, c.Spec.Taints, c.Status = before.Labels, before.Annotations, before.Spec.Taints, before.Status
	p.must(t, p.admin.Update(t.Context(), c))
	c.Status = before.Status
	p.must(t, p.admin.Status().Update(t.Context(), c))
}

// refusesWorks writes Works that claim what is not the agent's to say.
func (p *agentPlane) refusesWorks(t *testing.T, evil *member.Identity) {
	t.Helper()
	c := evil.Client
	slice := func(change func(*workv1alpha1.Work)) *workv1alpha1.Work {
		w := &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-evil", Name: "slice", Labels: map[string]string{"endpointslice.karmada.io/name": "web"}, Finalizers: []string{"karmada.io/endpointslice-controller"}},
			Spec: workv1alpha1.WorkSpec{SuspendDispatching: new(true), Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{
				RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"default","name":"web-1"},"addressType":"IPv4","endpoints":[]}`)},
			}}}},
		}
		change(w)
		return w
	}
	for name, work := range map[string]*workv1alpha1.Work{
		"another Work of the binding":       shopWorkIn("evil", "forged"),
		"a Work with any object":            slice(func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests[0].Raw = []byte(shopManifest) }),
		"a Work that is dispatched":         slice(func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = nil }),
		"an EndpointSlice of a binding":     slice(func(w *workv1alpha1.Work) { w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = shopID }),
		"a Work without an object":          slice(func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil }),
		"an EndpointSlice with a finalizer": slice(func(w *workv1alpha1.Work) { w.Finalizers = []string{"evil.example/hold"} }),
	} {
		if err := c.Create(t.Context(), work); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "an agent may") {
			t.Errorf("%s: %v", name, err)
		}
	}
	own := slice(func(*workv1alpha1.Work) {})
	p.must(t, c.Create(t.Context(), own))
	own.Labels["endpointslice.karmada.io/name"] = "shop"
	p.must(t, c.Update(t.Context(), own))
	own.Spec.SuspendDispatching = nil
	if err := c.Update(t.Context(), own); !apierrors.IsForbidden(err) {
		t.Errorf("a collected EndpointSlice that is to be dispatched: %v", err)
	}
	merge := func(patch string) error {
		target := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-evil", Name: shopWork}}
		return c.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	for _, patch := range []string{
		`{"metadata":{"labels":{"resourcebinding.karmada.io/permanent-id":"other"}}}`,
		`{"metadata":{"labels":null}}`,
		`{"metadata":{"annotations":{"resourcebinding.karmada.io/name":"other"}}}`,
		`{"metadata":{"finalizers":["karmada.io/execution-controller","evil.example/hold"]}}`,
		`{"spec":{"preserveResourcesOnDeletion":true}}`,
		`{"spec":{"workload":{"manifests":[]}}}`,
	} {
		if err := merge(patch); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "an agent may") {
			t.Errorf("%s: %v", patch, err)
		}
	}
	// What agents do.
	for _, patch := range []string{
		`{"metadata":{"finalizers":[]}}`, `{"metadata":{"finalizers":["karmada.io/execution-controller"]}}`, `{"metadata":{"annotations":{"note":"x"}}}`,
	} {
		if err := merge(patch); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
	// A Work that claims the binding and was there before these rules.
	p.must(t, p.admin.Create(t.Context(), shopWorkIn("evil", "forged")))
	p.must(t, reportStatus(t, c, "evil", "forged", `{"replicas":100,"readyReplicas":100}`))
	p.must(t, reportStatus(t, c, "evil", shopWork, `{"replicas":1,"readyReplicas":1}`))
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		template := &appsv1.Deployment{}
		if err := p.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "shop"}, template); err != nil {
			return err
		}
		if template.Status.ReadyReplicas != 3 {
			return fmt.Errorf("%d ready replicas", template.Status.ReadyReplicas)
		}
		return nil
	})
}

// refusesMetadata ties objects that the agent may write to others.
func (p *agentPlane) refusesMetadata(t *testing.T, evil *member.Identity) {
	t.Helper()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	c, err := client.New(evil.Config, client.Options{Scheme: p.admin.Scheme()})
	p.must(t, err)
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: meta("karmada-cluster", "evil")},
		&corev1.Secret{ObjectMeta: meta("karmada-cluster", "evil-impersonator")},
		&coordinationv1.Lease{ObjectMeta: meta("karmada-cluster", "evil")},
		&coordinationv1.Lease{ObjectMeta: meta("karmada-system", "karmada-agent-evil")},
		&workv1alpha1.Work{ObjectMeta: meta("karmada-es-evil", shopWork)},
	} {
		for _, patch := range []string{
			`{"metadata":{"finalizers":["evil.example/hold"]}}`,
			`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","name":"good","uid":"x","blockOwnerDeletion":true}]}}`,
		} {
			target, ok := obj.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("no object")
			}
			err := c.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(patch)))
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "an agent may") {
				t.Errorf("%T %s: %s: %v", obj, obj.GetName(), patch, err)
			}
		}
	}
}

// refusesEndpoints sets the address of the cluster to one to which the control plane must not connect, and changes
// what was recorded at registration.
func (p *agentPlane) refusesEndpoints(t *testing.T, evil *member.Identity) {
	t.Helper()
	merge := func(c client.Client, patch string) error {
		target := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}
		return c.Patch(t.Context(), target, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	refuse := func(patches ...string) {
		t.Helper()
		for _, patch := range patches {
			if err := merge(evil.Client, patch); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "an agent may") {
				t.Errorf("%s: %v", patch, err)
			}
		}
	}
	refuse(
		`{"spec":{"apiEndpoint":"http://10.0.0.1"}}`, `{"spec":{"apiEndpoint":"https://127.0.0.1:2379"}}`, `{"spec":{"apiEndpoint":"https://localhost:2379"}}`,
		`{"spec":{"apiEndpoint":"https://169.254.169.254"}}`, `{"spec":{"apiEndpoint":"https://[::ffff:127.0.0.1]"}}`, `{"spec":{"apiEndpoint":"https://127.1"}}`,
		`{"spec":{"apiEndpoint":"https://10.0.0.1","proxyURL":"http://127.0.0.1:8080"}}`, `{"spec":{"proxyHeader":{"a":"b\r\nc: d"}}}`,
		`{"spec":{"region":"eu"}}`, `{"spec":{"resourceModels":[]}}`,
	)
	p.must(t, merge(evil.Client, `{"spec":{"apiEndpoint":"https://10.0.0.1:6443","proxyURL":"http://10.0.0.9:3128"}}`))
	refuse(`{"spec":{"apiEndpoint":"https://10.0.0.2:6443"}}`, `{"spec":{"proxyURL":null}}`, `{"spec":{"proxyHeader":{"a":"b"}}}`, `{"spec":{"apiEndpoint":""}}`)
	// An administrator changes what is fixed.
	p.must(t, merge(p.admin, `{"spec":{"apiEndpoint":"https://127.0.0.1:6443","proxyHeader":{"a":"b"},"region":"eu"}}`))
	p.must(t, merge(evil.Client, `{"metadata":{"annotations":{"note":"x"}}}`))
}

// describesTheCluster: what policies choose a cluster by comes with the
// request, once.
func (p *agentPlane) describesTheCluster(t *testing.T) {
	enrol := func(d agentcert.Description) (*member.Identity, error) {
		token := p.token(t)
		server, err := member.Discover(t.Context(), p.discovery(t, token.String()), nil)
		p.must(t, err)
		return member.Enrol(t.Context(), *server, member.EnrolRequest{Name: "described", ID: "id-described", Token: token.String(), Description: d, Timeout: 2 * time.Minute}, nil)
	}
	if _, err := enrol(agentcert.Description{Region: "no label!"}); err == nil || !strings.Contains(err.Error(), "spec.region") {
		t.Errorf("an impossible region: %v", err)
	}
	want := agentcert.Description{Provider: "p", Region: "eu", Zones: []string{"eu-1", "eu-2"}}
	for _, d := range []agentcert.Description{want, {Region: "us"}} {
		if _, err := enrol(d); err != nil {
			t.Fatal(err)
		}
		cluster := &clusterv1alpha1.Cluster{}
		p.must(t, p.admin.Get(t.Context(), client.ObjectKey{Name: "described"}, cluster))
		if cluster.Spec.Provider != want.Provider || cluster.Spec.Region != want.Region || !slices.Equal(cluster.Spec.Zones, want.Zones) {
			t.Errorf("got %+v", cluster.Spec)
		}
	}
}

// boundsRequests makes certificate requests that stay pending.
func (p *agentPlane) boundsRequests(t *testing.T, evil *member.Identity) {
	t.Helper()
	server := certificateRequest(t, "evil-server", agentcert.Subject("evil"), func(_ *x509.CertificateRequest, s *certificatesv1.CertificateSigningRequestSpec) {
		s.SignerName = "kubernetes.io/kubelet-serving"
	})
	large := certificateRequest(t, "evil-large", agentcert.Subject("evil"), func(r *x509.CertificateRequest, _ *certificatesv1.CertificateSigningRequestSpec) {
		r.DNSNames = []string{strings.Repeat("x", 20<<10)}
	})
	for _, csr := range []*certificatesv1.CertificateSigningRequest{server, large} {
		if err := evil.Client.Create(t.Context(), csr); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", csr.Name, err)
		}
	}
	for i := range 12 {
		p.must(t, evil.Client.Create(t.Context(), certificateRequest(t, fmt.Sprintf("evil-open-%d", i), agentcert.Subject("good"))))
	}
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		list := &certificatesv1.CertificateSigningRequestList{}
		if err := p.admin.List(ctx, list); err != nil {
			return err
		}
		open := 0
		for i := range list.Items {
			if csr := &list.Items[i]; csr.Spec.Username == "system:karmada:agent:evil" && len(csr.Status.Conditions) == 0 {
				open++
			}
		}
		if open > 5 {
			return fmt.Errorf("%d open certificate requests", open)
		}
		return nil
	})
	p.must(t, evil.Client.Get(t.Context(), client.ObjectKey{Name: "evil"}, &clusterv1alpha1.Cluster{}))
}

// hasAFlow asks which flow schema and priority level the requests of an agent and of the roles of the control plane are of.
func (p *agentPlane) hasAFlow(t *testing.T, evil *member.Identity) {
	t.Helper()
	role := rest.CopyConfig(p.home.Config)
	role.Impersonate.UserName = components.UserOf(components.Scheduler)
	const works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-evil/works"
	for _, tt := range []struct {
		config                      *rest.Config
		method, path, schema, level string
	}{
		{evil.Config, http.MethodGet, works, "karmada-agents", "karmada-agents"},
		{evil.Config, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters/evil", "karmada-agents", "karmada-agents"},
		{evil.Config, http.MethodGet, "/version", "karmada-agents", "karmada-agents"},
		{role, http.MethodGet, works, "karmada-control-plane", "karmada-control-plane"},
		{role, http.MethodPatch, works + "/w", "karmada-control-plane-writes", "karmada-control-plane"},
		{role, http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/l", "karmada-control-plane-leader-election", "leader-election"},
		{role, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", "karmada-control-plane-reviews", "exempt"},
	} {
		schema, level := &flowcontrolv1.FlowSchema{}, &flowcontrolv1.PriorityLevelConfiguration{}
		p.must(t, errors.Join(p.admin.Get(t.Context(), client.ObjectKey{Name: tt.schema}, schema), p.admin.Get(t.Context(), client.ObjectKey{Name: tt.level}, level)))
		c, err := rest.HTTPClientFor(tt.config)
		p.must(t, err)
		testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, tt.method, tt.config.Host+tt.path, http.NoBody)
			if err != nil {
				return err
			}
			answer, err := c.Do(req)
			if err != nil {
				return err
			}
			_ = answer.Body.Close()
			if got := answer.Header.Get("X-Kubernetes-Pf-Flowschema-Uid"); got != string(schema.UID) {
				return fmt.Errorf("%s %s: flow schema %q, want %s", tt.method, tt.path, got, tt.schema)
			}
			if got := answer.Header.Get("X-Kubernetes-Pf-Prioritylevel-Uid"); got != string(level.UID) {
				return fmt.Errorf("%s %s: priority level %q, want %s", tt.method, tt.path, got, tt.level)
			}
			return nil
		})
	}
}
