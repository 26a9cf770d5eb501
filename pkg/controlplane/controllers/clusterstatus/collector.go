package clusterstatus

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/plaintext"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// transitionInterval is the time between probes while the state of a cluster
	// changes.
	transitionInterval = time.Second
	// shortInterval is the time between probes of a new cluster, and the least time
	// between probes of one that fails.
	shortInterval = transitionInterval / 4
	// initialGrace is how long failures of a new cluster are not reported: new
	// credentials need time to become valid, and a cluster that is not Ready has to be
	// healthy for Deps.SuccessThreshold before it is Ready.
	initialGrace = 3 * time.Second
	// unhealthyInterval is the time between probes of a cluster that is not Ready.
	unhealthyInterval = 2 * time.Second
	// enablementsTimeout limits the discovery of a cluster that becomes Ready.
	enablementsTimeout = 5 * time.Second
	// resourcesTimeout is how long a cluster that becomes Ready waits for the lists of
	// its nodes and pods.
	resourcesTimeout = time.Second
)

// collector collects the status of one cluster.
type collector struct {
	*shared
	name string
	uid  types.UID
	// trigger makes it probe the cluster without delay.
	trigger controllers.Trigger
	cancel  context.CancelFunc
	done    chan struct{}

	firstSeen time.Time
	threshold threshold
	sources   sources
	// readySince is when the cluster was first found Ready, until that is written.
	readySince time.Time
	// healthy reports whether the last probe succeeded.
	healthy bool
	// collected is the time when all but the Ready condition was collected last.
	collected time.Time
	written   status.Written[*clusterv1alpha1.ClusterStatus]
}

func newCollector(c *shared, cluster *clusterv1alpha1.Cluster) *collector {
	return &collector{
		shared: c, name: cluster.Name, uid: cluster.UID, trigger: controllers.NewTrigger(), done: make(chan struct{}), firstSeen: c.deps.Clock.Now(),
		threshold: threshold{success: c.deps.SuccessThreshold, failure: c.deps.FailureThreshold},
	}
}

// startCollector starts a collector, which ends with ctx.
func startCollector(ctx context.Context, c *shared, cluster *clusterv1alpha1.Cluster) *collector {
	l := newCollector(c, cluster)
	ctx, l.cancel = context.WithCancel(ctx)
	go l.run(ctx)
	return l
}

// stop ends the collector and waits for it.
func (l *collector) stop() {
	l.cancel()
	<-l.done
}

// run collects the status of the cluster until ctx is done.
func (l *collector) run(ctx context.Context) {
	defer close(l.done)
	defer l.sources.stop()
	for ctx.Err() == nil {
		timer := l.deps.Clock.NewTimer(l.reconcile(ctx))
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-l.trigger:
			l.collected = time.Time{}
		}
		timer.Stop()
	}
}

// reconcile collects the status once and returns the time until the next time.
func (l *collector) reconcile(ctx context.Context) time.Duration {
	began := l.deps.Clock.Now()
	cluster := &clusterv1alpha1.Cluster{}
	if err := l.client.Get(ctx, client.ObjectKey{Name: l.name}, cluster, client.UnsafeDisableDeepCopy); err != nil || cluster.UID != l.uid {
		return transitionInterval // deleted, or not yet in the cache
	}
	next, err := l.sync(ctx, cluster, began)
	l.metrics.observe(cluster.Name, l.writer.Current(cluster, &l.written), l.deps.Clock.Since(began))
	if err != nil && ctx.Err() == nil {
		ctrllog.FromContext(ctx).WithName(Name).V(1).Info("Collecting the status of a cluster failed", "Cluster", cluster.Name, "err", err)
		return transitionInterval
	}
	return next
}

