package metricsadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

const (
	// discoveryTTL is how long the metrics that a member serves are cached, failureTTL how long an error is.
	discoveryTTL = 30 * time.Second
	failureTTL   = 5 * time.Second
	// discoveryTimeout bounds a discovery. The API server of the control plane allows 5 seconds for that of the adapter.
	discoveryTimeout = 2 * time.Second
	// listTTL is the age from which on the metrics of all members are listed again, by the next request and behind it.
	listTTL = 10 * time.Second
	// firstListTimeout is how long the first request waits for the first list, and listTimeout how long a later one waits
	// for a newer list than the last.
	firstListTimeout = 3 * time.Second
	listTimeout      = 500 * time.Millisecond
	// maxMetrics limits the custom metrics of a member.
	maxMetrics = 20_000
)

// customMetrics are the custom metrics that a member serves. The version is empty if it serves none.
type customMetrics struct {
	version string
	metrics []provider.CustomMetricInfo
}

// customCache caches the last discovery.
type customCache struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	readAt time.Time
	found  customMetrics
	err    error
}

// customMetrics returns the custom metrics that a member serves. One request at a time discovers them; others wait for
// its result.
func (c *cluster) customMetrics(ctx context.Context) (customMetrics, error) {
	cache := &c.custom
	cache.mu.Lock()
	defer cache.mu.Unlock()
	ttl := discoveryTTL
	if cache.err != nil {
		ttl = failureTTL
	}
	if !cache.readAt.IsZero() && cache.clock.Since(cache.readAt) < ttl {
		return cache.found, cache.err
	}
	// A client that leaves must not make the others fail.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discoveryTimeout)
	defer cancel()
	cache.found, cache.err = c.discover(ctx)
	cache.readAt = cache.clock.Now()
	return cache.found, cache.err
}

// discover reads the newest version that the member serves.
func (c *cluster) discover(ctx context.Context) (customMetrics, error) {
	for _, version := range []string{v1beta2.SchemeGroupVersion.Version, v1beta1.SchemeGroupVersion.Version} {
		data, err := c.rest.Get().AbsPath("/apis", custom_metrics.GroupName, version).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return customMetrics{}, err
		}
		list := &metav1.APIResourceList{}
		if err := json.Unmarshal(data, list); err != nil {
			return customMetrics{}, fmt.Errorf("reading the resources of %s: %w", custom_metrics.GroupName, err)
		}
		return customMetrics{version: version, metrics: metricsOf(list.APIResources)}, nil
	}
	return customMetrics{}, nil
}

// metricsOf returns the metrics of resources named "<resource>.<group>/<metric>".
func metricsOf(resources []metav1.APIResource) []provider.CustomMetricInfo {
	out := make([]provider.CustomMetricInfo, 0, min(len(resources), maxMetrics))
	for _, r := range resources {
		resource, metric, found := strings.Cut(r.Name, "/")
		if !found || len(out) == maxMetrics {
			continue
		}
		out = append(out, provider.CustomMetricInfo{GroupResource: schema.ParseGroupResource(resource), Metric: metric, Namespaced: r.Namespaced})
	}
	return out
}

// listing holds the metrics of all members as they were last listed.
type listing struct {
	mu      sync.Mutex
	metrics []provider.CustomMetricInfo
	readAt  time.Time
	// running is closed at the end of the list that is being made, and nil without one.
	running chan struct{}
}

// get returns the last list. If it is older than listTTL another one is made in the background, and returned instead if
// that is quick.
func (l *listing) get(ctx context.Context, c clock.PassiveClock, list func() []provider.CustomMetricInfo) []provider.CustomMetricInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil && (l.readAt.IsZero() || c.Since(l.readAt) >= listTTL) {
		done := make(chan struct{})
		l.running = done
		go func() {
			defer close(done)
			metrics := list()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.metrics, l.readAt, l.running = metrics, c.Now(), nil
		}()
	}
	if next := l.running; next != nil {
		timeout := listTimeout
		if l.readAt.IsZero() {
			timeout = firstListTimeout
		}
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		select {
		case <-next:
		case <-ctx.Done():
		}
		cancel()
		l.mu.Lock()
	}
	return l.metrics
}
