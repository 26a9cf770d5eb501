package views

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// recentTime and recentEvents bound the events that a shared watch of views keeps for readers that listed before them. Those of
	// complete objects are not kept, which may be large.
	recentTime   = 10 * time.Second
	recentEvents = 64
	// queueLength is how many events wait for one reader. The member waits then, but no longer than sendTimeout: the watch of the
	// reader ends, and begins again.
	queueLength = 16
	sendTimeout = 30 * time.Second
)

// topic is what a watch is about: all objects of a resource of a cluster, decoded in one way.
type topic struct {
	host     string
	uid      types.UID
	cluster  string
	resource string
	// complete reports that the objects are decoded completely, not as views.
	complete bool
}

func topicOf(m *access.Member, resource string, complete bool) topic {
	return topic{host: m.Config().Host, uid: m.UID(), cluster: m.Name(), resource: resource, complete: complete}
}

// streams are the watches of the process that have readers.
type streams struct {
	mu  sync.Mutex
	all map[topic]*stream
}

// shared are those of all roles that run in the process: each opens members for itself, with the same Secrets.
var shared = &streams{all: map[topic]*stream{}}

// stream is one watch of a member with several readers.
type stream struct {
	// forget makes those that want to read open another watch.
	forget func()
	blank  func() object
	// opened is closed when the watch is open or failed to open.
	opened chan struct{}

	// keeps reports whether the last events are kept.
	keeps bool

	mu      sync.Mutex
	ended   bool
	readers map[*reader]struct{}
	// cancel ends the watch. It is nil before that is open.
	cancel context.CancelFunc
	// recent are the last events. Those up to the version floor are unknown.
	recent []versioned
	floor  string
	// last is the version of the last event.
	last   string
	expiry *time.Timer
}

type versioned struct {
	watch.Event
	version string
}

// reader is one reader of a stream. It implements watch.Interface.
type reader struct {
	*request
	stream *stream
	events chan watch.Event
	// stopped is closed when nothing reads any longer.
	stopped chan struct{}
	stop    func()
}

// older reports whether a resource version is older than another. Versions that cannot be compared are not.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func comparable(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// request is a request for a watch.
type request struct {
	topic topic
	// since is the version after which events are wanted.
	since string
	// pass returns an event as the reader gets it, and false if it gets none.
	pass func(watch.Event) (watch.Event, bool)
	// open opens the watch of the topic. It ends with its context, and when done is closed.
	open func(context.Context) (watch.Interface, error)
	done <-chan struct{}
	// blank returns an empty object of the topic.
	blank func() object
}

// object is what watches send.
type object interface {
	runtime.Object
	metav1.Object
}

// join returns a reader of the watch that there is, or nil if there is none that has all events that are wanted.
func (s *streams) join(ctx context.Context, r *request) watch.Interface {
	s.mu.Lock()
	st := s.all[r.topic]
	s.mu.Unlock()
	if st == nil {
		return nil
	}
	select {
	case <-st.opened:
		if out := st.read(ctx, r); out != nil {
			return out
		}
	case <-ctx.Done():
	}
	return nil
}

// joinLarger returns a reader of the watch of complete objects that a request for views can read, or nil.
func (s *streams) joinLarger(ctx context.Context, r *request, shrink func(watch.Event) (watch.Event, error)) watch.Interface {
	if shrink == nil {
		return nil
	}
	larger := *r
	larger.topic.complete = true
	larger.pass = func(e watch.Event) (watch.Event, bool) {
		small, err := shrink(e)
		if err != nil {
			return e, false // an object that cannot be decoded, as in a watch of views
		}
		return r.pass(small)
	}
	return s.join(ctx, &larger)
}

// open is like join, and opens a watch if there is none.
func (s *streams) open(ctx context.Context, r *request) (watch.Interface, error) {
	s.mu.Lock()
	if s.all[r.topic] != nil || !comparable(r.since) {
		s.mu.Unlock()
		return s.join(ctx, r), nil
	}
	st := &stream{blank: r.blank, keeps: !r.topic.complete, opened: make(chan struct{}), readers: map[*reader]struct{}{}, floor: r.since, last: r.since}
	st.forget = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.all[r.topic] == st {
			delete(s.all, r.topic)
		}
	}
	s.all[r.topic] = st
	s.mu.Unlock()
	defer close(st.opened)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives its first reader
	opening := context.AfterFunc(ctx, cancel)
	events, err := r.open(life)
	if !opening() && err == nil {
		events.Stop()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		st.end(ctx)
		return nil, err
	}
	st.cancel = cancel
	out := st.read(ctx, r)
	if r.topic.complete { // which readers of views use too
		go s.stopViews(r.topic)
	}
	go st.run(life, events, r.done)
	return out, nil
}