// sync probes the cluster, writes its Ready condition, and all else if it is healthy.
func (l *collector) sync(ctx context.Context, cluster *clusterv1alpha1.Cluster, now time.Time) (time.Duration, error) {
	member, observed, timedOut := l.probe(ctx, cluster)
	if ctx.Err() != nil {
		return 0, nil //nolint:nilerr // the collector ends
	}
	if by := l.delays.since(now); timedOut && by > l.deps.ProbeTimeout/delayShare {
		ctrllog.FromContext(ctx).WithName(Name).Info("A probe of a cluster timed out while this process was delayed, trying again", "Cluster", l.name, "delay", by.String())
		return shortInterval, nil
	}
	if l.deps.Probed != nil {
		l.deps.Probed(cluster, observed.Status == metav1.ConditionTrue, now)
	}
	if !slices.Contains(cluster.Finalizers, clusterv1alpha1.ClusterControllerFinalizer) {
		// Its execution namespace does not exist yet. The connection is open already.
		return transitionInterval, nil
	}
	healthy := observed.Status == metav1.ConditionTrue
	if !healthy {
		l.healthy = false
	}
	stored := meta.FindStatusCondition(l.writer.Current(cluster, &l.written).Conditions, clusterv1alpha1.ClusterConditionReady)
	if stored == nil && !healthy && now.Before(l.firstSeen.Add(initialGrace)) {
		return shortInterval, nil
	}
	ready := l.threshold.adjust(stored, observed, now, l.deps.Clock.Now())
	if ready.Status == metav1.ConditionTrue && (stored == nil || stored.Status != metav1.ConditionTrue) {
		return l.becomeReady(ctx, cluster, member, ready, now)
	}
	l.readySince = time.Time{}
	if err := l.write(ctx, cluster, func(s *clusterv1alpha1.ClusterStatus) { l.set(s, ready) }); err != nil {
		return 0, err
	}
	if wait := l.interval(healthy, ready.Status == metav1.ConditionTrue); wait > 0 {
		return wait, nil
	}
	return l.refresh(ctx, cluster, member, now)
}

// interval returns the time to the next probe of a cluster that is not healthy or not Ready,
// otherwise 0.
func (l *collector) interval(healthy, ready bool) time.Duration {
	switch {
	case healthy && ready:
		return 0
	case healthy:
		return transitionInterval
	case ready:
		return min(transitionInterval, max(shortInterval, l.deps.FailureThreshold/4))
	}
	return unhealthyInterval
}

// probe returns the client of the cluster, nil if there is none, whether the cluster is Ready, and whether it did not answer
// in time.
func (l *collector) probe(ctx context.Context, cluster *clusterv1alpha1.Cluster) (member *access.Member, observed metav1.Condition, timedOut bool) {
	member, err := l.deps.Members.Member(ctx, cluster)
	if err != nil {
		return nil, condition(metav1.ConditionFalse, reasonCollectionFailed, "failed to create a ClusterClient: "+err.Error()), false
	}
	renew := ""
	if cluster.Spec.SyncMode == clusterv1alpha1.Push { // an agent in its own cluster has those of its pod
		renew = "karmadactl join " + cluster.Name + " --cluster-kubeconfig=FILE"
	}
	observed, timedOut = probe(ctx, member, l.deps.ProbeTimeout, renew)
	return member, observed, timedOut
}

// refresh collects the APIs and the resources of a Ready cluster when they are due.
func (l *collector) refresh(ctx context.Context, cluster *clusterv1alpha1.Cluster, member *access.Member, now time.Time) (time.Duration, error) {
	if l.deps.Healthy != nil {
		l.deps.Healthy(cluster)
	}
	l.watch(ctx, member)
	l.healthy = true
	if due := l.collected.Add(l.deps.Frequency); now.Before(due) {
		return min(due.Sub(now), l.deps.Frequency/2), nil
	}
	if err := l.collect(ctx, cluster, member, l.deps.Timeout, nil); err != nil {
		return 0, err
	}
	return l.completed(now), nil
}

