// Package access opens member clusters: it derives the settings of a connection from a Cluster and its Secret, and keeps one set of clients
// per cluster until those settings change.
package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
)

// rediscovery is the least time between two discoveries for kinds that a member did not
// serve before.
const rediscovery = 5 * time.Second

// Member is an open cluster: clients that share one set of connections, one token and one rate limit.
type Member struct {
	name    string
	uid     types.UID
	dials   *atomic.Uint64
	config  *rest.Config
	http    *http.Client
	dynamic *dynamic.DynamicClient
	core    *corev1client.CoreV1Client
	found   *boundedDiscovery
	meta    metadata.Interface
	mapper  *mapper
	// statusFields has the answers of StatusIsField, by GroupVersionResource.
	statusFields sync.Map
	idle         func()
	ctx          context.Context //nolint:containedctx // the life of the connections
	cancel       context.CancelFunc
	incarnation  Incarnation
	incarnations *incarnations // nil if nobody opens another one
}

// NewMember opens a cluster with settings that do not change, for one use. planeMapper may be nil.
func NewMember(name string, cfg *rest.Config, planeMapper meta.RESTMapper) (*Member, error) {
	guard := newGuard(cfg.Host, Timeout)
	cfg = rest.CopyConfig(cfg)
	var dials atomic.Uint64
	cfg.Dial = counted(cfg.Dial, &dials)
	guardWith(cfg, guard)
	shared, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", name, err)
	}
	client := *shared  // it may be http.DefaultClient
	client.Timeout = 0 // watches last longer than any request
	return newMember(name, cfg, &client, &dials, &guard.kinds, planeMapper, clock.RealClock{})
}

func newMember(
	name string, cfg *rest.Config, client *http.Client, dials *atomic.Uint64, kinds *kinds, planeMapper meta.RESTMapper, clk clock.PassiveClock,
) (*Member, error) {
	dyn, err := dynamic.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", name, err)
	}
	core, err := corev1client.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", name, err)
	}
	found, err := newDiscovery(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", name, err)
	}
	quiet := metadata.ConfigFor(cfg)
	quiet.WarningHandler = rest.NoWarnings{} // lists of every type include deprecated ones
	onlyMeta, err := metadata.NewForConfigAndClient(quiet, client)
	if err != nil {
		return nil, fmt.Errorf("opening cluster %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Member{
		name: name, dials: dials, config: cfg, http: client, dynamic: dyn, core: core, found: found, meta: onlyMeta,
		mapper: &mapper{plane: planeMapper, kinds: kinds, clock: clk, member: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))},
		idle:   func() { utilnet.CloseIdleConnectionsFor(client.Transport) },
		ctx:    ctx, cancel: cancel,
	}, nil
}

// Name returns the name of the cluster.
func (m *Member) Name() string { return m.name }

// UID returns the UID of the Cluster; empty if it was opened without one, as by an agent.
func (m *Member) UID() types.UID { return m.uid }

// Config returns the settings of the connection. It must not be changed.
func (m *Member) Config() *rest.Config { return m.config }

// HTTP returns the client that all others use. It has no timeout.
func (m *Member) HTTP() *http.Client { return m.http }

// Dynamic returns a client for objects of any kind.
func (m *Member) Dynamic() dynamic.Interface { return m.dynamic }

// Metadata returns a client for the metadata of objects of any kind.
func (m *Member) Metadata() metadata.Interface { return m.meta }

// Core returns a client for the core types.
func (m *Member) Core() corev1client.CoreV1Interface { return m.core }

// Discovery returns a client for the types that the cluster serves.
func (m *Member) Discovery() discovery.DiscoveryInterface { return m.found }

// URL returns the address of a path of the cluster.
func (m *Member) URL(path string) string {
	return m.found.RESTClient().Get().AbsPath(path).URL().String()
}

// Mapping returns the resource of a kind: that of the control plane, or else of the member. Objects of another kind that the member returns
// for the resource are refused from then on.
func (m *Member) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := m.mapper.mapping(gvk)
	if err != nil {
		return nil, err
	}
	if err := m.mapper.kinds.add(mapping); err != nil {
		return nil, fmt.Errorf("finding the resource of kind %q in cluster %s: %w", gvk.Kind, m.name, err)
	}
	return mapping, nil
}

// StatusIsField reports whether the status of a resource is an ordinary field of its objects, as the CustomResourceDefinition has no
// status subresource. The groups of Kubernetes have no such resources.
func (m *Member) StatusIsField(gvr schema.GroupVersionResource) (bool, error) {
	if scheme.Scheme.IsGroupRegistered(gvr.Group) {
		return false, nil
	}
	if known, ok := m.statusFields.Load(gvr); ok {
		return known == true, nil
	}
	list, err := m.found.ServerResourcesForGroupVersion(gvr.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("finding the subresources of %s in cluster %s: %w", gvr.GroupResource(), m.name, err)
	}
	has := func(name string) bool {
		return list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}
	if !has(gvr.Resource) { // the member does not serve it, or not yet
		return false, nil
	}
	isField := !has(gvr.Resource + "/status")
	m.statusFields.Store(gvr, isField)
	return isField, nil
}

// Connections returns the number of connections made so far. The store of a cluster that went back to an older one has closed those of before.
func (m *Member) Connections() uint64 { return m.dials.Load() }

// Context ends when the settings of the cluster changed or it was deleted. The member must not be used any longer then.
func (m *Member) Context() context.Context { return m.ctx }

// OnClose calls a function when Context ends, unless that is forgotten before. It must not block.
func (m *Member) OnClose(fn func()) (forget func() bool) { return context.AfterFunc(m.ctx, fn) }

func (m *Member) close() {
	m.cancel()
	m.idle()
}

// mapper returns the mapping of the control plane, or else of the member, whose discovery it renews for an unknown kind.
type mapper struct {
	plane  meta.RESTMapper
	kinds  *kinds
	member *restmapper.DeferredDiscoveryRESTMapper
	clock  clock.PassiveClock

	mu    sync.Mutex
	reset time.Time
}

func (m *mapper) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if m.plane != nil {
		if mapping, err := m.plane.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return mapping, nil
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mapping, err := m.member.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil || !meta.IsNoMatchError(err) || m.clock.Since(m.reset) < rediscovery {
		return mapping, err
	}
	m.reset = m.clock.Now()
	m.member.Reset()
	return m.member.RESTMapping(gvk.GroupKind(), gvk.Version)
}
