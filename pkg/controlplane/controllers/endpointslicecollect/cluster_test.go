package endpointslicecollect

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

func TestProject(t *testing.T) {
	wanted := sets.New(types.NamespacedName{Namespace: "default", Name: "web"})
	for name, tc := range map[string]struct {
		namespace string
		labels    map[string]string
		kept      bool
	}{
		"the slice of a Service that is wanted": {"default", map[string]string{"kubernetes.io/service-name": "web"}, true},
		"another Service":                       {"default", map[string]string{"kubernetes.io/service-name": "db"}, false},
		"another namespace":                     {"kube-system", map[string]string{"kubernetes.io/service-name": "web"}, false},
		"a slice that was dispatched":           {"default", map[string]string{"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-dispatch-controller.karmada.io"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{}, "uid": "u"}}}
			obj.SetNamespace(tc.namespace)
			obj.SetLabels(tc.labels)
			got, err := project(obj, wanted)
			if err != nil || (got.raw != "") != tc.kept || strings.Contains(got.raw, "managedFields") {
				t.Errorf("stored %q, %v", got.raw, err)
			}
		})
	}
}

func TestSelectorOf(t *testing.T) {
	all := sets.New[types.NamespacedName]()
	for i := range maxSelected {
		all.Insert(types.NamespacedName{Namespace: "a", Name: fmt.Sprintf("s%d", i)})
	}
	if selector, namespace := selectorOf(all); namespace != "a" || !strings.Contains(selector, "kubernetes.io/service-name in (s0,") {
		t.Errorf("got %s in %q", selector, namespace)
	}
	all.Insert(types.NamespacedName{Namespace: "b", Name: "more"})
	if selector, namespace := selectorOf(all); namespace != "" || !strings.Contains(selector, "kubernetes.io/service-name") || strings.Contains(selector, "s0") || !strings.Contains(selector, "notin") {
		t.Errorf("got %s in %q", selector, namespace)
	}
}

// TestCluster_Start replaces watches.
func TestCluster_Start(t *testing.T) {
	server := accesstest.New(t)
	pool := access.NewPool(access.Options{Secrets: func(context.Context, string, string) (*corev1.Secret, error) {
		return &corev1.Secret{Data: map[string][]byte{"token": []byte("t"), "caBundle": server.CA()}}, nil
	}})
	obj := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{
		APIEndpoint: server.URL, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "m1"},
	}}
	open := func() *access.Member {
		t.Helper()
		member, err := pool.Member(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		return member
	}
	hold := make(chan struct{})
	server.Fail(func(r *http.Request) int {
		if r.URL.Query().Get("watch") == "" {
			<-hold
		}
		return 0
	})
	restarted, synced := make(chan struct{}, 10), make(chan struct{}, 10)
	c := &cluster{name: "m1", enqueue: func(types.NamespacedName) {}, restart: func() { restarted <- struct{}{} }}
	t.Cleanup(c.stop)
	start := func(member *access.Member, names ...string) bool {
		wanted := sets.New[types.NamespacedName]()
		for _, name := range names {
			wanted.Insert(types.NamespacedName{Namespace: "default", Name: name})
		}
		return c.start(t.Context(), member, wanted, func(context.Context, *cluster) { synced <- struct{}{} })
	}
	member := open()
	if !start(member, "a") || !start(member, "a", "b") {
		t.Fatal("no watch was started")
	}
	close(hold)
	<-synced
	<-restarted // the Services changed meanwhile
	if !start(member, "a", "b") {
		t.Error("the Services that are wanted by now are not watched")
	}
	<-synced
	if start(member, "a", "b") || len(restarted) > 0 {
		t.Error("a watch was started although nothing changed")
	}
	pool.Keep(func(string) bool { return false }) // as a change of the CA does
	<-restarted
	if !start(open(), "a", "b") {
		t.Error("the watch was not started with the new connection")
	}
	<-synced
}
