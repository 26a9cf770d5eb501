//go:build integration

// Package controllers_test tests controllers against real API servers. The tests run beside one another: each has API
// servers of its own, or objects of its own in one that several share.
package controllers_test

import (
	"context"
	"flag"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// TestMain has the controllers log with -v, for all tests of this process.
func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if testing.Verbose() {
		ctrl.SetLogger(klog.Background())
	}
	testenv.Main(m)
}

// apiServer is shared by tests that run no controllers which follow all objects.
var apiServer = testenv.Shared(testenv.ControlPlane())

func newClient(tb testing.TB, cluster *testenv.Cluster) client.WithWatch {
	tb.Helper()
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	must(tb, err)
	return c
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// live reads templates from the API server.
type live struct{ client.Reader }

func (l live) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj, l.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
}
