package kindcluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// Names are the names of the clusters.
func (r *Runtime) Names() []string { return r.record.clusters() }

// StopParts stops the nodes of clusters, which are kept.
func (r *Runtime) StopParts(ctx context.Context, names []string) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	names = slices.DeleteFunc(r.record.made(), func(cluster string) bool { return !slices.Contains(names, cluster) })
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, cluster := range names {
		wg.Go(func() {
			step := "stop " + cluster
			defer progress.Begin(ctx, r.Progress, step, &errs[i])()
			if errs[i] = r.stopNodes(ctx, cluster); errs[i] == nil {
				r.Progress.Done(step, "kind cluster "+r.record.kindName(cluster))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *Runtime) stopNodes(ctx context.Context, cluster string) error {
	name := r.record.kindName(cluster)
	found, err := r.clusters.lib.ListNodes(name)
	if err != nil {
		return fmt.Errorf("listing the nodes of kind cluster %q: %w", name, err)
	}
	for _, node := range found {
		if _, err := r.engine.run(ctx, "stop", node.String()); err != nil {
			return fmt.Errorf("stopping node %s: %w", node, err)
		}
	}
	return nil
}

// Logs prints the log of the first node of a cluster.
func (r *Runtime) Logs(ctx context.Context, name string, options federation.LogOptions, out io.Writer) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	args := []string{"logs"}
	if options.Follow {
		args = append(args, "--follow")
	}
	if options.Tail >= 0 {
		args = append(args, "--tail", strconv.Itoa(options.Tail))
	}
	cmd := exec.CommandContext(ctx, r.engine.name, append(args, r.record.nodeName(name))...) //nolint:gosec // one of the three engines
	plain := &uncolored{to: out}
	cmd.Stdout, cmd.Stderr = plain, plain
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("printing the log of node %s: %w", r.record.nodeName(name), err)
	}
	return nil
}

// colors are the sequences with which systemd colors what it prints.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// uncolored writes lines without colors. A last line that does not end is not written.
type uncolored struct {
	to   io.Writer
	line []byte
}

// Write implements io.Writer.
func (u *uncolored) Write(p []byte) (int, error) {
	u.line = append(u.line, p...)
	end := bytes.LastIndexByte(u.line, '\n') + 1
	if end == 0 && len(u.line) < maxLine {
		return len(p), nil
	}
	end = cmp.Or(end, len(u.line))
	if _, err := u.to.Write(colors.ReplaceAll(u.line[:end], nil)); err != nil {
		return 0, err
	}
	u.line = append(u.line[:0], u.line[end:]...)
	return len(p), nil
}

// maxLine limits how much of a line is kept until it ends, in bytes.
const maxLine = 64 << 10
