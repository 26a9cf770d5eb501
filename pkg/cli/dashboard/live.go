package dashboard

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

const (
	// updateInterval is the least time between two states.
	updateInterval = 500 * time.Millisecond
	// refreshInterval is the time between two reads of what is not followed, such as Leases.
	refreshInterval = 5 * time.Second
	// startDelay is how long the first page waits for the first lists, and probeTimeout bounds the wait for what the user may list.
	startDelay   = 300 * time.Millisecond
	probeTimeout = 10 * time.Second
	// maxSize is the limit of what is kept of clusters and of bindings, in bytes.
	maxSize = 512 << 20
)

// state is the federation at a time. It is read-only.
type state struct {
	*snapshot.Federation
	report *status.Report
	// lost is why what is shown is not current, since when; nil if it is.
	lost      error
	lostSince time.Time
	ready     map[string]bool
	// reading reports whether clusters and bindings are not read yet.
	reading bool
}

func newState(facts *snapshot.Federation, report *status.Report) *state {
	s := &state{Federation: facts, report: report, ready: map[string]bool{}}
	for _, c := range facts.Clusters {
		s.ready[c.Name] = c.Ready()
	}
	return s
}

// unready reports whether a cluster is not Ready.
func (s *state) unready(cluster string) bool { return !s.ready[cluster] }

// binding returns a binding, or nil.
func (s *state) binding(key client.ObjectKey) workv1alpha2.Binding {
	for _, b := range s.Bindings {
		if client.ObjectKeyFromObject(b) == key {
			return b
		}
	}
	return nil
}

// live has the state of the federation, with one watch for each kind for all pages.
type live struct {
	*mirror
	program string
	reader  *snapshot.Reader
	// changed has an item while what is followed differs from the state.
	changed chan struct{}

	mu      sync.Mutex
	current *state
	// next is closed when current is replaced.
	next chan struct{}
}

// startLive follows the control plane until ctx ends. The reader reads clusters and bindings from memory from then on.
func startLive(ctx context.Context, config *rest.Config, reader *snapshot.Reader, program string) (*live, error) {
	l := &live{mirror: &mirror{Reader: reader.ControlPlane}, program: program, reader: reader, changed: make(chan struct{}, 1), next: make(chan struct{})}
	if err := l.mirror.start(ctx, config, reader.Namespace, l.touch); err != nil {
		return nil, err
	}
	reader.ControlPlane = l.mirror
	facts, err := reader.Federation(ctx)
	if err != nil {
		return nil, err
	}
	l.publish(facts)
	go l.run(ctx)
	return l, nil
}

// touch notes that something changed.
func (l *live) touch() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// run keeps the state current until ctx ends.
func (l *live) run(ctx context.Context) {
	facts := make(chan *snapshot.Federation, 1)
	go func() {
		for ctx.Err() == nil {
			l.retry()
			if read, err := l.reader.Federation(ctx); err == nil {
				facts <- read
			}
			sleep(ctx, refreshInterval)
		}
	}()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case read := <-facts:
			l.publish(read)
		case <-l.changed:
			if read, err := l.reader.Renewed(ctx, l.state().Federation); err == nil {
				l.publish(read)
			}
		}
		sleep(ctx, updateInterval)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// publish replaces the state by facts that were read.
func (l *live) publish(facts *snapshot.Federation) { l.set(facts, l.failure(), !l.synced()) }

// set replaces the state. lost is why what is followed is not current; nil if it is.
func (l *live) set(facts *snapshot.Federation, lost error, reading bool) {
	s := newState(facts, status.Federation(facts, l.program))
	s.reading = reading && lost == nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.lost = lost; lost != nil {
		s.lostSince = facts.Now
		if l.current != nil && l.current.lost != nil {
			s.lostSince = l.current.lostSince
		}
	}
	l.current = s
	close(l.next)
	l.next = make(chan struct{})
}

// state returns the state.
func (l *live) state() *state {
	s, _ := l.following()
	return s
}

// following returns the state, and a channel that is closed when there is another one.
func (l *live) following() (*state, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current, l.next
}

// mirror reads clusters and bindings from memory, and all else from the control plane.
type mirror struct {
	client.Reader
	clusters *follow.Projection[*clusterv1alpha1.Cluster]
	// bindings are those of namespaces: of one only, if others may not be listed.
	bindings        *follow.Projection[*workv1alpha2.ResourceBinding]
	within          string
	clusterBindings *follow.Projection[*workv1alpha2.ClusterResourceBinding]
}

// start follows clusters and bindings until ctx ends.
func (m *mirror) start(ctx context.Context, config *rest.Config, namespace string, changed func()) error {
	plane, err := access.NewMember("", config, nil)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	if m.within, err = m.visible(ctx, namespace); err != nil {
		return err
	}
	of := workv1alpha2.GroupVersion
	if m.clusters, err = start[*clusterv1alpha1.Cluster](ctx, plane, clusterv1alpha1.GroupVersion.WithResource("clusters"), "Cluster", "", changed); err != nil {
		return err
	}
	if m.bindings, err = start[*workv1alpha2.ResourceBinding](ctx, plane, of.WithResource("resourcebindings"), scope.NamespacedBinding().Kind, m.within, changed); err != nil {
		return err
	}
	if m.clusterBindings, err = start[*workv1alpha2.ClusterResourceBinding](ctx, plane, of.WithResource("clusterresourcebindings"), scope.ClusterBinding().Kind, "", changed); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, startDelay)
	defer cancel()
	// An error is a gap of what is shown, and what takes longer is shown later.
	_, _, _ = m.clusters.Await(wait), m.bindings.Await(wait), m.clusterBindings.Await(wait)
	return ctx.Err()
}

