//go:build integration

package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllermanager"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler"
)

// servicesLimit is how long a state may take to become what is expected.
const servicesLimit = time.Minute

// servicesFederation is a control plane and members, with all controllers and a scheduler.
type servicesFederation struct {
	testing.TB
	plane   client.WithWatch
	config  *testenv.Cluster
	members map[string]client.WithWatch
	servers map[string]*testenv.Cluster
}

func newServicesFederation(t testing.TB, names ...string) *servicesFederation {
	t.Helper()
	specs := []testenv.Spec{testenv.ControlPlane()}
	for range names {
		specs = append(specs, testenv.ControlPlane()) // no pods run in these members
	}
	clusters := testenv.StartAll(t, specs...)
	f := &servicesFederation{TB: t, plane: newClient(t, clusters[0]), config: clusters[0], members: map[string]client.WithWatch{}, servers: map[string]*testenv.Cluster{}}
	t.Cleanup(f.dump)
	planetest.Install(f, f.plane)
	f.start(clusters[0])
	for i, name := range names {
		f.servers[name] = clusters[i+1]
		f.members[name] = newClient(t, clusters[i+1])
		f.join(name)
	}
	return f
}

// dump logs the Works after a failure.
func (f *servicesFederation) dump() {
	list := &workv1alpha1.WorkList{}
	if !f.Failed() || f.plane.List(context.Background(), list) != nil {
		return
	}
	for i := range list.Items {
		w := &list.Items[i]
		if services := w.Labels["multiclusterservice.karmada.io/name"] + w.Labels["endpointslice.karmada.io/name"]; services != "" {
			f.Logf("%s/%s: service %s, labels %v, annotations %v, deleted %v, finalizers %v, conditions %v, %s", w.Namespace, w.Name, services, w.Labels, w.Annotations,
				w.DeletionTimestamp, w.Finalizers, w.Status.Conditions, w.Spec.Workload.Manifests[0].Raw)
		}
	}
}

func (f *servicesFederation) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *servicesFederation) eventually(check func(ctx context.Context) error) {
	f.Helper()
	testenv.Eventually(f.TB, servicesLimit, check)
}

// start runs the controllers and the scheduler.
func (f *servicesFederation) start(plane *testenv.Cluster) {
	f.Helper()
	mgr, err := ctrl.NewManager(plane.Config, manager.Options{
		Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	f.must(err)
	ctx, stop := context.WithCancel(context.Background())
	o := controllermanager.NewOptions()
	o.SuccessThreshold, o.FailureThreshold, o.StatusFrequency = time.Second, 2*time.Second, time.Second
	f.must(o.Gates.Set("MultiClusterService=true"))
	f.must(controllermanager.Setup(ctx, mgr, o))
	f.must(scheduler.Setup(ctx, mgr, scheduler.NewOptions()))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	f.Cleanup(func() {
		stop()
		if err := testenv.Stopped(<-stopped); err != nil {
			f.Errorf("stopping the controllers: %v", err)
		}
	})
}

// join makes a new member a Cluster and returns when it is Ready.
func (f *servicesFederation) join(name string) {
	f.Helper()
	ctx, there := f.Context(), f.members[name]
	f.must(there.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "plane"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "plane"}},
	}))
	f.must(there.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plane"}}))
	f.enrol(name)
}

// enrol makes a member a Cluster in Push mode and returns when it is Ready.
func (f *servicesFederation) enrol(name string) {
	f.Helper()
	ctx, cfg := f.Context(), f.servers[name].Config
	token, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().ServiceAccounts("default").CreateToken(ctx, "plane", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	f.must(err)
	err = f.plane.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string][]byte{"token": []byte(token.Status.Token), "caBundle": cfg.CAData},
	})
	if !apierrors.IsAlreadyExists(err) { // a cluster that joins again
		f.must(err)
	}
	f.must(f.plane.Create(ctx, &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: cfg.Host,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "default", Name: name},
		},
	}))
	f.waitReady(name, metav1.ConditionTrue)
}

func (f *servicesFederation) waitReady(name string, want metav1.ConditionStatus) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.plane.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(c.Status.Conditions, "Ready"); ready == nil || ready.Status != want {
			return fmt.Errorf("cluster %s: %v", name, ready)
		}
		return nil
	})
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// slice returns a slice with one endpoint for each address.
func slice(service, name string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(80)), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return s
}

func selectors(names ...string) []networkingv1alpha1.ClusterSelector {
	var out []networkingv1alpha1.ClusterSelector
	for _, name := range names {
		out = append(out, networkingv1alpha1.ClusterSelector{Name: name})
	}
	return out
}

func crossCluster(name string, providers, consumers []string) *networkingv1alpha1.MultiClusterService {
	return &networkingv1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{networkingv1alpha1.MultiClusterServicePermanentIDLabel: "id-" + name}},
		Spec: networkingv1alpha1.MultiClusterServiceSpec{
			Types: []networkingv1alpha1.ExposureType{networkingv1alpha1.ExposureTypeCrossCluster}, ProviderClusters: selectors(providers...), ConsumerClusters: selectors(consumers...),
		},
	}
}

// addresses returns "slice=address,..." of the slices of a Service that the control plane
// created in a member, in order.
func (f *servicesFederation) addresses(ctx context.Context, member, service string) ([]string, error) {
	list := &discoveryv1.EndpointSliceList{}
	if err := f.members[member].List(ctx, list, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return nil, err
	}
	var out []string
	for _, s := range list.Items {
		if !strings.HasSuffix(s.Labels[discoveryv1.LabelManagedBy], "karmada.io") {
			continue
		}
		var all []string
		for _, e := range s.Endpoints {
			all = append(all, e.Addresses...)
		}
		out = append(out, s.Name+"="+strings.Join(all, ","))
	}
	slices.Sort(out)
	return out, nil
}

func (f *servicesFederation) wantSlices(member, service string, want ...string) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		got, err := f.addresses(ctx, member, service)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("slices of %s in %s: %v, want %v", service, member, got, want)
		}
		return err
	})
}

// wantNoWorks waits until no Work of a slice is left.
func (f *servicesFederation) wantNoWorks(containing string) {
	f.Helper()
	f.eventually(func(ctx context.Context) error {
		list := &workv1alpha1.WorkList{}
		if err := f.plane.List(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			w := &list.Items[i]
			if strings.Contains(w.Name, containing) {
				return fmt.Errorf("work %s/%s is left: labels %v, finalizers %v, deleted %v", w.Namespace, w.Name, w.Labels, w.Finalizers, w.DeletionTimestamp)
			}
		}
		return nil
	})
}

func es(cluster string) string { return names.ExecutionNamespace(cluster) }
