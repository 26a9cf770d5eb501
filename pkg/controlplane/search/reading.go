package search

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/proxy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	domain "github.com/karmada-toolkit/karmada/pkg/domain/search"
)

const (
	// minWatch is the least time after which a watch without a timeout ends; it is at most twice that.
	minWatch = 30 * time.Minute
	// bookmarkInterval is how often a watch that allows it gets a bookmark.
	bookmarkInterval = time.Minute
	// eventsAtOnce is how many events of a watch wait to be written together.
	eventsAtOnce = 64
)

// reading is a request that the caches answer.
type reading struct {
	caches *cache.Caches
	query  cache.Query
	kind   schema.GroupVersionKind
	// options are those of the request.
	options metav1.ListOptions
	// strict has a list fail that is not complete.
	strict bool
	// tables is nil if whole objects are wanted.
	tables *tables
	// lease takes the memory of the answer.
	lease func(cache.Result) (*lease, error)
}

// read answers a get, list or watch from the caches.
func (g *global) read(w http.ResponseWriter, req *http.Request, in proxy.Inner, info *genericrequest.RequestInfo, requester user.Info, responder rest.Responder) {
	if formOf(req.Header.Values("Accept")) == formNone {
		responder.Error(failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "objects of several clusters are answered in application/json only"))
		return
	}
	resource := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	kind, err := g.cached.kindOf(resource)
	if err != nil {
		responder.Error(apierrors.NewInternalError(err))
		return
	}
	tables, err := g.tables(req, in.Query(req).Get("includeObject"), resource.GroupResource(), kind)
	if err != nil {
		responder.Error(err)
		return
	}
	consistent, err := wantsConsistent(in.Query(req), info.Verb)
	if err != nil {
		responder.Error(err)
		return
	}
	if info.Verb == "get" && !consistent {
		g.get(w, info, tables, responder)
		return
	}
	r, err := g.reading(req.Context(), in.Query(req), resource, kind, info.Namespace)
	if err == nil {
		r.tables = tables
		r.lease = func(result cache.Result) (*lease, error) { return g.cached.lease(req, result) }
	}
	switch {
	case err != nil:
		responder.Error(err)
	case consistent:
		g.consistent(w, req, in, r, info, requester, responder)
	case info.Verb == "watch":
		r.watch(w, req, responder)
	default:
		r.list(w, req, responder)
	}
}

// get answers with one object of the caches.
func (g *global) get(w http.ResponseWriter, info *genericrequest.RequestInfo, tables *tables, responder rest.Responder) {
	item, err := g.locate(info)
	if err != nil {
		responder.Error(err)
		return
	}
	data, err := item.JSON()
	if err != nil {
		responder.Error(apierrors.NewInternalError(err))
		return
	}
	(&reading{tables: tables}).writeOne(w, item.Cluster, data, responder)
}

// writeOne answers with one object of a cluster.
func (r *reading) writeOne(w http.ResponseWriter, cluster string, data []byte, responder rest.Responder) {
	data = domain.FromMember(domain.FormatJSON, data, cluster)
	if r.tables != nil {
		var err error
		if data, err = r.tables.event("", cluster, data); err != nil {
			responder.Error(apierrors.NewInternalError(err))
			return
		}
	}
	write(w, data)
}

// reading returns what a request selects.
func (g *global) reading(ctx context.Context, values url.Values, resource schema.GroupVersionResource, kind schema.GroupVersionKind, namespace string) (*reading, error) {
	// A list with a name is one that a field selector restricts to it; the path has none.
	query, options, err := queryOf(values, resource, &genericrequest.RequestInfo{Namespace: namespace})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	strict := false
	if text := values.Get("strict"); text != "" {
		if strict, err = strconv.ParseBool(text); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the parameter strict is %q: use true or false", text))
		}
	}
	if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return nil, expired("objects of an exact version are not kept: leave out resourceVersionMatch, or use NotOlderThan")
	}
	if err := g.cached.selectFields(ctx, &query, kind, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	query.Kind = kind
	return &reading{caches: g.cached.caches, query: query, kind: kind, options: options, strict: strict}, nil
}

