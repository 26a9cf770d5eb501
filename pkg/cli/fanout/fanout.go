// Package fanout does the same work for many clusters at once: bounded, in
// order, with a deadline for each, so that one cluster that does not respond
// does not delay the others.
package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits bounds the work.
type Limits struct {
	// Parallel is how many calls run at the same time; 0 is 32.
	Parallel int
	// Deadline is how long each cluster may take, from the start of its call; 0
	// is no deadline.
	Deadline time.Duration
}

// defaultParallel is enough for the round trips of a few hundred clusters to take
// a few times one of them.
const defaultParallel = 32

// ErrDeadline is the cause of an outcome that came too late.
var ErrDeadline = errors.New("no answer in time")

// Outcome is the result of one cluster.
type Outcome[T any] struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Value is what fn returned, also when it returned an error.
	Value T
	// Err is the reason for a missing or incomplete Value.
	Err error
}

// Each calls fn for every cluster and returns the outcomes in the order of
// clusters. A cluster whose fn has not returned by the deadline, or by the end of
// ctx, has an error; the context of its fn is cancelled, and Each does
// not wait for it.
func Each[T any](ctx context.Context, limits Limits, clusters []string, fn func(ctx context.Context, cluster string) (T, error)) []Outcome[T] {
	parallel := limits.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	out := make([]Outcome[T], len(clusters))
	free := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, cluster := range clusters {
		out[i].Cluster = cluster
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			out[i].Err = context.Cause(ctx)
			continue
		}
		wg.Go(func() {
			defer func() { <-free }()
			out[i] = one(ctx, limits.Deadline, cluster, fn)
		})
	}
	wg.Wait()
	return out
}

// one calls fn for a cluster and waits for it, but no longer than the deadline.
func one[T any](ctx context.Context, deadline time.Duration, cluster string, fn func(context.Context, string) (T, error)) Outcome[T] {
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, deadline, fmt.Errorf("%w (%s)", ErrDeadline, deadline))
		defer cancel()
	}
	done := make(chan Outcome[T], 1)
	go func() {
		value, err := fn(ctx, cluster)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		done <- Outcome[T]{Cluster: cluster, Value: value, Err: err}
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	select { // both at once: the result takes precedence
	case o := <-done:
		return o
	default:
		return Outcome[T]{Cluster: cluster, Err: context.Cause(ctx)}
	}
}
