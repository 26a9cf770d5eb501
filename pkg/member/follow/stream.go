package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// errClosed is the failure of what is followed through a Member that was closed.
var errClosed = errors.New("the connection to the cluster was closed")

// errReconnected ends a watch that goes on through another connection than the one through which it began: the cluster may have been restored
// from an older copy of its store, of which the watch would miss changes, and the resource version does not show that. A cluster that starts
// with other data closes every connection. See docs/design/agent-rewind.md.
var errReconnected = apierrors.NewResourceExpired("the connection to the cluster was closed; it may have been restored from an older copy")

// topic is what streams are about: a resource of a cluster. Each role of a process opens the cluster for itself, with the same Secret.
type topic struct {
	host     string
	uid      types.UID
	cluster  string
	resource schema.GroupVersionResource
}

// streams are those of the process. There are several of a topic only if none is for all objects.
type streams struct {
	mu      sync.Mutex
	all     map[topic][]*stream
	running sync.WaitGroup // they outlive what starts them
}

var shared = &streams{all: map[topic][]*stream{}}

// reader is a part of a projection: that which streams know.
type reader struct {
	Source
	sink sink
	// mu is held while the sink is called.
	mu sync.Mutex
	// at is the stream that is read; nil for none.
	at atomic.Pointer[stream]
}

// sink is what a stream calls. The methods must not block.
type sink interface {
	// list begins a list.
	list() listing
	// put is called with an object that is new or changed, remove with one that was deleted or is not selected any more, and progress
	// with the resource version of an event about no object.
	put(obj object) error
	remove(key types.NamespacedName, version string)
	progress(version string)
	// ended is called with the result of each request.
	ended(err error)
}

// listing takes a list.
type listing interface {
	pages
	// replace makes the objects those that were listed.
	replace(version string)
}

// call calls a function that uses the sink, unless another stream is read.
func (r *reader) call(s *stream, fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.Load() == s {
		fn()
	}
}

// joinLocked makes a reader read: the stream that there is, which lists again and for more if it has to, or a new one.
func (a *streams) joinLocked(r *reader) {
	of := topic{host: r.member.Config().Host, uid: r.member.UID(), cluster: r.member.Name(), resource: r.resource}
	scope, readers := r.scope, []*reader{r}
	var into *stream
	for _, s := range slices.Clone(a.all[of]) {
		wider, ok := s.scope.with(scope)
		if !ok {
			continue
		}
		scope = wider
		if into == nil {
			into = s
			continue
		}
		readers = append(readers, a.endLocked(s)...) // what is requested now has this
	}
	if into == nil {
		into = newStream(a, of)
		a.all[of] = append(a.all[of], into)
	}
	into.add(scope, readers...)
}

// separate makes a reader read a stream of its own, instead of one that it reads now.
func (a *streams) separate(r *reader, from *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.at.Load() == from {
		a.leaveLocked(r)
		newStream(a, topic{cluster: r.member.Name(), resource: r.resource}).add(r.scope, r)
	}
}

// leave ends reading. The sink is not called any more when it returns.
func (a *streams) leave(r *reader) {
	a.mu.Lock()
	a.leaveLocked(r)
	a.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
}

// leaveLocked ends the stream with its last reader, and makes the others read less if that is enough for them.
func (a *streams) leaveLocked(r *reader) {
	s := r.at.Swap(nil)
	if s == nil {
		return
	}
	rest := s.without(r)
	if len(rest) == 0 {
		a.endLocked(s)
		return
	}
	scope, ok := rest[0].scope, true
	for _, other := range rest[1:] {
		if scope, ok = scope.with(other.scope); !ok {
			break
		}
	}
	if ok && scope.Selection == s.scope.Selection {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.scope = scope // for the next list
		return
	}
	for _, other := range a.endLocked(s) {
		a.joinLocked(other)
	}
}

// endLocked ends a stream and returns its readers.
func (a *streams) endLocked(s *stream) []*reader {
	a.all[s.topic] = slices.DeleteFunc(a.all[s.topic], func(other *stream) bool { return other == s })
	if len(a.all[s.topic]) == 0 {
		delete(a.all, s.topic)
	}
	s.cancel()
	return s.all()
}

