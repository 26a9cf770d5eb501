package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
)

// An engine continues to make nodes for a program that was killed, and cannot remove
// them before they are made.
const (
	// unseenTimeout is how long such nodes may take to appear, deleteTimeout how long
	// they may take to go.
	unseenTimeout = 10 * time.Second
	deleteTimeout = time.Minute
)

// deleteAll removes exactly the clusters that the federation made.
func (c *clusters) deleteAll(ctx context.Context) error {
	made := c.record.made()
	errs := make([]error, len(made))
	var wg sync.WaitGroup
	for i, short := range made {
		wg.Go(func() {
			step := "remove " + short
			defer progress.Begin(ctx, c.Progress, step, &errs[i])()
			if errs[i] = c.delete(ctx, short, step); errs[i] == nil {
				c.Progress.Done(step, "kind cluster "+c.record.kindName(short))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// delete removes a kind cluster and returns when no node of it is left. It is a part
// of step.
func (c *clusters) delete(ctx context.Context, short, step string) error {
	name := c.record.kindName(short)
	begun := c.Now()
	first, err := c.lib.ListNodes(name)
	if err != nil {
		return fmt.Errorf("listing the nodes of kind cluster %q: %w", name, err)
	}
	complete, _ := c.record.state(short)
	seen := complete || len(first) > 0
	return wait.Until(ctx, wait.Options{
		Interval: time.Second,
		Publish: func(left error) {
			if left != nil {
				c.Progress.Waiting(step, "nodes that an earlier start requested")
			}
		},
	}, func(context.Context) error {
		if err := c.lib.Delete(name, c.record.kubeconfig(short)); err != nil {
			return wait.Terminal(fmt.Errorf("removing kind cluster %q: %w", name, err))
		}
		left, err := c.lib.ListNodes(name)
		if err != nil {
			return wait.Terminal(fmt.Errorf("listing the nodes of kind cluster %q: %w", name, err))
		}
		seen = seen || len(left) > 0
		waited := c.Now().Sub(begun)
		switch {
		case len(left) == 0 && (seen || waited > unseenTimeout):
			return nil
		case len(left) == 0:
			return errors.New("no node of it has appeared")
		case waited > deleteTimeout:
			return wait.Terminal(fmt.Errorf("removing kind cluster %q: node %s is still there after %s", name, left[0], deleteTimeout))
		}
		return fmt.Errorf("node %s is still there", left[0])
	})
}
