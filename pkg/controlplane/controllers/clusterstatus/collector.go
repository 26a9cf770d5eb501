package clusterstatus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	// soon is the time between probes while a cluster is on the way to another
	// state.
	soon = time.Second
	// moment is what a new cluster gets to answer for the first time: credentials
	// that were made just now take a while to work, and a cluster that was ill once
	// must be well for long.
	moment = 3 * time.Second
	// unwell is the time between probes of a cluster that is not Ready.
	unwell = 2 * time.Second
	// trust is how long a written status is taken for the one that is stored when
	// the cache does not show it. A control plane that was restored from a backup
	// has lost it, and versions that went back never catch up.
	trust = 30 * time.Second
	// enablementsWait bounds the discovery of a cluster that becomes Ready.
	enablementsWait = 5 * time.Second
	// resourcesWait is how long a cluster that becomes Ready waits for the lists of
	// its nodes and pods.
	resourcesWait = time.Second
)

// collector looks at one cluster.
type collector struct {
	c      *Controller
	name   string
	cancel context.CancelFunc
	now    chan struct{}

	uid       types.UID
	since     time.Time // when the cluster was looked at first
	threshold threshold
	enabled   enablements
	resources *resources
	types     *definitions
	// typesChanged is when a definition of a type changed last, in nanoseconds.
	// Others write it.
	typesChanged atomic.Int64
	// becoming is when the cluster was first seen to become Ready, until that is
	// written.
	becoming time.Time
	// well says whether the last probe found the cluster well.
	well bool
	// collected is when the bulk of the status was looked at last.
	collected time.Time
	// written is the status as written last, when the cache may be behind.
	written        *clusterv1alpha1.ClusterStatus
	writtenVersion string
	writtenAt      time.Time
}

func newCollector(c *Controller, name string, cancel context.CancelFunc) *collector {
	return &collector{c: c, name: name, cancel: cancel, now: make(chan struct{}, 1)}
}

// hurry has the collector look at once.
func (l *collector) hurry() {
	select {
	case l.now <- struct{}{}:
	default:
	}
}

// run looks at the cluster until ctx ends.
func (l *collector) run(ctx context.Context) {
	defer l.cancel()
	defer func() {
		l.resources.stop()
		l.types.stop()
	}()
	for ctx.Err() == nil {
		next := l.look(ctx)
		timer := l.c.deps.Clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-l.now:
			l.collected = time.Time{}
		}
		timer.Stop()
	}
}

// look looks once and returns when to look again.
func (l *collector) look(ctx context.Context) time.Duration {
	began := l.c.deps.Clock.Now()
	cluster := &clusterv1alpha1.Cluster{}
	if err := l.c.client.Get(ctx, client.ObjectKey{Name: l.name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return soon // gone, or about to be read
	}
	if cluster.UID != l.uid {
		l.uid, l.since, l.written = cluster.UID, began, nil
		l.threshold = threshold{success: l.c.deps.SuccessThreshold, failure: l.c.deps.FailureThreshold}
	}
	next, err := l.sync(ctx, cluster, began)
	l.c.metrics.observe(cluster.Name, l.current(cluster), l.c.deps.Clock.Since(began))
	if err != nil && ctx.Err() == nil {
		ctrllog.FromContext(ctx).WithName(Name).V(1).Info("Looking at a cluster failed", "Cluster", cluster.Name, "err", err)
		return soon
	}
	return next
}

// sync probes the cluster, writes how it is, and if it is well all else.
func (l *collector) sync(ctx context.Context, cluster *clusterv1alpha1.Cluster, now time.Time) (time.Duration, error) {
	member, observed := l.probe(ctx, cluster)
	if ctx.Err() != nil {
		return 0, nil //nolint:nilerr // nobody waits for it any longer
	}
	if !slices.Contains(cluster.Finalizers, clusterv1alpha1.ClusterControllerFinalizer) {
		// Its execution namespace is not there yet. The probe was not for nothing:
		// the connection is open.
		return soon, nil
	}
	well := observed.Status == metav1.ConditionTrue
	if !well {
		l.well = false
	}
	stored := l.ready(cluster)
	if stored == nil && !well && now.Before(l.since.Add(moment)) {
		return soon / 4, nil
	}
	ready := l.threshold.adjust(stored, observed, now)
	if ready.Status == metav1.ConditionTrue && (stored == nil || stored.Status != metav1.ConditionTrue) {
		return l.becomeReady(ctx, cluster, member, ready, now)
	}
	l.becoming = time.Time{}
	if err := l.write(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) { l.set(status, ready) }); err != nil {
		return 0, err
	}
	switch {
	case well != (ready.Status == metav1.ConditionTrue):
		return soon, nil
	case !well:
		return unwell, nil
	}
	return l.refresh(ctx, cluster, member, now)
}

