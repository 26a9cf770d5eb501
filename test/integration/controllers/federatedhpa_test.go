//go:build integration

// Covers pkg/controlplane/controllers/federatedhpa.

package controllers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cronfederatedhpa"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/federatedhpa"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/hpatarget"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/replicassync"
	controlplaneenv "github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

const (
	autoscalingNamespace = "default"
	autoscalingPeriod    = 200 * time.Millisecond
)

// autoscalingEnv is a control plane with the controllers of autoscaling, and members in memory.
type autoscalingEnv struct {
	plane   *testenv.Cluster
	client  client.Client
	members map[string]*accesstest.Server
	usage   *podUsage
	stop    func()
}

// podUsage answers metrics.k8s.io of the control plane: every pod of the members uses the same.
type podUsage struct {
	mu      sync.Mutex
	cpu     string
	fail    bool
	members map[string]*accesstest.Server
}

func (u *podUsage) set(cpu string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cpu, u.fail = cpu, cpu == ""
}

func (u *podUsage) answer(r *http.Request) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fail {
		return nil, errors.New("metrics are not available")
	}
	list := metricsv1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetricsList"}}
	app := strings.TrimPrefix(r.URL.Query().Get("labelSelector"), "app=")
	for cluster, m := range u.members {
		for i := range 30 {
			p := m.Get(podPath(app, i))
			if p == nil {
				continue
			}
			list.Items = append(list.Items, metricsv1beta1.PodMetrics{
				ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: p.GetName(), Annotations: map[string]string{autoscaling.ClusterAnnotation: cluster}},
				Timestamp:  metav1.Now(), Window: metav1.Duration{Duration: time.Second},
				Containers: []metricsv1beta1.ContainerMetrics{{Name: "app", Usage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(u.cpu)}}},
			})
		}
	}
	data, err := json.Marshal(list)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}, err
}

func newAutoscalingEnv(t *testing.T) *autoscalingEnv {
	t.Helper()
	e := &autoscalingEnv{plane: testenv.Start(t, testenv.ControlPlane()), members: map[string]*accesstest.Server{"m1": accesstest.New(t), "m2": accesstest.New(t)}}
	c, err := client.New(e.plane.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	e.client, e.usage = c, &podUsage{cpu: "100m", members: e.members}
	planetest.Install(t, e.client)
	for name, m := range e.members {
		e.join(t, name, m)
	}
	e.start(t)
	t.Cleanup(func() { e.stop() })
	return e
}

func (e *autoscalingEnv) create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := e.client.Create(t.Context(), obj); err != nil {
		t.Fatalf("%T: %v", obj, err)
	}
}

func (e *autoscalingEnv) join(t *testing.T, name string, m *accesstest.Server) {
	t.Helper()
	m.Require("token")
	e.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name}, Data: map[string][]byte{"token": []byte("token"), "caBundle": m.CA()}})
	e.create(t, &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{APIEndpoint: m.URL, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: autoscalingNamespace, Name: name}, SyncMode: clusterv1alpha1.Push},
	})
	e.ready(t, name, metav1.ConditionTrue)
}

func (e *autoscalingEnv) ready(t *testing.T, name string, status metav1.ConditionStatus) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, status)
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.client.Status().Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// start runs the controllers as a new process does.
func (e *autoscalingEnv) start(t *testing.T) {
	t.Helper()
	cfg := rest.CopyConfig(e.plane.Config)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return &planeTransport{usage: e.usage, below: rt}
	})
	mgr, err := ctrl.NewManager(cfg, manager.Options{
		Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		t.Fatal(err)
	}
	disc, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	store := templates.New(templates.Config{Discovery: disc, Dynamic: dyn, Mapper: mgr.GetRESTMapper()})
	pool := access.NewPool(access.Options{Mapper: mgr.GetRESTMapper(), Secrets: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		s := &corev1.Secret{}
		return s, mgr.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
	}})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	shared := controlplaneenv.New(mgr)
	shared.Store, shared.Members = store, pool
	err = errors.Join(mgr.Add(store), cronfederatedhpa.Setup(ctx, shared, 0), hpatarget.Setup(ctx, shared), replicassync.Setup(ctx, shared),
		federatedhpa.Setup(ctx, shared, federatedhpa.Options{
			SyncPeriod: autoscalingPeriod, CacheSyncTimeout: 3 * time.Second, Settings: autoscaling.Settings{DownscaleStabilization: time.Second, Tolerance: 0.1},
		}))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := testenv.Stopped(<-stopped); err != nil {
			t.Error(err)
		}
	})
}

type planeTransport struct {
	usage *podUsage
	below http.RoundTripper
}

func (p *planeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/apis/metrics.k8s.io/") {
		return p.below.RoundTrip(r)
	}
	return p.usage.answer(r)
}

func podPath(app string, i int) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/pods/%s-%d", autoscalingNamespace, app, i)
}

