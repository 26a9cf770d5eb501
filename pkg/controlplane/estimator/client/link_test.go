package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	testclock "k8s.io/utils/clock/testing"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
)

// An estimator without answers is called once in a pause, and again by every request when it answers.
func TestLink_PausesAfterFailures(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(0, 0))
	l := &link{clock: clock}
	calls := 0
	answer := status.Error(codes.Unavailable, "gone")
	call := func(ctx context.Context) error {
		_, err := l.call(ctx, func(context.Context, pb.EstimatorClient) (int32, error) {
			calls++
			return 1, answer
		})
		return err
	}
	expect := func(what string, want int, err error) {
		t.Helper()
		if calls != want || !errors.Is(err, answer) && (err == nil || answer == nil || err.Error() != answer.Error()) {
			t.Errorf("%s: %d calls, want %d: %v", what, calls, want, err)
		}
	}
	expect("first", 1, call(t.Context()))
	expect("in the pause", 1, call(t.Context()))
	clock.SetTime(clock.Now().Add(firstPause))
	expect("after the pause", 2, call(t.Context()))
	clock.SetTime(clock.Now().Add(firstPause))
	expect("the pause has doubled", 2, call(t.Context()))
	for range 20 {
		clock.SetTime(clock.Now().Add(maxPause))
		_ = call(t.Context())
	}
	calls = 0
	clock.SetTime(clock.Now().Add(maxPause))
	answer = nil
	expect("it answers", 1, call(t.Context()))
	expect("every request calls it", 2, call(t.Context()))
	answer = status.Error(codes.InvalidArgument, "this request")
	expect("a refusal is an answer", 3, call(t.Context()))
	expect("which pauses nothing", 4, call(t.Context()))
}

func TestLink_OneCallProbes(t *testing.T) {
	l := &link{clock: testclock.NewFakePassiveClock(time.Unix(10, 0)), failures: 1, last: errors.New("gone")}
	if err := l.admit(); err != nil {
		t.Error(err)
	}
	if err := l.admit(); err == nil {
		t.Error("a second call is made while one probes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.done(ctx, status.Error(codes.Canceled, ""))
	if l.failures != 1 || l.probing {
		t.Error("the end of the caller counts as an answer or leaves the probe open")
	}
}
