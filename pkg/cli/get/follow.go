package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/liggitt/tabwriter"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// follow prints the objects and then their changes, until the user interrupts it.
func (c *collector) follow(ctx context.Context, e *env.Env) error {
	if len(c.sources.known)+len(c.sources.unknown) != 1 || len(c.targets[0].names) > 1 {
		return errors.New("watch is only supported on individual resources and resource collections - more than 1 resource was found")
	}
	names := c.targets[0].names
	c.narrow(names)
	done := e.Waiting(c.pending.String)
	first, err := c.collect(ctx)
	done()
	if err != nil {
		return err
	}
	if len(first.answers) == 0 {
		return errors.Join(errors.New("not to find obj that is watched"), first.failure())
	}
	c.hintScope(e, first)
	if len(names) > 0 && len(first.errs) == 0 && first.empty() {
		return apierrors.NewNotFound(first.answers[0].parts[0].mapping.Resource.GroupResource(), names[0])
	}
	changes := make(chan change)
	var wg sync.WaitGroup
	for _, s := range c.streams(first, changes) {
		wg.Go(func() { s.run(ctx) })
	}
	p := &follower{collector: c, env: e}
	err = p.print(ctx, first, changes)
	wg.Wait()
	return err
}

// narrow selects a single object with a field selector, because only a list can be watched.
func (c *collector) narrow(names []string) {
	if len(names) == 0 {
		return
	}
	c.sources.fields = "metadata.name=" + names[0]
	c.targets[0].names = nil
	for i := range c.sources.known {
		c.sources.known[i].names = nil
	}
	for i := range c.sources.unknown {
		c.sources.unknown[i].names = nil
	}
}

func (r *result) empty() bool {
	for _, a := range r.answers {
		for _, p := range a.parts {
			if !p.empty() {
				return false
			}
		}
	}
	return true
}

// streams returns a watch for every cluster in scope. A watch continues from the response
// of its cluster; clusters that failed are retried.
func (c *collector) streams(first *result, out chan<- change) []*stream {
	parts := map[string]*part{}
	var typed query
	for _, a := range first.answers {
		for _, p := range a.parts {
			parts[a.cluster] = p
			typed = query{target: c.targets[0], mapping: p.mapping}
		}
	}
	clusters := c.members
	if c.controlPlane() && parts[controlPlaneName] != nil {
		clusters = append([]string{controlPlaneName}, clusters...)
	}
	var streams []*stream
	for _, cluster := range clusters {
		srv, err := c.sources.server(cluster)
		if err != nil {
			continue // its query failed with the same error
		}
		s := &stream{cluster: cluster, server: srv, query: typed, out: out, retry: firstRetry, known: map[string]change{}}
		if p := parts[cluster]; p != nil {
			s.query.mapping = p.mapping
			s.version = p.resourceVersion
			for _, ch := range s.changes(p) {
				s.known[ch.key()] = ch
			}
		}
		streams = append(streams, s)
	}
	return streams
}

// follower prints changes as they come.
type follower struct {
	*collector
	env *env.Env
	// group holds the columns of all clusters.
	group   group
	printer printers.ResourcePrinter
	// failed is the last printed error of each cluster that fails.
	failed map[string]string
}

func (f *follower) print(ctx context.Context, first *result, changes <-chan change) error {
	w := printers.GetNewTabWriter(f.request.output(f.env)) // one for all, as it remembers the widths
	if err := f.start(w, first); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return env.ErrInterrupted
		case c := <-changes:
			if c.err != nil {
				f.printError(c)
				continue
			}
			delete(f.failed, c.cluster)
			if err := f.show(w, c); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
	}
}

// start prints the existing objects, and the clusters that failed.
func (f *follower) start(w *tabwriter.Writer, first *result) error {
	for _, note := range first.notes {
		f.env.Say("%s; trying again", note)
	}
	for _, err := range first.errs {
		f.env.Say("%s; trying again", err)
	}
	f.failed = first.failed
	groups, err := merge(first.answers, f.now(f.env))
	if err != nil {
		return err
	}
	for _, a := range first.answers {
		for _, p := range a.parts {
			f.group.mapping = p.mapping
		}
	}
	if f.printer, err = f.request.printer(f.group.mapping, false); err != nil {
		return err
	}
	if len(groups) == 0 {
		return nil
	}
	f.group.columns = groups[0].columns
	if f.watchOnly {
		return nil
	}
	for _, r := range groups[0].rows {
		f.group.rows = []row{r}
		if err := f.emit(w, watch.Added, r); err != nil {
			return err
		}
	}
	return w.Flush()
}

// show prints one change.
func (f *follower) show(w io.Writer, c change) error {
	f.group.rows = nil
	p := &part{mapping: f.group.mapping, table: &metav1.Table{ColumnDefinitions: c.columns, Rows: []metav1.TableRow{c.row}}}
	if err := f.group.add(c.cluster, p, f.now(f.env)); err != nil {
		return err
	}
	return f.emit(w, c.kind, f.group.rows[0])
}

func (f *follower) emit(w io.Writer, kind watch.EventType, r row) error {
	var obj runtime.Object = f.group.table()
	if !f.request.tables {
		if r.cluster != controlPlaneName {
			annotate(r.object, r.cluster)
		}
		obj = r.object
	}
	if f.watchEvents {
		obj = &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: obj}}
	}
	return f.printer.PrintObj(obj, w)
}

// printError prints the error of a cluster, unless it was the last one printed.
func (f *follower) printError(c change) {
	text := clusterError(c.cluster, c.err, 0).Error()
	if f.failed[c.cluster] == text {
		return
	}
	f.failed[c.cluster] = text
	f.env.Say("%s; trying again", text)
}