// probe returns the client of the cluster, nil if there is none, and whether the cluster is Ready.
func (l *collector) probe(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, metav1.Condition) {
	member, err := l.c.deps.Members.Member(ctx, cluster)
	if err != nil {
		return nil, condition(metav1.ConditionFalse, reasonCollectionFailed, "failed to create a ClusterClient: "+err.Error())
	}
	return member, probe(ctx, member, l.c.deps.ProbeTimeout)
}

// refresh collects what a Ready cluster serves and how much room it has, when that is due.
func (l *collector) refresh(ctx context.Context, cluster *clusterv1alpha1.Cluster, member *access.Member, now time.Time) (time.Duration, error) {
	if l.c.deps.Healthy != nil {
		l.c.deps.Healthy(cluster)
	}
	l.follow(ctx, member)
	l.well = true
	if due := l.collected.Add(l.c.deps.Frequency); now.Before(due) {
		return min(due.Sub(now), l.c.deps.Frequency/2), nil
	}
	if err := l.collect(ctx, cluster, member, l.c.deps.Timeout, nil); err != nil {
		return 0, err
	}
	return l.collectedAt(now), nil
}

// becomeReady writes that a cluster is Ready together with what it serves and how
// much room it has: a binding that is scheduled meanwhile would not come back to a
// cluster that was Ready but served nothing yet. Nodes and pods are waited for
// briefly, as listing them can take long.
func (l *collector) becomeReady(ctx context.Context, cluster *clusterv1alpha1.Cluster, member *access.Member, ready metav1.Condition, now time.Time) (time.Duration, error) {
	l.follow(ctx, member)
	if l.becoming.IsZero() {
		l.becoming = now
	}
	if l.c.deps.Resources && now.Before(l.becoming.Add(resourcesWait)) {
		if _, _, known := l.resources.summary(nil); !known {
			return soon / 4, nil
		}
	}
	if err := l.collect(ctx, cluster, member, min(l.c.deps.Timeout, enablementsWait), &ready); err != nil {
		return 0, err
	}
	slow := l.c.deps.Clock.Since(now) >= enablementsWait
	l.becoming, l.well = time.Time{}, true
	if l.c.deps.Healthy != nil {
		l.c.deps.Healthy(cluster)
	}
	if slow {
		return soon, nil // what it serves is collected without that limit
	}
	return l.collectedAt(now), nil
}

// collectedAt records that the bulk of the status was written and returns the time
// to the next probe.
func (l *collector) collectedAt(now time.Time) time.Duration {
	if now.Before(time.Unix(0, l.typesChanged.Load()).Add(serving)) {
		return soon // what was defined just now may not be served yet
	}
	l.collected = now
	return l.c.deps.Frequency / 2
}

// ready returns the stored Ready condition, or nil.
func (l *collector) ready(cluster *clusterv1alpha1.Cluster) *metav1.Condition {
	return meta.FindStatusCondition(l.current(cluster).Conditions, clusterv1alpha1.ClusterConditionReady)
}