// expired is the answer to a version or token with which the request cannot go on.
func expired(text string) error { return apierrors.NewResourceExpired(text) }

// list answers with a page. All pages of a list have the version of the first, so that a watch from it misses nothing.
func (r *reading) list(w http.ResponseWriter, req *http.Request, responder rest.Responder) {
	var from domain.Continue
	if r.options.Continue != "" {
		var ok bool
		if from, ok = domain.DecodeContinue(r.options.Continue); !ok || from.Token == "" {
			responder.Error(expired(cache.TokenError{}.Error()))
			return
		}
		r.query.Continue = from.Token
	}
	result, err := r.caches.List(r.query)
	switch {
	case errors.As(err, new(cache.TokenError)):
		responder.Error(expired(err.Error()))
		return
	case err != nil:
		responder.Error(apierrors.NewInternalError(err))
		return
	case r.strict && len(result.Missing) > 0:
		responder.Error(apierrors.NewServiceUnavailable(fmt.Sprintf("cluster %s: %s", result.Missing[0].Cluster, result.Missing[0].Reason)))
		return
	}
	lease, err := r.lease(result)
	if err != nil {
		responder.Error(err)
		return
	}
	defer lease.free()
	versions := domain.NewVersions(result.Versions)
	if r.options.Continue != "" {
		versions = from.Versions
	}
	for _, m := range result.Missing {
		warning.AddWarning(req.Context(), "", fmt.Sprintf("cluster %s: %s", m.Cluster, m.Reason))
	}
	next := ""
	if result.Continue != "" {
		next = domain.Continue{Versions: versions, Cluster: result.Items[len(result.Items)-1].Cluster, Token: result.Continue}.Encode()
	}
	r.writeList(w, versions, next, len(result.Items), func(i int) (string, []byte, error) {
		data, err := result.Items[i].JSON()
		return result.Items[i].Cluster, data, err
	}, responder)
}

// writeList answers with a number of objects, each with its cluster, and the token of the next page.
func (r *reading) writeList(w http.ResponseWriter, versions domain.Versions, next string, items int, item func(i int) (cluster string, data []byte, err error), responder rest.Responder) {
	out := list{Items: []json.RawMessage{}}
	out.APIVersion, out.Kind = r.kind.GroupVersion().String(), r.kind.Kind+"List"
	out.ResourceVersion, out.Continue = versions.Encode(), next
	var empty any = out
	if r.tables != nil {
		empty = r.tables.table(out.ListMeta, []metav1.TableRow{})
	}
	err := sendList(w, "application/json", empty, items, func(i int) ([]byte, error) {
		cluster, data, err := item(i)
		if err != nil || r.tables == nil {
			return data, err
		}
		row, err := r.tables.row(cluster, data)
		if err != nil {
			return nil, err
		}
		return json.Marshal(row)
	})
	if err != nil {
		responder.Error(apierrors.NewInternalError(err))
	}
}

// write answers with JSON.
func write(w http.ResponseWriter, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data) //nolint:gosec // JSON, and the header says so
}

// stream sends events to a client.
type stream struct {
	kind     schema.GroupVersionKind
	to       *bufio.Writer
	control  *http.ResponseController
	versions domain.Versions
	// bookmarks reports whether the client wants them, initial whether it wants one after the objects that exist.
	bookmarks, initial bool
	// tables is nil if whole objects are wanted.
	tables *tables
}

// frame is one event of a watch, with its object in JSON.
type frame struct {
	Type   watch.EventType
	Object []byte
}

