//go:build integration

package controllers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/agent"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// removalLimit is how long a cluster may take to leave, on a slow machine.
const removalLimit = 2 * time.Minute

// membersLeave has m1, in Push mode, and m2, in Pull mode with an agent, leave while they provide, consume, export or
// import a Service. m3 stays and is their counterpart.
func (f *servicesFederation) membersLeave(t *testing.T) {
	for _, list := range []client.Object{&networkingv1alpha1.MultiClusterService{}, &policyv1alpha1.PropagationPolicy{}, &multiclusterv1alpha1.ServiceExport{}, &multiclusterv1alpha1.ServiceImport{}} {
		f.must(f.plane.DeleteAllOf(t.Context(), list, client.InNamespace("default")))
	}
	f.unjoin(t, "m2")
	stop := f.register(t, "m2")
	f.addressLost(t, "m2")
	for i, role := range []struct {
		name string
		// here are the slices that m3 has while the members take part, and there those that they have.
		here, there []string
		objects     func(name string) []client.Object
	}{
		{"provider", []string{"m1-provider-m1=10.1.0.1", "m2-provider-m2=10.2.0.1"}, nil, func(name string) []client.Object {
			return []client.Object{crossCluster(name, []string{"m1", "m2"}, []string{"m3"})}
		}},
		{"consumer", nil, []string{"m3-consumer-m3=10.3.0.1"}, func(name string) []client.Object {
			return []client.Object{crossCluster(name, []string{"m3"}, []string{"m1", "m2"})}
		}},
		{"exporter", []string{"imported-m1-exporter-m1=10.1.0.1", "imported-m2-exporter-m2=10.2.0.1"}, nil, func(name string) []client.Object {
			return exported(name, []string{"m1", "m2"}, []string{"m3"})
		}},
		{"importer", nil, []string{"imported-m3-importer-m3=10.3.0.1"}, func(name string) []client.Object {
			return exported(name, []string{"m3"}, []string{"m1", "m2"})
		}},
	} {
		f.create(t, f.plane, append([]client.Object{service(role.name)}, role.objects(role.name)...)...)
		in := role.name
		if i > 1 {
			in = "derived-" + role.name
		}
		if len(role.here) > 0 {
			f.create(t, f.members["m1"], slice(role.name, role.name+"-m1", "10.1.0.1"))
			f.create(t, f.members["m2"], slice(role.name, role.name+"-m2", "10.2.0.1"))
		} else {
			f.create(t, f.members["m3"], slice(role.name, role.name+"-m3", "10.3.0.1"))
		}
		f.wantSlices("m3", in, role.here...)
		f.wantSlices("m1", in, role.there...)
		f.wantSlices("m2", in, role.there...)

		made := f.worksMade(t)
		var left sync.WaitGroup
		left.Go(func() { f.unjoin(t, "m1") })
		left.Go(func() { f.unregister(t, "m2") })
		left.Wait()
		stop()
		if t.Failed() {
			t.Fatalf("as %s", role.name)
		}
		for name, count := range made(role.name) {
			t.Errorf("%s: %s was made %d times while its cluster was leaving", role.name, name, count)
		}
		f.wantSlices("m3", in)
		if role.name == "importer" {
			return
		}
		for _, obj := range role.objects(role.name) {
			f.must(f.plane.Delete(t.Context(), obj))
		}
		f.enrol("m1")
		stop = f.register(t, "m2")
	}
}

// addressLost has the Cluster of a running agent lose its address, which the agent sets again, and an administrator
// replace it, which the agent leaves alone.
func (f *servicesFederation) addressLost(t *testing.T, name string) {
	t.Helper()
	own, cluster := f.servers[name].Config.Host, &clusterv1alpha1.Cluster{}
	set := func(endpoint string) {
		f.eventually(func(ctx context.Context) error {
			if err := f.plane.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
				return err
			}
			cluster.Spec.APIEndpoint = endpoint
			return f.plane.Update(ctx, cluster)
		})
	}
	set("")
	f.eventually(func(ctx context.Context) error {
		err := f.plane.Get(ctx, client.ObjectKey{Name: name}, cluster)
		if err == nil && cluster.Spec.APIEndpoint != own {
			err = fmt.Errorf("%s has the address %q, want %q", name, cluster.Spec.APIEndpoint, own)
		}
		return err
	})
	set("https://192.0.2.9:6443")
	f.waitReady(name, metav1.ConditionTrue)
	f.must(f.plane.Get(t.Context(), client.ObjectKey{Name: name}, cluster))
	if cluster.Spec.APIEndpoint != "https://192.0.2.9:6443" {
		t.Errorf("%s has the address %q that the agent put back", name, cluster.Spec.APIEndpoint)
	}
	set(own)
}