// stopViews ends the watch of views of the resource of a topic. Its readers begin again.
func (s *streams) stopViews(of topic) {
	of.complete = false
	s.mu.Lock()
	st := s.all[of]
	s.mu.Unlock()
	if st == nil {
		return
	}
	if <-st.opened; st.cancel != nil {
		st.cancel()
	}
}

// end ends the readers. They get the version of the last event first: those that did not get that event go on from there.
func (s *stream) end(ctx context.Context) {
	s.forget()
	s.mu.Lock()
	s.ended, s.recent = true, nil
	readers := s.readers
	s.readers = nil
	s.mu.Unlock()
	last := s.blank()
	last.SetResourceVersion(s.last)
	for r := range readers {
		r.send(ctx, versioned{watch.Event{Type: watch.Bookmark, Object: last}, s.last})
		close(r.events)
	}
}

// read returns a reader that gets all events since a version, or nil if some are unknown.
func (s *stream) read(ctx context.Context, r *request) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !comparable(r.since) || older(r.since, s.floor) {
		return nil
	}
	out := &reader{request: r, stream: s, events: make(chan watch.Event, len(s.recent)+queueLength), stopped: make(chan struct{})}
	out.stop = sync.OnceFunc(func() { close(out.stopped) })
	s.readers[out] = struct{}{}
	for _, e := range s.recent {
		out.send(ctx, e) // there is room
	}
	return out
}

// run passes events on until the watch ends, the settings of the member change, or there are no readers.
func (s *stream) run(ctx context.Context, from watch.Interface, done <-chan struct{}) {
	defer s.end(context.WithoutCancel(ctx))
	defer s.cancel()
	defer from.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-done:
			return
		case e, ok := <-from.ResultChan():
			if !ok || !s.publish(ctx, e) {
				return
			}
		}
	}
}

// publish sends an event to the readers, and reports whether others can follow.
func (s *stream) publish(ctx context.Context, e watch.Event) bool {
	next := versioned{Event: e}
	if obj, err := meta.Accessor(e.Object); err == nil && comparable(obj.GetResourceVersion()) {
		next.version = obj.GetResourceVersion()
	}
	for _, r := range s.take(next) {
		if !r.send(ctx, next) {
			s.drop(r)
			close(r.events)
		}
	}
	return e.Type != watch.Error
}

// take records an event and returns the readers that get it.
func (s *stream) take(e versioned) []*reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.version != "" {
		s.last = e.version
	}
	switch {
	case e.Type == watch.Error:
	case s.keeps && e.Type != watch.Bookmark && e.version != "":
		s.keepLocked(e)
	case len(s.recent) == 0:
		s.floor = s.last
	}
	return slices.Collect(maps.Keys(s.readers))
}

// keepLocked keeps an event for readers that listed before it.
func (s *stream) keepLocked(e versioned) {
	s.recent = append(s.recent, e)
	if over := len(s.recent) - recentEvents; over > 0 {
		s.floor = s.recent[over-1].version
		s.recent = slices.Clone(s.recent[over:])
	}
	if s.expiry == nil {
		s.expiry = time.AfterFunc(recentTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.recent, s.floor, s.expiry = nil, s.last, nil
		})
	}
}

// drop forgets a reader, and ends the watch with the last one.
func (s *stream) drop(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, r)
	if len(s.readers) == 0 && !s.ended {
		s.ended = true
		s.cancel()
	}
}

// send sends an event that the reader wants. It reports false if the reader is too slow.
func (r *reader) send(ctx context.Context, e versioned) bool {
	if e.version != "" && !older(r.since, e.version) {
		return true // the reader listed it
	}
	out, ok := r.pass(e.Event)
	if !ok {
		return true
	}
	select {
	case r.events <- out:
		return true
	default:
	}
	timeout := time.NewTimer(sendTimeout)
	defer timeout.Stop()
	select {
	case r.events <- out:
	case <-r.stopped:
	case <-ctx.Done():
	case <-timeout.C:
		return false
	}
	return true
}

// ResultChan implements watch.Interface.
func (r *reader) ResultChan() <-chan watch.Event { return r.events }

// Stop implements watch.Interface.
func (r *reader) Stop() {
	r.stop()
	r.stream.drop(r)
}