// becomeReady writes that a cluster is Ready together with its APIs and resources:
// the scheduler would not reconsider a cluster that was Ready without APIs when a
// binding was scheduled. The wait for nodes and pods is short, as listing them can
// take long.
func (l *collector) becomeReady(ctx context.Context, cluster *clusterv1alpha1.Cluster, member *access.Member, ready metav1.Condition, now time.Time) (time.Duration, error) {
	l.watch(ctx, member)
	if l.readySince.IsZero() {
		l.readySince = now
		l.sources.enabled.coreAt = time.Time{} // perhaps it was upgraded
	}
	if l.deps.Resources && now.Before(l.readySince.Add(resourcesTimeout)) {
		if _, _, known := l.sources.resources.summary(nil); !known {
			return shortInterval, nil
		}
	}
	if err := l.collect(ctx, cluster, member, min(l.deps.Timeout, enablementsTimeout), &ready); err != nil {
		return 0, err
	}
	slow := l.deps.Clock.Since(now) >= enablementsTimeout
	l.readySince, l.healthy = time.Time{}, true
	if l.deps.Healthy != nil {
		l.deps.Healthy(cluster)
	}
	if slow {
		return transitionInterval, nil // the next time without that limit
	}
	return l.completed(now), nil
}

// completed records that the whole status was collected and returns the time to the
// next probe.
func (l *collector) completed(now time.Time) time.Duration {
	if l.sources.typesChangedSince(now.Add(-servingGrace)) {
		return transitionInterval // a type that was defined just now may not be served yet
	}
	l.collected = now
	return l.deps.Frequency / 2
}

// watch watches the types, nodes and pods of the member, and not those of the one before.
func (l *collector) watch(ctx context.Context, member *access.Member) {
	s := &l.sources
	if s.member != member {
		s.stop()
		s.member, s.resources = member, nil
		member.OnClose(l.trigger.Fire)
		s.types = watchTypes(ctx, member, func() {
			s.typesChanged.Store(l.deps.Clock.Now().UnixNano())
			l.trigger.Fire()
		})
	} else if !l.healthy { // without the delay of what failed
		s.types.Retry()
		s.resources.retry()
	}
	if l.deps.Resources && s.resources == nil {
		s.resources = newResources(ctx, member, l.trigger.Fire)
	}
}

// collect writes the APIs and resources of the cluster, and with them the Ready
// condition unless that is nil. Requests to the cluster are limited to timeout.
func (l *collector) collect(ctx context.Context, cluster *clusterv1alpha1.Cluster, member *access.Member, timeout time.Duration, ready *metav1.Condition) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, listErr := l.sources.enabled.get(bounded, member, l.deps.Clock.Now())
	version := l.sources.enabled.kubernetesVersion(bounded, member)
	if ctx.Err() != nil {
		return nil
	}
	var models []clusterv1alpha1.ResourceModel
	if l.deps.Modeling {
		models = cluster.Spec.ResourceModels
	}
	nodes, sum, known := l.sources.resources.summary(models)
	return l.write(ctx, cluster, func(s *clusterv1alpha1.ClusterStatus) {
		if ready != nil {
			l.set(s, *ready)
		}
		if bounded.Err() == nil || ready == nil {
			s.KubernetesVersion = version
			s.APIEnablements = l.sources.enabled.keep(s.APIEnablements, list)
			l.set(s, enablementsCondition(list, listErr))
		}
		if known {
			s.NodeSummary, s.ResourceSummary = nodes, sum
		}
		if l.deps.Conditions != nil {
			for _, more := range l.deps.Conditions(cluster) {
				l.set(s, more)
			}
		}
	})
}

// set sets a condition. The time of its transition is that of the clock of the control plane or agent.
func (l *collector) set(s *clusterv1alpha1.ClusterStatus, c metav1.Condition) {
	c.LastTransitionTime = metav1.NewTime(l.deps.Clock.Now())
	c.Message = plaintext.Escape(c.Message) // it may have text of the member
	meta.SetStatusCondition(&s.Conditions, c)
}

func (l *collector) write(ctx context.Context, cluster *clusterv1alpha1.Cluster, change func(*clusterv1alpha1.ClusterStatus)) error {
	_, err := l.writer.Write(ctx, cluster, &l.written, change)
	return err
}
