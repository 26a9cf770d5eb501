//go:build integration

package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/bindingstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cluster"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clusterstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// memberFederation is a control plane with one member, and the controllers of the
// member side.
type memberFederation struct {
	plane, member *testenv.Cluster
	client        client.Client // of the control plane, uncached
	there         client.Client // of the member
	stop          context.CancelFunc
	stopped       chan error
	pool          *access.Pool
}

// incarnation is 1, and grows when the member is found to be restored.
func (f *memberFederation) incarnation(t *testing.T) uint64 {
	t.Helper()
	obj := &clusterv1alpha1.Cluster{}
	must(t, f.client.Get(t.Context(), client.ObjectKey{Name: clusterName}, obj))
	m, err := f.pool.Member(t.Context(), obj)
	must(t, err)
	return m.Incarnation().Number
}

const clusterName = "m1"

func newMemberFederation(t *testing.T) *memberFederation {
	t.Helper()
	clusters := testenv.StartAll(t, testenv.ControlPlane(), testenv.Member(clusterName, 2))
	f := &memberFederation{plane: clusters[0], member: clusters[1]}
	f.client = newClient(t, f.plane)
	f.there = newClient(t, f.member)
	planetest.Install(t, f.client)
	f.start(t)
	t.Cleanup(func() { f.halt(t) })
	return f
}

// start runs the controllers.
func (f *memberFederation) start(t *testing.T) {
	t.Helper()
	mgr, err := ctrl.NewManager(f.plane.Config, manager.Options{
		Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := access.NewPool(access.Options{
		Clusters: mgr.GetClient(), Mapper: mgr.GetRESTMapper(),
		Secrets: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			s := &corev1.Secret{}
			return s, mgr.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
		},
	})
	f.pool = pool
	in := interpreter.New()
	shared := env.New(mgr)
	shared.Interpreter = in
	ctx, stop := context.WithCancel(context.Background())
	for _, err := range []error{
		controllers.Follow(mgr, &clusterv1alpha1.Cluster{}, pool),
		cluster.Setup(ctx, shared, cluster.Options{}),
		clusterstatus.Setup(ctx, mgr, clusterstatus.Deps{
			Members: pool, Resources: true, Modeling: true,
			SuccessThreshold: time.Second, FailureThreshold: 2 * time.Second,
		}),
		execution.Setup(ctx, mgr, execution.Deps{Members: pool, Interpreter: in}),
		bindingstatus.Setup(ctx, shared, bindingstatus.Options{Templates: live{mgr.GetAPIReader()}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f.stop, f.stopped = stop, make(chan error, 1)
	go func() { f.stopped <- mgr.Start(ctx) }()
	<-mgr.Elected()
	for _, obj := range []client.Object{&corev1.Namespace{}, &clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *memberFederation) halt(t *testing.T) {
	t.Helper()
	f.stop()
	if err := testenv.Stopped(<-f.stopped); err != nil {
		t.Errorf("stopping the controllers: %v", err)
	}
	f.stopped <- nil
}

// join makes the member a Cluster and returns when it is Ready.
func (f *memberFederation) join(t *testing.T) time.Duration {
	t.Helper()
	ctx := t.Context()
	must(t, f.there.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "plane"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "plane"}},
	}))
	must(t, f.there.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plane"}}))
	token, err := kubernetes.NewForConfigOrDie(f.member.Config).CoreV1().ServiceAccounts("default").CreateToken(ctx, "plane", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	must(t, f.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: clusterName},
		Data:       map[string][]byte{"token": []byte(token.Status.Token), "caBundle": f.member.Config.CAData},
	}))
	began := time.Now()
	must(t, f.client.Create(ctx, &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: clusterName},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: f.member.Config.Host,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "default", Name: clusterName},
		},
	}))
	f.waitReady(t, metav1.ConditionTrue)
	return time.Since(began)
}

func (f *memberFederation) waitReady(t *testing.T, want metav1.ConditionStatus) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.client.Get(ctx, client.ObjectKey{Name: clusterName}, c); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(c.Status.Conditions, "Ready"); ready == nil || ready.Status != want {
			return fmt.Errorf("ready: %v", ready)
		}
		return nil
	})
}

var memberBindings atomic.Int64

// propagate creates the template, its binding and its Work, as the earlier steps
// of the pipeline do.
func (f *memberFederation) propagate(t *testing.T, text string) (*unstructured.Unstructured, *workv1alpha1.Work) {
	t.Helper()
	ctx := t.Context()
	template := object(t, text)
	must(t, client.IgnoreAlreadyExists(f.client.Create(ctx, template)))
	id := fmt.Sprintf("id-%d", memberBindings.Add(1))
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: template.GetNamespace(), Name: names.Binding(template.GetKind(), template.GetName()),
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: template.GetAPIVersion(), Kind: template.GetKind(),
				Namespace: template.GetNamespace(), Name: template.GetName(), UID: template.GetUID(),
			},
			Clusters: []workv1alpha2.TargetCluster{{Name: clusterName}},
		},
	}
	must(t, f.client.Create(ctx, binding))
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.ExecutionNamespace(clusterName), Name: names.Work(template.GetKind(), template.GetName(), template.GetNamespace()),
		Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id},
		Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: binding.Namespace, workv1alpha2.ResourceBindingNameAnnotation: binding.Name},
		Finalizers:  []string{workv1alpha2.ExecutionControllerFinalizer},
	}}
	f.fill(t, work, template)
	must(t, f.client.Create(ctx, work))
	return template, work
}

// fill makes the template the manifest of the Work.
func (f *memberFederation) fill(t *testing.T, work *workv1alpha1.Work, template *unstructured.Unstructured) {
	t.Helper()
	copied := template.DeepCopy()
	must(t, manifest.Prepare(copied, manifest.Origin{
		UID: template.GetUID(), Generation: template.GetGeneration(),
		WorkNamespace: work.Namespace, WorkName: work.Name, ConflictResolution: "abort",
	}))
	raw, err := json.Marshal(copied)
	must(t, err)
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
	work.Spec.Workload.Manifests[0].Raw = raw
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	obj := &unstructured.Unstructured{}
	must(t, obj.UnmarshalJSON(data))
	return obj
}

type runtimeObject = runtime.Object
