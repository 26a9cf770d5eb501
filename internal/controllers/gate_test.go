package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A tenant with one request waits for one of each other, not for all.
func TestGate_TenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, next, order := NewGate(clock.RealClock{}, 1, 1), make(chan struct{}), []string{}
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

// More requests run while that does not make them slower: a server waits for a disk or a webhook, or has too few processors.
func TestGate_AdaptsToTheServer(t *testing.T) {
	const least, most, processors = 4, 32, 2
	for name, tc := range map[string]struct {
		took func(running int) time.Duration
		// from and to are how many run at a time in the end.
		from, to int
	}{
		"waits for a webhook": {func(int) time.Duration { return time.Second }, most, most},
		"is busy": {func(running int) time.Duration {
			return time.Duration(max(1, running/processors)) * 5 * time.Millisecond
		}, least, 2 * least},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate(clock.RealClock{}, least, most)
				_ = g.Do(t.Context(), "first", func() error { time.Sleep(tc.took(1)); return nil })
				g.limit = (least + most) / 2 // nothing runs
				for i := range 2000 {
					go func() {
						_ = g.Do(t.Context(), fmt.Sprint(i%100), func() error {
							g.mu.Lock()
							running := g.running
							g.mu.Unlock()
							time.Sleep(tc.took(running))
							return nil
						})
					}()
				}
				time.Sleep(time.Hour)
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.limit < tc.from || g.limit > tc.to || g.running != 0 {
					t.Errorf("%d at a time, want %d to %d; %d run", g.limit, tc.from, tc.to, g.running)
				}
			})
		})
	}
}

// A request whose context ends gives its turn to others, whether it waits or was admitted.
func TestGate_AbandonedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, hold := NewGate(clock.RealClock{}, 1, 1), make(chan struct{})
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
		synctest.Wait()
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.running != 0 || g.turns.Len() != 0 {
			t.Errorf("%d run, %d wait", g.running, g.turns.Len())
		}
	})
}

func TestGate_Client(t *testing.T) {
	g := NewGate(clock.RealClock{}, 1, 1)
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
	if len(tenants) != 6 || g.running != 0 {
		t.Errorf("passed %d times, %d run", len(tenants), g.running)
	}
}
