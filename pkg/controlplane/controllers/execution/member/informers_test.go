package member_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

const configMapPath = "/api/v1/namespaces/default/configmaps/a"

func newMember(t *testing.T, server *accesstest.Server) *access.Member {
	t.Helper()
	m, err := access.NewMember("m1", server.Config(), meta.NewDefaultRESTMapper(nil))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A worker reads an informer while another one binds the informers to a new client.
func TestInformers_BindReplacesTheClient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	informers := member.NewInformers(ctx, member.Config{
		Cluster: "m1", Hasher: member.NewHasher(), Clock: clock.RealClock{},
		Works: func() int { return 1 }, Changed: func(_, _ *member.Snapshot) {}, Synced: func([]string) {}, Closed: func() {},
	})
	t.Cleanup(informers.Stop)
	t.Cleanup(cancel)
	servers := []*accesstest.Server{accesstest.New(t), accesstest.New(t)}
	servers[1].Put(configMapPath, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "default", "name": "a", "labels": map[string]any{"karmada.io/managed": "true"}},
	}})
	informers.Bind(newMember(t, servers[0]))
	informer := informers.Acquire(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "w")
	go informers.Bind(newMember(t, servers[1]))
	accesstest.Eventually(t, func() error {
		if view := informer.Get(types.NamespacedName{Namespace: "default", Name: "a"}); view.Snapshot == nil || !view.Synced {
			return errors.New("the object is not observed")
		}
		return nil
	})
}
