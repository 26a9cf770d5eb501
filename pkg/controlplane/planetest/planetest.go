// Package planetest prepares API servers for tests of the control plane's controllers.
package planetest

import (
	"context"
	"errors"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// Install creates the types of the control plane and waits until they are served. Cluster, which another server serves
// in a control plane, is one of them here. No type is converted between versions.
func Install(tb testing.TB, c client.Client) {
	tb.Helper()
	all, err := crds.All()
	if err != nil {
		tb.Fatal(err)
	}
	install(tb, c, append(all, clusters()))
}

// InstallClusters creates the type Cluster alone, as Install does.
func InstallClusters(tb testing.TB, c client.Client) {
	tb.Helper()
	install(tb, c, []*apiextensionsv1.CustomResourceDefinition{clusters()})
}

func install(tb testing.TB, c client.Client, all []*apiextensionsv1.CustomResourceDefinition) {
	tb.Helper()
	for _, crd := range all {
		crd.Spec.Conversion = nil
		if err := c.Create(tb.Context(), crd); err != nil {
			tb.Fatal(err)
		}
	}
	testenv.Eventually(tb, time.Minute, func(ctx context.Context) error {
		var errs []error
		for _, crd := range all {
			for _, v := range crd.Spec.Versions {
				if v.Served {
					list := &unstructured.UnstructuredList{}
					list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind + "List"})
					errs = append(errs, c.List(ctx, list))
				}
			}
		}
		return errors.Join(errs...)
	})
}

func clusters() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusters.cluster.karmada.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "cluster.karmada.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clusters", Singular: "cluster", Kind: "Cluster", ListKind: "ClusterList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1alpha1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

// Change changes an object as it is, whatever controllers write to it meanwhile. obj names it and becomes what is stored.
func Change(ctx context.Context, c client.Client, obj client.Object, change func()) error {
	return untilNoConflict(ctx, c, obj, change, func() error { return c.Update(ctx, obj) })
}

// ChangeStatus is Change for the status.
func ChangeStatus(ctx context.Context, c client.Client, obj client.Object, change func()) error {
	return untilNoConflict(ctx, c, obj, change, func() error { return c.Status().Update(ctx, obj) })
}

func untilNoConflict(ctx context.Context, c client.Client, obj client.Object, change func(), write func() error) error {
	return retry.RetryOnConflict(wait.Backoff{Steps: 50, Duration: time.Millisecond, Factor: 1.2, Jitter: 0.5}, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change()
		return write()
	})
}

// Start runs controllers in a manager of their own, as a new process would. setup adds them. stop ends them and returns
// the error of the manager.
func Start(tb testing.TB, cfg *rest.Config, setup func(ctx context.Context, mgr manager.Manager) error) (stop func() error) {
	tb.Helper()
	mgr, err := ctrl.NewManager(cfg, manager.Options{
		Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := setup(ctx, mgr); err != nil {
		cancel()
		tb.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return testenv.Stopped(<-done)
	}
}

// Templates returns a store of all types that can be propagated. It is not added to the manager.
func Templates(tb testing.TB, mgr manager.Manager) *templates.Store {
	tb.Helper()
	disc, err1 := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	dyn, err2 := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	apis, err3 := templates.ParseAPIs("")
	if err := errors.Join(err1, err2, err3); err != nil {
		tb.Fatal(err)
	}
	return templates.New(templates.Config{
		Discovery: disc, Dynamic: dyn, Mapper: mgr.GetRESTMapper(), SkippedAPIs: apis, SkippedNamespaces: propagation.DefaultNamespaces(),
	})
}