// set sets a condition; the time of its transition is that of the clock here.
func (l *collector) set(status *clusterv1alpha1.ClusterStatus, c metav1.Condition) {
	c.LastTransitionTime = metav1.NewTime(l.c.deps.Clock.Now())
	c.Message = plaintext.Escape(c.Message) // it may have text of the member
	meta.SetStatusCondition(&status.Conditions, c)
}

// follow keeps the types, nodes and pods of the member in view.
func (l *collector) follow(ctx context.Context, member *access.Member) {
	if l.types == nil || l.types.member != member {
		l.types.stop()
		l.types = newDefinitions(ctx, member, func() {
			l.typesChanged.Store(l.c.deps.Clock.Now().UnixNano())
			l.hurry()
		})
	} else if !l.well {
		l.types.mirror.Retry()
	}
	if !l.c.deps.Resources {
		return
	}
	if l.resources.of(member) {
		if !l.well {
			l.resources.retry()
		}
		return
	}
	l.resources.stop()
	l.resources = newResources(ctx, member, l.hurry)
}

// collect writes what the cluster serves and how much room it has, and with it the
// Ready condition unless that is nil. The cluster has limit to answer.
func (l *collector) collect(ctx context.Context, cluster *clusterv1alpha1.Cluster, member *access.Member, limit time.Duration, ready *metav1.Condition) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	list, listErr := l.enabled.get(bounded, member, l.c.deps.Clock.Now())
	version := kubernetesVersion(bounded, member)
	if ctx.Err() != nil {
		return nil
	}
	var models []clusterv1alpha1.ResourceModel
	if l.c.deps.Modeling {
		models = cluster.Spec.ResourceModels
	}
	nodes, sum, known := l.resources.summary(models)
	return l.write(ctx, cluster, func(status *clusterv1alpha1.ClusterStatus) {
		if ready != nil {
			l.set(status, *ready)
		}
		if bounded.Err() == nil || ready == nil {
			status.KubernetesVersion = version
			status.APIEnablements = list
			l.set(status, enablementsCondition(list, listErr))
		}
		if known {
			status.NodeSummary, status.ResourceSummary = nodes, sum
		}
		if l.c.deps.Conditions != nil {
			for _, more := range l.c.deps.Conditions(cluster) {
				l.set(status, more)
			}
		}
	})
}

// current returns the status as it is in the control plane, as far as is known.
func (l *collector) current(cluster *clusterv1alpha1.Cluster) *clusterv1alpha1.ClusterStatus {
	if l.written != nil && newer(l.writtenVersion, cluster.ResourceVersion) && l.c.deps.Clock.Since(l.writtenAt) < trust {
		return l.written
	}
	l.written = nil
	return &cluster.Status
}

// write changes the status if that makes a difference.
func (l *collector) write(ctx context.Context, cluster *clusterv1alpha1.Cluster, change func(*clusterv1alpha1.ClusterStatus)) error {
	before, version := l.current(cluster), cluster.ResourceVersion
	if l.written != nil {
		version = l.writtenVersion
	}
	for range attempts {
		after := before.DeepCopy()
		change(after)
		patch, err := statusPatch(version, before, after)
		if err != nil || patch == nil {
			return err
		}
		out, err := l.send(ctx, cluster, after, version, patch)
		if err == nil {
			l.written, l.writtenVersion, l.writtenAt = &out.Status, out.ResourceVersion, l.c.deps.Clock.Now()
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("writing the status of cluster %s: %w", l.name, err)
		}
		fresh := &clusterv1alpha1.Cluster{}
		if err := l.c.live.Get(ctx, client.ObjectKey{Name: l.name}, fresh); err != nil {
			return fmt.Errorf("reading cluster %s: %w", l.name, err)
		}
		if fresh.UID != cluster.UID {
			return errors.New("the cluster was replaced by another one of the name")
		}
		before, version = &fresh.Status, fresh.ResourceVersion
	}
	return fmt.Errorf("writing the status of cluster %s: it keeps changing", l.name)
}
