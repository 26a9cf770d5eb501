package role

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// candidate is a process that may become the leader.
type candidate struct {
	leads atomic.Bool
	ended chan struct{}
	stop  context.CancelFunc
}

func elect(t *testing.T, lock resourcelock.Interface) *candidate {
	t.Helper()
	c := &candidate{ended: make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { c.leads.Store(true) }, OnStoppedLeading: func() { c.leads.Store(false) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = func() {
		stop()
		<-c.ended
	}
	go func() {
		defer close(c.ended)
		elector.Run(ctx)
	}()
	return c
}

// A control plane changes from roles in processes of their own to one process and back, with all of them running meanwhile: none leads
// that shares a role with another that leads.
func TestElection_OneProcessAndProcessesOfRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := clientfake.NewClientset()
		lock := func(name string, identity resourcelock.ResourceLockConfig) (resourcelock.Interface, error) {
			return resourcelock.New(resourcelock.LeasesResourceLock, "karmada-system", name, api.CoreV1(), api.CoordinationV1(), identity)
		}
		single := func(lease string) *candidate {
			l, err := lock(lease, resourcelock.ResourceLockConfig{Identity: lease + time.Now().String()})
			if err != nil {
				t.Fatal(err)
			}
			return elect(t, l)
		}
		both := func() *candidate {
			l, err := bothLocks(controllerManagerLock, schedulerLock, lock)
			if err != nil {
				t.Fatal(err)
			}
			return elect(t, l)
		}
		expect := func(when string, leaders int, candidates ...*candidate) {
			t.Helper()
			time.Sleep(10 * time.Second) // of the bubble: longer than a Lease lasts
			synctest.Wait()
			got := 0
			for _, c := range candidates {
				if c.leads.Load() {
					got++
				}
			}
			if got != leaders {
				t.Errorf("%s: %d lead, not %d", when, got, leaders)
			}
		}
		manager, scheduler := single(controllerManagerLock), single(schedulerLock)
		expect("processes of roles", 2, manager, scheduler)
		first, second := both(), both()
		expect("one process beside those of roles", 0, first, second)
		manager.stop()
		expect("one process beside a scheduler", 0, first, second)
		scheduler.stop()
		expect("two replicas of one process", 1, first, second)
		manager, scheduler = single(controllerManagerLock), single(schedulerLock)
		expect("processes of roles beside the one", 0, manager, scheduler)
		first.stop() // who is first takes the Leases: the other replica, or both processes
		time.Sleep(10 * time.Second)
		if synctest.Wait(); second.leads.Load() == (manager.leads.Load() || scheduler.leads.Load()) {
			t.Errorf("one process leads: %t, the roles: %t, %t", second.leads.Load(), manager.leads.Load(), scheduler.leads.Load())
		}
		second.stop()
		expect("processes of roles again", 2, manager, scheduler)
		manager.stop()
		scheduler.stop()
	})
}