// visible returns the namespace whose bindings a user may list who may not list those of all; empty if all.
func (m *mirror) visible(ctx context.Context, namespace string) (string, error) {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := m.Reader.List(probe, &workv1alpha2.ResourceBindingList{}, client.Limit(1)); apierrors.IsForbidden(err) {
		return namespace, nil
	}
	return "", ctx.Err()
}

// start follows objects of the control plane.
func start[T client.Object](ctx context.Context, plane *access.Member, resource schema.GroupVersionResource, kind, namespace string, changed func()) (*follow.Projection[T], error) {
	source, err := follow.Typed(plane, kube.NewScheme(), resource, kind, follow.Selection{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	return follow.Start(ctx, follow.Config[T]{
		Name: kind, Source: source, MaxSize: func() int { return maxSize },
		Project: follow.From(func(obj T, _ *T) (T, error) {
			obj.SetManagedFields(nil)
			return obj, nil
		}),
		Changed: func(types.NamespacedName, *T, *T) { changed() },
		Synced:  changed,
		Failed:  func(error) { changed() },
	}), nil
}

// synced reports whether all that the user may list was read.
func (m *mirror) synced() bool {
	for _, err := range []error{m.clusters.Ready(), m.bindings.Ready(), m.clusterBindings.Ready()} {
		if err != nil && !apierrors.IsForbidden(err) {
			return false
		}
	}
	return true
}

// retry ends the waits after failures.
func (m *mirror) retry() {
	m.clusters.Retry()
	m.bindings.Retry()
	m.clusterBindings.Retry()
}

// failure returns why what is followed is not current, or nil. What the user may not read is none: it is a gap.
func (m *mirror) failure() error {
	for _, err := range []error{m.clusters.Failure(), m.bindings.Failure(), m.clusterBindings.Failure()} {
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// Get implements client.Reader.
func (m *mirror) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	switch out := obj.(type) {
	case *clusterv1alpha1.Cluster:
		return take(m.clusters, key, clusterv1alpha1.GroupVersion.WithResource("clusters"), func(in *clusterv1alpha1.Cluster) { *out = *in })
	case *workv1alpha2.ResourceBinding:
		if m.within == "" || m.within == key.Namespace {
			return take(m.bindings, key, workv1alpha2.GroupVersion.WithResource("resourcebindings"), func(in *workv1alpha2.ResourceBinding) { *out = *in })
		}
	case *workv1alpha2.ClusterResourceBinding:
		return take(m.clusterBindings, key, workv1alpha2.GroupVersion.WithResource("clusterresourcebindings"), func(in *workv1alpha2.ClusterResourceBinding) { *out = *in })
	}
	return m.Reader.Get(ctx, key, obj, options...)
}

// take copies an object.
func take[T client.Object](from *follow.Projection[T], key client.ObjectKey, resource schema.GroupVersionResource, set func(T)) error {
	if !from.HasSynced() {
		return from.Ready()
	}
	found := from.Get(key)
	if found == nil {
		return apierrors.NewNotFound(resource.GroupResource(), key.Name)
	}
	set(*found)
	return nil
}

// List implements client.Reader. A list that was read before is returned while it cannot be read again.
func (m *mirror) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := &client.ListOptions{}
	o.ApplyOptions(options)
	switch out := list.(type) {
	case *clusterv1alpha1.ClusterList:
		return each(m.clusters, o, func(c *clusterv1alpha1.Cluster) { out.Items = append(out.Items, *c) })
	case *workv1alpha2.ResourceBindingList:
		if o.Namespace == "" && m.within != "" {
			return apierrors.NewForbidden(workv1alpha2.GroupVersion.WithResource("resourcebindings").GroupResource(), "", fmt.Errorf("you may not list those of all namespaces"))
		}
		return each(m.bindings, o, func(b *workv1alpha2.ResourceBinding) { out.Items = append(out.Items, *b) })
	case *workv1alpha2.ClusterResourceBindingList:
		return each(m.clusterBindings, o, func(b *workv1alpha2.ClusterResourceBinding) { out.Items = append(out.Items, *b) })
	}
	return m.Reader.List(ctx, list, options...)
}

func each[T client.Object](from *follow.Projection[T], o *client.ListOptions, add func(T)) error {
	if !from.HasSynced() || apierrors.IsForbidden(from.Failure()) {
		return from.Ready()
	}
	from.Each(func(key types.NamespacedName, obj *T) {
		if o.Namespace == "" || key.Namespace == o.Namespace {
			add(*obj)
		}
	})
	return nil
}
