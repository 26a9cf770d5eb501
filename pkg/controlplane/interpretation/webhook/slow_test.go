package webhook

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	testingclock "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

func discard(t *testing.T) *log.Logger {
	t.Helper()
	return log.New(io.Discard, "", 0)
}

func TestLayer_StopsWaitingAfterTheTimeout(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(r *configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
		<-release
		return healthy(r)
	})
	defer close(release)
	h := hookAt("hook.example.io", s, rule("*", "*"))
	h.TimeoutSeconds = new(int32(1))
	in := interpreterWith(t, Config{}, configuration("c", h))
	_, err := in.InterpretHealth(workflow())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "failed to call webhook: Post") {
		t.Errorf("got %v", err)
	}
	if n := s.count(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestLayer_EndsWithItsContext(t *testing.T) {
	called, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(r *configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
		close(called)
		<-release
		return healthy(r)
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	layer := New(ctx, Config{})
	layer.Load([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration("c", hookAt("hook.example.io", s, rule("*", "*")))})
	go func() {
		<-called
		cancel()
	}()
	if _, err := interpreter.New(interpreter.WithLayer(layer)).InterpretHealth(workflow()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A webhook that does not answer may hold back three callers; the fourth is
// turned away at once, and other webhooks and operations are not touched.
func TestLayer_ASlowWebhookHoldsBackNobodyElse(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	called, release := make(chan struct{}, slotsPerOperation), make(chan struct{})
	slow := serve(t, func(r *configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
		if r.Operation == configv1alpha1.InterpreterOperationInterpretHealth {
			called <- struct{}{}
			<-release
		}
		response := healthy(r)
		response.Replicas = new(int32(1))
		return response
	})
	quick := serve(t, healthy)
	in := interpreterWith(t, Config{Clock: clock}, configuration("c",
		hookAt("slow.example.io", slow, rule("Workflow", "*")), hookAt("quick.example.io", quick, rule("Other", "*"))))
	done := make(chan error, slotsPerOperation)
	for range slotsPerOperation {
		go func() {
			_, err := in.InterpretHealth(workflow())
			done <- err
		}()
	}
	for range slotsPerOperation {
		<-called
	}
	clock.SetTime(clock.Now().Add(slowAfter))
	if _, err := in.InterpretHealth(workflow()); !errors.Is(err, ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	if _, _, err := in.GetReplicas(workflow()); err != nil {
		t.Errorf("another operation: %v", err)
	}
	other := workflow()
	other.SetKind("Other")
	if _, err := in.InterpretHealth(other); err != nil {
		t.Errorf("another webhook: %v", err)
	}
	close(release)
	for range slotsPerOperation {
		if err := <-done; err != nil {
			t.Errorf("an answer that came late: %v", err)
		}
	}
	if _, err := in.InterpretHealth(workflow()); err != nil {
		t.Errorf("after it recovered: %v", err)
	}
}

func TestLane_CallersWaitWhileTheServerIsQuick(t *testing.T) {
	l := newLimiter(1, testingclock.NewFakePassiveClock(time.Now()))
	leave, err := l.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan error)
	go func() {
		leave, err := l.enter(t.Context())
		if err == nil {
			leave()
		}
		entered <- err
	}()
	leave()
	if err := <-entered; err != nil {
		t.Error(err)
	}
}

// No server accepts the first attempt; one accepts the second.
func TestEndpoint_TriesOnceMoreWhenNobodyWasThere(t *testing.T) {
	s := serve(t, healthy)
	var dials atomic.Int32
	e := newEndpoint(&admissionregistrationv1.WebhookClientConfig{URL: new(s.URL), CABundle: s.ca}, Config{Clock: testingclock.NewFakePassiveClock(time.Now())})
	defer e.close()
	dial := e.transport.DialContext
	e.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		return dial(ctx, network, address)
	}
	c, err := e.call(t.Context(), configv1alpha1.InterpreterOperationInterpretHealth, nil, &configv1alpha1.ResourceInterpreterRequest{UID: "u"})
	if err != nil || c.Response.UID != "u" || dials.Load() != 2 {
		t.Errorf("%v, %v after %d attempts", c, err, dials.Load())
	}
}

func TestLoad_KeepsTheConnectionsOfWhatStays(t *testing.T) {
	s := serve(t, healthy)
	var connections atomic.Int32
	layer := New(t.Context(), Config{})
	in := interpreter.New(interpreter.WithLayer(layer))
	for _, kind := range []string{"Workflow", "*"} {
		layer.Load([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration("c", hookAt("hook.example.io", s, rule(kind, "*")))})
		for _, e := range layer.endpoints {
			dial := e.transport.DialContext
			e.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				connections.Add(1)
				return dial(ctx, network, address)
			}
		}
		if _, err := in.InterpretHealth(workflow()); err != nil {
			t.Fatal(err)
		}
	}
	if connections.Load() != 1 {
		t.Errorf("%d connections", connections.Load())
	}
}