// watch streams changes until the client leaves or the time is over.
func (r *reading) watch(w http.ResponseWriter, req *http.Request, responder rest.Responder) {
	versions, ok := domain.DecodeVersions(r.options.ResourceVersion)
	if !ok {
		responder.Error(expired("the resourceVersion is not one of several clusters: list again"))
		return
	}
	initial := r.options.SendInitialEvents != nil && *r.options.SendInitialEvents
	start := cache.Start{Versions: versions.OfClusters(), Now: r.options.SendInitialEvents != nil && !initial}
	if initial {
		start.Versions = domain.Versions{} // all objects, whatever the version that they must have at least
	}
	timeout := minWatch + rand.N(minWatch) //nolint:gosec // it spreads the ends of watches
	if r.options.TimeoutSeconds != nil && *r.options.TimeoutSeconds > 0 {
		timeout = time.Duration(*r.options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s := &stream{
		kind: r.kind, to: bufio.NewWriterSize(w, bufferSize), control: http.NewResponseController(w), versions: start.Versions,
		bookmarks: r.options.AllowWatchBookmarks, initial: initial, tables: r.tables,
	}
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }()
	_ = s.flush()
	if err := s.run(ctx, r, start); errors.Is(err, cache.ErrExpired) {
		s.end(err)
	}
}

// run sends the events of a watch, and bookmarks while there are none.
func (s *stream) run(ctx context.Context, r *reading, start cache.Start) error {
	events := make(chan cache.Event, eventsAtOnce)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		ended <- r.caches.Watch(ctx, r.query, start, func(e cache.Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case e := <-events:
			if err = s.event(e); err == nil {
				err = s.waiting(events)
			}
		case <-ticker.C:
			err = s.bookmark(nil)
		case err := <-ended:
			return errors.Join(err, s.waiting(events), s.flush()) // what came before the end is sent before it
		}
		if err == nil {
			err = s.flush()
		}
		if err != nil {
			return err
		}
	}
}

// waiting sends the events that wait, so that those of one moment are sent together.
func (s *stream) waiting(events <-chan cache.Event) error {
	for {
		select {
		case e := <-events:
			if err := s.event(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// event sends one event.
func (s *stream) event(e cache.Event) error {
	if e.Version != "" {
		s.versions = s.versions.With(e.Cluster, e.Version)
	}
	if e.Left {
		s.versions = s.versions.Without(e.Cluster)
	}
	switch {
	case e.Initial && s.initial:
		return s.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	case e.Object == nil:
		return nil
	}
	versions := s.versions
	if e.Version == "" {
		versions = versions.WithObject(e.Cluster, e.Object.Version)
	}
	object, err := e.Object.WithVersions(e.Cluster, versions)
	if err != nil {
		return err
	}
	return s.object(e.Type, e.Cluster, object)
}

// object sends an object, or its row.
func (s *stream) object(kind watch.EventType, cluster string, object []byte) error {
	if s.tables != nil {
		var err error
		if object, err = s.tables.event(kind, cluster, object); err != nil {
			return err
		}
	}
	return s.send(frame{kind, object})
}

// bookmark tells the client the version that it has reached.
func (s *stream) bookmark(annotations map[string]string) error {
	if !s.bookmarks {
		return nil
	}
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: s.versions.Encode(), Annotations: annotations}}
	object.SetGroupVersionKind(s.kind)
	data, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding a bookmark: %w", err)
	}
	return s.object(watch.Bookmark, "", data)
}

// end tells the client why the watch ends.
func (s *stream) end(cause error) {
	status := apierrors.NewResourceExpired(cause.Error()).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	if data, err := json.Marshal(status); err == nil {
		_ = s.send(frame{watch.Error, data})
		_ = s.flush()
	}
}

func (s *stream) send(f frame) error {
	_, _ = fmt.Fprintf(s.to, `{"type":%q,"object":`, f.Type)
	_, _ = s.to.Write(f.Object) // it is JSON already
	if _, err := s.to.WriteString("}\n"); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	return nil
}

// flush sends what was written. The watch of a client that does not receive it in time ends: the changes that wait for it take memory.
func (s *stream) flush() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) //nolint:forbidigo // connections have the real time
	if err := s.to.Flush(); err != nil {
		return fmt.Errorf("sending events: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("sending events: %w", err)
	}
	return nil
}
