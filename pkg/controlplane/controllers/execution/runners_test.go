package execution

import (
	"context"
	"testing"
)

func TestRunners_RemoveKeepsTheRunnerOfALaterCluster(t *testing.T) {
	c := newBench(t, configMap).c
	start := func() *runner { return newRunner(context.Background(), c, "m1") }
	var all runners
	first := all.getOrAdd("m1", start)
	if !all.remove(first) || all.get("m1") != nil {
		t.Fatal("the runner of the cluster was not removed")
	}
	second := all.getOrAdd("m1", start)
	if all.remove(first) || all.get("m1") != second || second.ctx.Err() != nil {
		t.Error("the removal of the first runner ended the second one")
	}
	all.stop()
	if second.ctx.Err() == nil || len(all.all()) != 0 {
		t.Error("a runner is left")
	}
}