// workload creates a propagated Deployment of the control plane, with its binding to clusters, of which the first gets
// the replicas.
func (e *autoscalingEnv) workload(t *testing.T, name string, replicas int32, clusters ...string) {
	t.Helper()
	policy := map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name}
	d := autoscalingDeployment(name, replicas)
	d.Labels = policy
	e.create(t, d)
	targets := make([]workv1alpha2.TargetCluster, len(clusters))
	for i, cluster := range clusters {
		targets[i].Name = cluster
	}
	targets[0].Replicas = replicas
	spec := workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: autoscalingNamespace, Name: name}, Replicas: replicas,
		Clusters:  targets,
		Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}},
	}
	e.create(t, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name + "-deployment", Labels: policy}, Spec: spec})
}

func autoscalingDeployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}}},
		},
	}
}

// run makes a member run a number of pods of a workload.
func (e *autoscalingEnv) run(t *testing.T, cluster, name string, replicas int) {
	t.Helper()
	m := e.members[cluster]
	d := autoscalingDeployment(name, int32(replicas))
	d.Status.Replicas = int32(replicas)
	m.Put(fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments/%s", autoscalingNamespace, name), toUnstructured(t, d))
	since := metav1.NewTime(time.Now().Add(-time.Hour))
	for i := range 30 {
		if i >= replicas {
			m.Remove(podPath(name, i))
			continue
		}
		m.Put(podPath(name, i), toUnstructured(t, &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &since, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}}},
		}))
	}
}

func toUnstructured(t *testing.T, obj any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func (e *autoscalingEnv) hpa(t *testing.T, name, target string, edit ...func(*autoscalingv1alpha1.FederatedHPA)) *autoscalingv1alpha1.FederatedHPA {
	t.Helper()
	h := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name}}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	h.Spec.MinReplicas, h.Spec.MaxReplicas = new(int32(1)), 10
	h.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
	}}}
	for _, f := range edit {
		f(h)
	}
	e.create(t, h)
	return h
}

func (e *autoscalingEnv) replicas(t *testing.T, name string, want int32) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: autoscalingNamespace, Name: name}, d); err != nil {
			return err
		}
		if *d.Spec.Replicas != want {
			return fmt.Errorf("%s has %d replicas, want %d", name, *d.Spec.Replicas, want)
		}
		return nil
	})
}

func (e *autoscalingEnv) condition(t *testing.T, name string, kind autoscalingv2.HorizontalPodAutoscalerConditionType, reason string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		h := &autoscalingv1alpha1.FederatedHPA{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: autoscalingNamespace, Name: name}, h); err != nil {
			return err
		}
		for _, c := range h.Status.Conditions {
			if c.Type == kind && c.Reason == reason {
				return nil
			}
		}
		list := &corev1.EventList{}
		if err := e.client.List(ctx, list, client.InNamespace(autoscalingNamespace), client.MatchingFields{"involvedObject.name": name}); err != nil {
			return err
		}
		var messages []string
		for _, ev := range list.Items {
			messages = append(messages, ev.Reason+" "+ev.Message)
		}
		return fmt.Errorf("no condition %s with reason %s: %+v, events %q", kind, reason, h.Status.Conditions, messages)
	})
}

func (e *autoscalingEnv) event(t *testing.T, name, reason, text string) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		list := &corev1.EventList{}
		if err := e.client.List(ctx, list, client.InNamespace(autoscalingNamespace)); err != nil {
			return err
		}
		for _, ev := range list.Items {
			if ev.InvolvedObject.Name == name && ev.Reason == reason && strings.Contains(ev.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("no event %s about %s with %q", reason, name, text)
	})
}

func TestAutoscaling(t *testing.T) {
	t.Parallel()
	e := newAutoscalingEnv(t)
	t.Run("a cluster is lost", e.testLostCluster)
	t.Run("a cluster hangs", e.testHangingCluster)
	t.Run("pods of one cluster have no requests", e.testMissingRequests)
	t.Run("targets that cannot be scaled", e.testBadTargets)
	t.Run("two scalers of one target", e.testTwoScalers)
	t.Run("a template without replicas", e.testZero)
	t.Run("rules at times", e.testCron)
	t.Run("autoscalers in members", e.testNative)
}

// rescaled waits until the replicas of a template were written. A later pass may have changed them again, since the
// members of these tests do not follow the template.
func (e *autoscalingEnv) rescaled(t *testing.T, name string, replicas int) {
	t.Helper()
	e.event(t, name, "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: cpu resource utilization (percentage of request) above target", replicas))
}