// stream is one reflector of a member with its readers.
type stream struct {
	topic  topic
	ctx    context.Context //nolint:containedctx // its life
	cancel context.CancelFunc
	// separate makes a reader that cannot take what others take read a stream of its own.
	separate func(*reader)
	pager    pager

	mu      sync.Mutex
	readers []*reader
	// scope is what the readers need together, which changes under streams.mu, and request what is listed and watched: of the last list.
	scope   scope
	request request
	// connections is how many connections there were when the watch began; 0 before the first watch after a list.
	connections uint64
	// listing reports that a list has begun and has not ended, and again that a reader joined since.
	listing, again bool
	// err is the result of the last request, and attempt ends the current run of the reflector, backoff included. unhook forgets that it is
	// called when the connections are closed that are used.
	err     error
	attempt context.CancelFunc
	unhook  func() bool
}

// request are the requests of a stream.
type request struct {
	api
	Selection
	member *access.Member
}

// newStream starts a stream, which ends when its readers have left.
func newStream(a *streams, of topic) *stream {
	s := &stream{topic: of}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.separate = func(r *reader) { a.separate(r, s) }
	a.running.Go(s.run)
	return s
}

// add adds readers. It lists again, when the list that has begun is complete.
func (s *stream) add(scope scope, readers ...*reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range readers {
		r.at.Store(s)
	}
	s.readers, s.scope = slices.Concat(s.readers, readers), scope
	if s.again = s.listing; (!s.listing || s.err != nil) && s.attempt != nil {
		s.attempt()
	}
}

// without removes a reader and returns the others.
func (s *stream) without(r *reader) []*reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers = slices.DeleteFunc(slices.Clone(s.readers), func(other *reader) bool { return other == r })
	return s.readers
}

// paged makes the reflector list in pages and not as a stream, which has no limit on the number of objects.
type paged struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is read by the reflector.
func (paged) IsWatchListSemanticsUnSupported() bool { return true }

// run runs the reflector until the stream ends.
func (s *stream) run() {
	from := paged{&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}}
	reflector := cache.NewReflectorWithOptions(from, nil, s, cache.ReflectorOptions{
		Name:    s.topic.cluster + " " + s.topic.resource.Resource,
		Backoff: &wait.Backoff{Duration: 300 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 6, Cap: 8 * time.Second},
	})
	// The probe of the cluster reports that it is unavailable; the reflector would log every attempt.
	quiet := klog.NewContext(s.ctx, logr.Discard())
	for s.ctx.Err() == nil {
		attempt, cancel := context.WithCancel(quiet)
		s.mu.Lock()
		s.attempt = cancel
		s.mu.Unlock()
		reflector.RunWithContext(attempt)
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unhook != nil {
		s.unhook()
	}
}

// begin begins a list, through a member that one of the readers has open.
func (s *stream) begin() ([]*reader, request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing, s.again = true, false
	i := slices.IndexFunc(s.readers, func(r *reader) bool { return r.member.Context().Err() == nil })
	if i < 0 {
		return nil, request{}, errClosed
	}
	member, cancel := s.readers[i].member, s.attempt
	requests, err := s.scope.form.api(member, s.topic.resource, s.scope.Namespace)
	if err != nil {
		return nil, request{}, err
	}
	s.request, s.connections = request{requests, s.scope.Selection, member}, 0
	if s.unhook != nil {
		s.unhook()
	}
	s.unhook = member.OnClose(cancel) // the next list is through another one
	return s.readers, s.request, nil
}

// list lists for all readers, page by page: each page is passed to them before the next is read.
func (s *stream) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	readers, request, err := s.begin()
	out := &list{}
	out.Items = []runtime.Object{out}
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		for _, r := range readers {
			out.readers = append(out.readers, listed{r, r.sink.list()})
		}
		out.ResourceVersion, err = s.pager.read(limited, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return request.list(ctx, request.options(o))
		}, out)
	}
	if err != nil {
		err = fmt.Errorf("listing %s of cluster %s: %w", s.topic.resource.Resource, s.topic.cluster, err)
	}
	s.ended(ctx, err)
	if err != nil {
		return nil, err
	}
	for _, f := range out.failed {
		f.reader.call(s, func() { f.reader.sink.ended(f.err) })
		s.separate(f.reader)
	}
	return out, nil
}

