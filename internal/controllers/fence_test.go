package controllers

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/karmada"

// fenceBench is a Fence with a server that counts writes.
type fenceBench struct {
	t        *testing.T
	clock    *clocktesting.FakeClock
	fence    *Fence
	election http.RoundTripper
	writes   http.RoundTripper
	sent     int
	// block, if set, is called for each write.
	block func(req *http.Request)
	code  int
}

func newFenceBench(t *testing.T) *fenceBench {
	b := &fenceBench{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), code: http.StatusOK}
	var _ clock.WithDelayedExecution = b.clock
	b.fence = NewFence(b.clock, 10*time.Second, 15*time.Second)
	server := roundTripper{send: func(req *http.Request) (*http.Response, error) {
		if b.block != nil {
			b.block(req)
		}
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		b.sent++
		rec := httptest.NewRecorder()
		rec.WriteHeader(b.code)
		return rec.Result(), nil
	}}
	b.election, b.writes = b.fence.Election("")(server), b.fence.Wrap(server)
	return b
}

func (b *fenceBench) do(rt http.RoundTripper, method, path string) error {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, "https://server"+path, strings.NewReader("{}"))
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (b *fenceBench) renew() { _ = b.do(b.election, http.MethodPut, leasePath) }

func (b *fenceBench) write() error {
	return b.do(b.writes, http.MethodPut, "/api/v1/namespaces/a/configmaps/a")
}

func (b *fenceBench) lost() bool {
	select {
	case <-b.fence.Lost():
		return true
	default:
		return false
	}
}

func TestFence_WritesAreRefusedFromTheDeadline(t *testing.T) {
	b := newFenceBench(t)
	if err := b.write(); err != nil {
		t.Errorf("before an election: %v", err)
	}
	b.renew()
	b.clock.Step(10*time.Second - 1)
	if err := b.write(); err != nil {
		t.Errorf("within the deadline: %v", err)
	}
	b.clock.Step(1)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := b.do(b.writes, method, "/api/v1/x"); !errors.Is(err, errFenced) {
			t.Errorf("%s at the deadline: %v", method, err)
		}
	}
	if err := b.do(b.writes, http.MethodGet, "/api/v1/x"); err != nil {
		t.Errorf("a read: %v", err)
	}
	if b.lost() {
		t.Error("lost before the end of the lease")
	}
	b.renew() // nobody took over: the lease had not ended
	if err := b.write(); err != nil {
		t.Errorf("after a renewal: %v", err)
	}
}

// TestFence_PausedLeader stops time for the process, as SIGSTOP does, beyond its lease.
func TestFence_PausedLeader(t *testing.T) {
	b := newFenceBench(t)
	b.renew()
	b.clock.SetTime(b.clock.Now().Add(30 * time.Second))
	if err := b.write(); !errors.Is(err, errFenced) {
		t.Errorf("the first write after the pause: %v", err)
	}
	b.renew() // the lease was free again, or nobody wanted it
	if err := b.write(); !errors.Is(err, errFenced) || !b.lost() {
		t.Errorf("after a renewal that comes too late: %v, lost %t", err, b.lost())
	}
}

func TestFence_FailedRenewalsDoNotCount(t *testing.T) {
	b := newFenceBench(t)
	b.renew()
	b.clock.Step(6 * time.Second)
	b.code = http.StatusConflict
	b.renew()
	_ = b.do(b.election, http.MethodGet, leasePath)
	b.code = http.StatusOK
	_ = b.do(b.election, http.MethodPost, "/api/v1/namespaces/karmada-system/events")
	b.clock.Step(4 * time.Second)
	if err := b.write(); !errors.Is(err, errFenced) {
		t.Errorf("after failed renewals: %v", err)
	}
}

func TestFence_WritesThatAreBeingSentEnd(t *testing.T) {
	b := newFenceBench(t)
	b.renew()
	sent := b.sent
	b.block = func(req *http.Request) { // such as a connection that takes long
		b.clock.Step(11 * time.Second)
		<-req.Context().Done()
	}
	if err := b.write(); !errors.Is(err, errFenced) || b.sent != sent {
		t.Errorf("a write that was not sent by the deadline: %v, %d sent", err, b.sent-sent)
	}
	b.block = nil
	b.fence.mu.Lock()   // the timer for the end of the lease is set when it is free
	b.fence.mu.Unlock() //nolint:staticcheck // see above
	b.clock.Step(4 * time.Second)
	<-b.fence.Lost()
}

func TestFenceOf_ManagerWithoutOne(t *testing.T) {
	var mgr manager.Manager
	f := FenceOf(mgr)
	if f != nil || f.Lost() != nil || f.Wrap(http.DefaultTransport) != http.DefaultTransport {
		t.Error("a manager without a fence has one")
	}
}

// A leader with two Leases has both when it renewed the last of them.
func TestFence_TheLastOfTwoLeasesCounts(t *testing.T) {
	b := newFenceBench(t)
	b.election = b.fence.Election("second")(b.election.(roundTripper).base)
	for _, tc := range []struct {
		method, path string
		counts       bool
	}{
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/first", false},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/second", true},
		{http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/a/leases", true},
		{http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/a/leases/second", false},
	} {
		b.fence.renew(b.clock.Now())
		b.clock.Step(9 * time.Second)
		if err := b.do(b.election, tc.method, tc.path); err != nil {
			t.Fatal(err)
		}
		b.clock.Step(2 * time.Second)
		if err := b.write(); (err == nil) != tc.counts {
			t.Errorf("%s %s: %v", tc.method, tc.path, err)
		}
	}
}
