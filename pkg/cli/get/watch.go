package get

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// firstRetry and lastRetry bound the pause before a cluster that broke off is
	// watched again.
	firstRetry = time.Second
	lastRetry  = 15 * time.Second
)

// change is the change of one object, or the error of a cluster.
type change struct {
	cluster string
	kind    watch.EventType
	columns []metav1.TableColumnDefinition
	row     metav1.TableRow
	object  *unstructured.Unstructured
	err     error
}

// stream is the watch of one cluster. After an interruption it continues from the last
// version; if that has expired, it lists the objects and compares them.
type stream struct {
	cluster string
	server  *server
	query   query
	version string
	columns []metav1.TableColumnDefinition
	// known are the objects that exist, by namespace and name.
	known map[string]change
	out   chan<- change
	retry time.Duration
}

// run watches until the context ends.
func (s *stream) run(ctx context.Context) {
	pause := s.retry
	for ctx.Err() == nil {
		err := s.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			s.version, err = "", nil
		}
		if err == nil {
			pause = s.retry
			continue
		}
		s.send(ctx, change{err: err})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, lastRetry)
	}
}

// watch sends changes until the server ends the watch or the connection fails.
func (s *stream) watch(ctx context.Context) error {
	if s.version == "" {
		if err := s.relist(ctx); err != nil {
			return err
		}
	}
	r := s.server.listRequest(s.query, "", "").Param("watch", "true").
		Param("resourceVersion", s.version).Param("allowWatchBookmarks", "true")
	body, err := r.Stream(ctx)
	if err != nil {
		return typed(err)
	}
	defer body.Close() //nolint:errcheck // nothing was written
	events := json.NewDecoder(body)
	for {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return fmt.Errorf("reading changes: %w", err)
		}
		if err := s.take(ctx, event.Type, event.Object); err != nil {
			return err
		}
	}
}

// take sends the change of one event.
func (s *stream) take(ctx context.Context, kind watch.EventType, body []byte) error {
	if kind == watch.Error {
		var status metav1.Status
		if err := json.Unmarshal(body, &status); err != nil {
			return fmt.Errorf("reading an error: %w", err)
		}
		return apierrors.FromObject(&status)
	}
	p := s.server.newPart(s.query)
	if err := p.add(body); err != nil {
		return err
	}
	if p.table != nil && len(p.table.ColumnDefinitions) == 0 {
		p.table.ColumnDefinitions = s.columns
	}
	if kind != watch.Bookmark {
		if err := s.server.decorate(ctx, p); err != nil {
			return err
		}
	}
	for _, c := range s.changes(p) {
		if v := c.object.GetResourceVersion(); v != "" {
			s.version = v
		}
		if kind == watch.Bookmark {
			continue
		}
		c.kind = kind
		if kind == watch.Deleted {
			delete(s.known, c.key())
		} else {
			s.known[c.key()] = c
		}
		s.send(ctx, c)
	}
	return nil
}

// relist lists the objects and sends the differences to the known ones.
func (s *stream) relist(ctx context.Context) error {
	p, err := s.server.get(ctx, s.query)
	if err != nil {
		return err
	}
	s.compare(ctx, p)
	return nil
}

func (s *stream) compare(ctx context.Context, p *part) {
	s.version = p.resourceVersion
	gone := s.known
	s.known = map[string]change{}
	for _, c := range s.changes(p) {
		old, was := gone[c.key()]
		delete(gone, c.key())
		s.known[c.key()] = c
		switch {
		case !was:
			c.kind = watch.Added
		case old.object.GetResourceVersion() == c.object.GetResourceVersion():
			continue
		default:
			c.kind = watch.Modified
		}
		s.send(ctx, c)
	}
	for _, c := range gone {
		c.kind = watch.Deleted
		s.send(ctx, c)
	}
}

// changes returns the objects of a response as changes without a type.
func (s *stream) changes(p *part) []change {
	table := p.table
	if table == nil {
		table = plainTable(p.objects, metav1.Now())
	}
	if len(table.ColumnDefinitions) > 0 {
		s.columns = table.ColumnDefinitions
	}
	var out []change
	for n, r := range table.Rows {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if u, ok := r.Object.Object.(*unstructured.Unstructured); ok {
			object = u
		} else if err := json.Unmarshal(r.Object.Raw, &object.Object); err != nil {
			continue
		}
		out = append(out, change{cluster: p.clusterOf(n, s.cluster), columns: s.columns, row: r, object: object})
	}
	return out
}

func (s *stream) send(ctx context.Context, c change) {
	c.cluster = cmp.Or(c.cluster, s.cluster)
	select {
	case s.out <- c:
	case <-ctx.Done():
	}
}

func (c change) key() string {
	return c.cluster + "/" + c.object.GetNamespace() + "/" + c.object.GetName()
}