// list is a list that is passed to readers.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	// Items has the list itself, for the reflector.
	Items []runtime.Object

	readers []listed
	failed  []failed
}

// listed is a reader with what it takes of a list, and failed one that cannot take it.
type listed struct {
	*reader
	listing
}

type failed struct {
	*reader
	err error
}

// DeepCopyObject implements runtime.Object. Lists are never copied.
func (l *list) DeepCopyObject() runtime.Object { return l }

func (l *list) restart() {
	for _, r := range l.readers {
		r.restart()
	}
}

// add passes an object to the readers that select it. Readers that cannot take it are left out, if there are others.
func (l *list) add(obj object) error {
	for i := 0; i < len(l.readers); i++ {
		r := l.readers[i]
		picked, err := r.pick(obj)
		if err == nil && picked != nil {
			err = r.listing.add(picked)
		}
		switch {
		case err == nil:
		case len(l.readers) == 1:
			return err
		default:
			l.failed = append(l.failed, failed{r.reader, err})
			l.readers = slices.Delete(l.readers, i, i+1)
			i--
		}
	}
	return nil
}

func (l *list) settle() {
	for _, r := range l.readers {
		r.settle()
	}
}

func (s *stream) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	request, begun := s.request, s.connections
	s.mu.Unlock()
	before := request.member.Connections()
	w, err := request.watch(ctx, request.options(options))
	if now := request.member.Connections(); err == nil && begun > 0 && begun != now {
		w.Stop()
		w, err = nil, errReconnected
	}
	s.mu.Lock()
	if err == nil && begun == 0 {
		s.connections = max(before, 1)
	}
	s.mu.Unlock()
	s.ended(ctx, err)
	return w, err
}

// ended records the result of a request, unless it was canceled.
func (s *stream) ended(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	for _, r := range s.all() {
		r.call(s, func() { r.sink.ended(err) })
	}
}

// retry ends the backoff after a failure.
func (s *stream) retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil && s.attempt != nil {
		s.attempt()
	}
}

// all returns the readers.
func (s *stream) all() []*reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readers
}

// Replace implements cache.ReflectorStore.
func (s *stream) Replace(items []any, version string) error {
	for _, item := range items {
		all, ok := item.(*list)
		if !ok {
			return fmt.Errorf("unexpected %T in a list", item)
		}
		for _, r := range all.readers {
			r.call(s, func() { r.replace(version) })
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing = false; s.again {
		s.attempt()
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (s *stream) Add(in any) error { return s.pass(in, false) }

// Update implements cache.ReflectorStore.
func (s *stream) Update(in any) error { return s.pass(in, false) }

// Delete implements cache.ReflectorStore.
func (s *stream) Delete(in any) error { return s.pass(in, true) }

// Resync implements cache.ReflectorStore.
func (s *stream) Resync() error { return nil }

// pass passes an event to the readers.
func (s *stream) pass(in any, deleted bool) error {
	obj, ok := in.(object)
	if !ok {
		return fmt.Errorf("unexpected %T in a watch", in)
	}
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	return s.each(func(r *reader) (err error) {
		var picked object
		if !deleted {
			if picked, err = r.pick(obj); err != nil {
				return err
			}
		}
		if picked != nil {
			return r.sink.put(picked)
		}
		r.sink.remove(key, obj.GetResourceVersion())
		return nil
	})
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *stream) Bookmark(version string) error {
	return s.each(func(r *reader) error {
		r.sink.progress(version)
		return nil
	})
}

// each calls a function for the readers, also for those that joined after the list: the next one replaces what they have.
func (s *stream) each(fn func(*reader) error) error {
	var errs []error
	for _, r := range s.all() {
		r.call(s, func() { errs = append(errs, fn(r)) })
	}
	return errors.Join(errs...)
}