func (e *autoscalingEnv) testLostCluster(t *testing.T) {
	e.workload(t, "lost", 2, "m1", "m2")
	e.run(t, "m1", "lost", 1)
	e.run(t, "m2", "lost", 1)
	e.usage.set("100m")
	e.hpa(t, "lost", "lost")
	e.condition(t, "lost", autoscalingv2.ScalingActive, "ValidMetricFound")
	// No metrics: nothing changes, and the condition states it, also after a restart.
	e.stop()
	e.start(t)
	e.usage.set("")
	e.condition(t, "lost", autoscalingv2.ScalingActive, "FailedGetResourceMetric")
	e.replicas(t, "lost", 2)
	e.usage.set("100m")
	// The requests of the second cluster are not answered any longer, and then it is not ready.
	e.members["m2"].Fail(func(*http.Request) int { return http.StatusServiceUnavailable })
	e.members["m2"].CloseClientConnections()
	e.event(t, "lost", "ClustersLeftOut", "m2")
	e.replicas(t, "lost", 2)
	e.usage.set("200m")
	e.rescaled(t, "lost", 4)
	e.replicas(t, "lost", 10)
	e.ready(t, "m2", metav1.ConditionFalse)
	e.event(t, "lost", "ClustersLeftOut", "m2 (not ready)")
	e.members["m2"].Fail(nil)
	e.ready(t, "m2", metav1.ConditionTrue)
	e.removeHPAs(t, "lost")
}

func (e *autoscalingEnv) testHangingCluster(t *testing.T) {
	hanging := accesstest.New(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hanging.Fail(func(*http.Request) int {
		<-release
		return http.StatusServiceUnavailable
	})
	e.join(t, "m3", hanging)
	e.workload(t, "slow", 2, "m1", "m3")
	e.run(t, "m1", "slow", 1)
	e.usage.set("200m")
	e.hpa(t, "slow", "slow")
	e.event(t, "slow", "ClustersLeftOut", "m3 (no answer in time)")
	// The cluster that answers decides: twice the target there is twice the replicas of all.
	e.rescaled(t, "slow", 4)
	e.removeHPAs(t, "slow")
}

func (e *autoscalingEnv) testMissingRequests(t *testing.T) {
	e.workload(t, "requestless", 2, "m1", "m2")
	e.run(t, "m1", "requestless", 1)
	e.run(t, "m2", "requestless", 1)
	path := podPath("requestless", 0)
	pod := e.members["m2"].Get(path).DeepCopy()
	containers := []any{map[string]any{"name": "app"}}
	if err := unstructured.SetNestedSlice(pod.Object, containers, "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	e.members["m2"].Put(path, pod)
	e.usage.set("100m")
	e.hpa(t, "requestless", "requestless")
	e.condition(t, "requestless", autoscalingv2.ScalingActive, "FailedGetResourceMetric")
	e.event(t, "requestless", "MissingRequests", "container app of pods in cluster m2 has no request for cpu")
	e.replicas(t, "requestless", 2)
	e.removeHPAs(t, "requestless")
}

func (e *autoscalingEnv) testBadTargets(t *testing.T) {
	e.hpa(t, "missing", "missing")
	e.condition(t, "missing", autoscalingv2.AbleToScale, "FailedGetScaleTargetRef")
	d := autoscalingDeployment("local", 1)
	e.create(t, d)
	e.hpa(t, "local", "local")
	e.condition(t, "local", autoscalingv2.AbleToScale, "FailedGetBinding")
	e.workload(t, "nowhere", 1, "m1", "m2")
	e.hpa(t, "nowhere", "nowhere")
	e.condition(t, "nowhere", autoscalingv2.AbleToScale, "FailedGetScale")
	e.event(t, "nowhere", "ClustersLeftOut", `deployments.apps "nowhere" not found`)
	e.noScale(t, "unscalable")
	e.condition(t, "unscalable", autoscalingv2.AbleToScale, "FailedGetScale")
	e.event(t, "unscalable", "FailedGetScale", "the server could not find the requested resource")
	e.hpa(t, "bounds", "nowhere", func(h *autoscalingv1alpha1.FederatedHPA) { h.Spec.MinReplicas = new(int32(11)) })
	e.condition(t, "bounds", autoscalingv2.AbleToScale, "InvalidBounds")
	e.removeHPAs(t, "missing", "local", "nowhere", "unscalable", "bounds")
}

// noScale creates a FederatedHPA whose target is propagated and has no replicas: a ConfigMap.
func (e *autoscalingEnv) noScale(t *testing.T, name string) {
	t.Helper()
	policy := map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name}
	meta := metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name, Labels: policy}
	e.create(t, &corev1.ConfigMap{ObjectMeta: meta})
	meta.Name += "-configmap"
	e.create(t, &workv1alpha2.ResourceBinding{ObjectMeta: meta, Spec: workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: autoscalingNamespace, Name: name}, Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}},
	}})
	e.hpa(t, name, name, func(h *autoscalingv1alpha1.FederatedHPA) {
		h.Spec.ScaleTargetRef.APIVersion, h.Spec.ScaleTargetRef.Kind = "v1", "ConfigMap"
	})
}

func (e *autoscalingEnv) remove(t *testing.T, obj client.Object) {
	t.Helper()
	if err := e.client.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func (e *autoscalingEnv) removeHPAs(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		e.remove(t, &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: autoscalingNamespace, Name: name}})
	}
}
