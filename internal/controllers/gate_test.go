package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A tenant with one request waits for one of each other, not for all.
func TestGate_TenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, next, order := NewGate(1), make(chan struct{}), []string{}
		start := func(tenant string, i int) {
			go func() {
				_ = g.Do(t.Context(), tenant, func() error {
					order = append(order, fmt.Sprintf("%s%d", tenant, i)) // one at a time
					<-next
					return nil
				})
			}()
			synctest.Wait()
		}
		for i := range 4 {
			start("a", i)
		}
		start("b", 0)
		start("c", 0)
		for range 6 {
			next <- struct{}{}
			synctest.Wait()
		}
		if diff := cmp.Diff([]string{"a0", "a1", "b0", "c0", "a2", "a3"}, order); diff != "" {
			t.Error(diff)
		}
	})
}

// A request whose context ends gives its turn to others, whether it waits or was admitted.
func TestGate_AbandonedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, hold := NewGate(1), make(chan struct{})
		go func() { _ = g.Do(t.Context(), "a", func() error { <-hold; return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { failed <- g.Do(ctx, "b", func() error { panic("it ran") }) }()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(hold)
		refused := errors.New("refused")
		for range 3 {
			if err := g.Do(t.Context(), "c", func() error { return refused }); !errors.Is(err, refused) {
				t.Errorf("got %v", err)
			}
		}
		if g.free != 1 || g.turns.Len() != 0 {
			t.Errorf("%d free, %d wait", g.free, g.turns.Len())
		}
	})
}

func TestGate_Client(t *testing.T) {
	g := NewGate(1)
	var tenants []string
	c := g.Client(fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).Build(), func(o client.Object) string {
		tenants = append(tenants, o.GetName())
		return o.GetName()
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	other := pod.DeepCopy()
	other.Labels = map[string]string{"a": "b"}
	for _, err := range []error{
		c.Create(t.Context(), pod), c.Patch(t.Context(), other, client.MergeFrom(pod)), c.Update(t.Context(), other), c.Status().Update(t.Context(), other),
		c.Status().Patch(t.Context(), other, client.MergeFrom(pod)), c.Delete(t.Context(), other),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if len(tenants) != 6 || g.free != 1 {
		t.Errorf("passed %d times, %d free", len(tenants), g.free)
	}
}