// exported returns what exports a Service from clusters, and imports it in others.
func exported(name string, from, to []string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	return []client.Object{
		&multiclusterv1alpha1.ServiceExport{ObjectMeta: meta},
		&multiclusterv1alpha1.ServiceImport{ObjectMeta: meta, Spec: multiclusterv1alpha1.ServiceImportSpec{
			Type: multiclusterv1alpha1.ClusterSetIP, Ports: []multiclusterv1alpha1.ServicePort{{Port: 80}},
		}},
		servicesPolicy(name+"-export", from,
			policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service", Name: name},
			policyv1alpha1.ResourceSelector{APIVersion: multicluster, Kind: "ServiceExport", Name: name}),
		servicesPolicy(name+"-import", to, policyv1alpha1.ResourceSelector{APIVersion: multicluster, Kind: "ServiceImport", Name: name}),
	}
}

// worksMade counts the Works that are created again in the namespaces of m1 and m2 from now on. The function that it
// returns returns the marks of MultiClusterServices, of which there must be none, and other Works that were created more
// than twice.
func (f *servicesFederation) worksMade(t *testing.T) func(role string) map[string]int {
	t.Helper()
	now := &workv1alpha1.WorkList{}
	f.must(f.plane.List(t.Context(), now))
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w, err := f.plane.Watch(ctx, &workv1alpha1.WorkList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion}})
	f.must(err)
	return func(role string) map[string]int {
		defer cancel()
		// The events before that of the last Work have been read with it.
		last := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: es("m3"), Name: "last-" + role}}
		last.Spec.SuspendDispatching = new(true)
		f.create(t, f.plane, last)
		out := map[string]int{}
		for e := range w.ResultChan() {
			work, ok := e.Object.(*workv1alpha1.Work)
			if !ok {
				t.Fatalf("the watch of Works failed: %v", e.Object)
			}
			switch {
			case e.Type != watch.Added:
			case work.Name == last.Name:
				f.must(f.plane.Delete(t.Context(), last))
				for name, count := range out {
					if count <= 2 {
						delete(out, name)
					}
				}
				return out
			case work.Namespace == es("m1") || work.Namespace == es("m2"):
				out[work.Namespace+"/"+work.Name]++
				if services.Marks(work).Name != "" {
					out[work.Namespace+"/"+work.Name] += 2
				}
			}
		}
		t.Fatal("the watch of Works ended")
		return nil
	}
}

func (f *servicesFederation) unjoin(t *testing.T, name string) {
	t.Helper()
	left, err := member.Unjoin(t.Context(), member.Deps{ControlPlane: f.plane, Member: f.members[name]}, member.UnjoinRequest{
		Name: name, Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Wait: removalLimit,
	})
	if err != nil || len(left) > 0 {
		t.Errorf("%s leaves %v: %v", name, left, err)
	}
}

func (f *servicesFederation) unregister(t *testing.T, name string) {
	t.Helper()
	left, err := member.Unregister(t.Context(), member.Deps{ControlPlane: f.plane, Member: f.members[name]}, member.UnregisterRequest{
		Name: name, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Agent: "karmada-agent", ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster, Wait: removalLimit,
	})
	if err != nil || len(left) > 0 {
		t.Errorf("%s leaves %v: %v", name, left, err)
	}
}

// register runs an agent for a member until stop is called, and returns when the cluster is Ready.
func (f *servicesFederation) register(t *testing.T, name string) (stop func()) {
	t.Helper()
	o := agent.NewOptions()
	o.ClusterName, o.KarmadaKubeconfig, o.Kubeconfig = name, f.config.Kubeconfig, f.servers[name].Kubeconfig
	o.ReportSecrets, o.ClusterAPIEndpoint = []string{"None"}, f.servers[name].Config.Host
	o.SuccessThreshold, o.FailureThreshold, o.StatusFrequency = time.Second, 2*time.Second, time.Second
	f.must(o.Gates.Set("MultiClusterService=true"))
	credentials, err := o.Credentials("karmada-agent")
	f.must(err)
	options := manager.Options{
		Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	}
	f.must(o.Manager(&options))
	mgr, err := ctrl.NewManager(credentials.Config, options)
	f.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	f.must(agent.Setup(ctx, mgr, o))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := testenv.Stopped(<-stopped); err != nil {
			t.Errorf("stopping the agent of %s: %v", name, err)
		}
	})
	t.Cleanup(stop)
	f.waitReady(name, metav1.ConditionTrue)
	return stop
}
