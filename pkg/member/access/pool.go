package access

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

// tokenAge is how long a token is used before the Secret is read again.
const tokenAge = 5 * time.Minute

// Options are the options of a Pool.
type Options struct {
	// Clusters is the cache of Clusters; those that it does not have are not opened. Optional.
	Clusters client.Reader
	// Secrets reads the Secrets of the control plane.
	Secrets SecretReader
	// Mapper maps the kinds of the control plane. Optional.
	Mapper meta.RESTMapper
	// QPS and Burst limit the requests of all clients of a cluster together. Default: no limit, as clusters have priority and fairness.
	QPS   float32
	Burst int
	// Wrap wraps the transports to the clusters. Optional.
	Wrap func(http.RoundTripper) http.RoundTripper
	// UserAgent is what members see.
	UserAgent string
	// Clock defaults to the real one.
	Clock clock.PassiveClock
}

// Members opens clusters: the same Member until the address or the credentials of a cluster change.
type Members interface {
	Member(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*Member, error)
}

// Pool holds the open members. It is a handler of the informer of Clusters: it closes those that are deleted or created again.
type Pool struct {
	*lifetime.Registry[*entry]
	opts Options
}

// entry is a cluster. It has its own lock, so that reading a Secret delays one cluster only.
type entry struct {
	mu       sync.Mutex
	settings settings
	tokens   *tokens
	member   *Member
	closed   bool

	incarnations incarnations
}

func (e *entry) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.member != nil {
		e.member.close()
	}
}

// settings are the fields of a Cluster that its connections depend on.
type settings struct {
	endpoint, proxy string
	secret          clusterv1alpha1.LocalSecretReference
	insecure        bool
	header          map[string]string
}

func settingsOf(cluster *clusterv1alpha1.Cluster) settings {
	s := settings{
		endpoint: cluster.Spec.APIEndpoint, proxy: cluster.Spec.ProxyURL,
		insecure: cluster.Spec.InsecureSkipTLSVerification, header: cluster.Spec.ProxyHeader,
	}
	if cluster.Spec.SecretRef != nil {
		s.secret = *cluster.Spec.SecretRef
	}
	return s
}

func (s settings) equal(o settings) bool {
	return s.endpoint == o.endpoint && s.proxy == o.proxy && s.secret == o.secret &&
		s.insecure == o.insecure && maps.Equal(s.header, o.header)
}

// NewPool returns an empty pool.
func NewPool(o Options) *Pool {
	o.Clock = cmp.Or[clock.PassiveClock](o.Clock, clock.RealClock{})
	return &Pool{opts: o, Registry: lifetime.New(o.Clusters, (*entry).close)}
}

// Member returns the open cluster: the same one until the UID, the endpoint, the proxy,
// the name of the Secret or the CA in it change, or the cluster is restored from an older copy of its store. A new token is used by the existing connections.
func (p *Pool) Member(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*Member, error) {
	e, ok := p.Open(ctx, cluster, nil, func() *entry { return &entry{} })
	if !ok {
		return nil, fmt.Errorf("opening cluster %s: it was deleted", cluster.Name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("opening cluster %s: it was closed meanwhile; try again", cluster.Name)
	}
	want, incarnation := settingsOf(cluster), e.incarnations.get()
	if e.member != nil && e.settings.equal(want) && !e.tokens.stale() && e.member.incarnation == incarnation {
		return e.member, nil
	}
	member, tokens, err := p.open(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if e.member != nil {
		e.member.close()
	}
	member.incarnation, member.incarnations = incarnation, &e.incarnations
	e.member, e.tokens, e.settings = member, tokens, want
	return member, nil
}

// End leaves the clusters open that are in use until the process ends.
func (*Pool) End() {}

func (p *Pool) open(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*Member, *tokens, error) {
	cluster = &clusterv1alpha1.Cluster{ObjectMeta: cluster.ObjectMeta, Spec: *cluster.Spec.DeepCopy()}
	read := func(ctx context.Context) (Credentials, error) { return ReadCredentials(ctx, cluster, p.opts.Secrets) }
	credentials, err := read(ctx)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := config(cluster, credentials)
	if err != nil {
		return nil, nil, err
	}
	if p.opts.Wrap != nil {
		cfg.Wrap(p.opts.Wrap)
	}
	var dials atomic.Uint64
	guard := newGuard(cfg.Host, Timeout)
	guardWith(cfg, guard)
	cfg.UserAgent = p.opts.UserAgent
	if p.opts.QPS > 0 {
		cfg.QPS, cfg.Burst = p.opts.QPS, max(p.opts.Burst, 1)
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	}
	tokens := &tokens{read: read, clock: p.opts.Clock, maxAge: tokenAge, current: credentials, readAt: p.opts.Clock.Now()}
	client, err := httpClient(cfg, tokens, &dials)
	if err != nil {
		return nil, nil, fmt.Errorf("opening cluster %s: %w", cluster.Name, err)
	}
	member, err := newMember(cluster.Name, cfg, client, &dials, &guard.kinds, p.opts.Mapper, p.opts.Clock)
	if err != nil {
		return nil, nil, err
	}
	member.uid = cluster.UID
	return member, tokens, nil
}

// httpClient returns a client with its own connections, which the clients of cfg share.
// It changes cfg so that clients created from cfg alone authenticate too. dials counts the
// connections.
func httpClient(cfg *rest.Config, tokens *tokens, dials *atomic.Uint64) (*http.Client, error) {
	below, err := transport(cfg, dials)
	if err != nil {
		return nil, err
	}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &bearer{base: rt, tokens: tokens} })
	rt, err := rest.HTTPWrappersForConfig(cfg, below)
	if err != nil {
		return nil, fmt.Errorf("wrapping the transport: %w", err)
	}
	return &http.Client{Transport: rt}, nil
}
