package views

import (
	"context"
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
	// recentTime and recentEvents bound the events that a shared watch keeps for those that listed before them.
	recentTime   = 10 * time.Second
	recentEvents = 256
	// queueLength is how many events wait for one reader. Its watch ends if there are more, and begins again.
	queueLength = 1024
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
		if out := st.read(r); out != nil {
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
	st := &stream{blank: r.blank, opened: make(chan struct{}), readers: map[*reader]struct{}{}, floor: r.since, last: r.since}
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
		st.end()
		return nil, err
	}
	st.cancel = cancel
	out := st.read(r)
	if r.topic.complete { // which readers of views use too
		views := r.topic
		views.complete = false
		s.mu.Lock()
		smaller := s.all[views]
		s.mu.Unlock()
		if smaller != nil {
			smaller.end()
		}
	}
	go st.run(life, events, r.done)
	return out, nil
}

// end ends the readers. They get the version of the last event first: those
// that did not get that event go on from there.
func (s *stream) end() {
	s.forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.recent = true, nil
	last := s.blank()
	last.SetResourceVersion(s.last)
	for r := range s.readers {
		s.sendLocked(r, versioned{watch.Event{Type: watch.Bookmark, Object: last}, s.last})
		s.dropLocked(r)
	}
}

// read returns a reader that gets all events since a version, or nil if some are unknown.
func (s *stream) read(r *request) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !comparable(r.since) || older(r.since, s.floor) {
		return nil
	}
	out := &reader{request: r, stream: s, events: make(chan watch.Event, queueLength)}
	s.readers[out] = struct{}{}
	for _, e := range s.recent {
		s.sendLocked(out, e)
	}
	return out
}

// run passes events on until the watch ends, the settings of the member change, or there are no readers.
func (s *stream) run(ctx context.Context, from watch.Interface, done <-chan struct{}) {
	defer s.end()
	defer s.cancel()
	defer from.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-done:
			return
		case e, ok := <-from.ResultChan():
			if !ok || !s.publish(e) {
				return
			}
		}
	}
}

// publish sends an event to the readers, and reports whether others can follow.
func (s *stream) publish(e watch.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := versioned{Event: e}
	if obj, err := meta.Accessor(e.Object); err == nil && comparable(obj.GetResourceVersion()) {
		next.version = obj.GetResourceVersion()
		s.last = next.version
	}
	for r := range s.readers {
		s.sendLocked(r, next)
	}
	switch {
	case e.Type == watch.Error:
		return false
	case e.Type != watch.Bookmark && next.version != "":
		s.keepLocked(next)
	case len(s.recent) == 0:
		s.floor = s.last
	}
	return true
}

// keepLocked keeps an event for readers that listed before it.
func (s *stream) keepLocked(e versioned) {
	s.recent = append(s.recent, e)
	if over := len(s.recent) - recentEvents; over > 0 {
		s.floor = s.recent[over-1].version
		s.recent = append([]versioned{}, s.recent[over:]...)
	}
	if s.expiry == nil {
		s.expiry = time.AfterFunc(recentTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.recent, s.floor, s.expiry = nil, s.last, nil
		})
	}
}

// sendLocked sends an event to a reader. It does not block: a reader that is too slow ends.
func (s *stream) sendLocked(r *reader, e versioned) {
	if _, reads := s.readers[r]; !reads {
		return
	}
	if e.version != "" && !older(r.since, e.version) {
		return // the reader listed it
	}
	out, ok := r.pass(e.Event)
	if !ok {
		return
	}
	select {
	case r.events <- out:
	default:
		s.dropLocked(r)
	}
}

// dropLocked ends a reader, and the watch with the last one.
func (s *stream) dropLocked(r *reader) {
	if _, reads := s.readers[r]; !reads {
		return
	}
	delete(s.readers, r)
	close(r.events)
	if len(s.readers) == 0 && !s.ended {
		s.ended = true
		s.cancel()
	}
}

// ResultChan implements watch.Interface.
func (r *reader) ResultChan() <-chan watch.Event { return r.events }

// Stop implements watch.Interface.
func (r *reader) Stop() {
	r.stream.mu.Lock()
	defer r.stream.mu.Unlock()
	r.stream.dropLocked(r)
}
