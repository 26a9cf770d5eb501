package massfailure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

// period is the time between two decisions without a request of an evicting controller, and between two reads of a
// request to resume while evictions are stopped.
const period = time.Second

// Reasons of the condition EvictionsStopped and of events about it.
const (
	reasonStopped = "MassFailure"
	reasonResumed = "EvictionsResumed"

	eventStopped = "EvictionsStopped"
)

// run decides and publishes the decision until ctx ends.
func (g *Guard) run(ctx context.Context) error {
	ticker := g.env.Clock.NewTicker(period)
	defer ticker.Stop()
	p := &publisher{Guard: g}
	for {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			log.FromContext(ctx).WithName(Component).Error(err, "Publishing whether evictions are stopped")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// publisher writes the decisions of a Guard. stored is the state in the ConfigMap.
type publisher struct {
	*Guard
	stored eviction.MassFailureState
	// consume is set while the ConfigMap has a request to resume that was followed, or is about an earlier mass failure.
	consume bool
	// retime is set while the ConfigMap has another timeout of graceful evictions.
	retime bool
}

// publish decides once and writes what changed.
func (p *publisher) publish(ctx context.Context) error {
	resume, err := p.read(ctx)
	if err != nil {
		return err
	}
	v, clusters, err := p.decide(ctx, resume)
	if err != nil {
		return err
	}
	var errs []error
	if p.consume || p.retime || !v.State.Equal(&p.stored) {
		errs = append(errs, p.write(ctx, v.State))
	}
	p.metrics.set(v.State.Stopped(), len(v.Held))
	for i := range clusters {
		errs = append(errs, p.writeCondition(ctx, &clusters[i], v))
	}
	p.forgetAllBut(clusters)
	return errors.Join(errs...)
}

// forgetAllBut removes what is known of clusters that were deleted.
func (p *publisher) forgetAllBut(clusters []clusterv1alpha1.Cluster) {
	uids := sets.New[types.UID]()
	for i := range clusters {
		uids.Insert(clusters[i].UID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.health, func(uid types.UID, _ health) bool { return !uids.Has(uid) })
}

// read loads the stored state once, and reports whether a user requested that evictions resume.
func (p *publisher) read(ctx context.Context) (resume bool, err error) {
	p.mu.Lock()
	loaded, stopped := p.loaded, p.state.Stopped()
	p.mu.Unlock()
	if loaded && !stopped {
		return false, nil
	}
	stored := &corev1.ConfigMap{}
	if err := p.live.Get(ctx, stateKey(), stored); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ConfigMap %s: %w", stateKey(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !loaded {
		state, err := eviction.DecodeMassFailure(stored.Data)
		if err != nil { // what is not readable is decided anew
			log.FromContext(ctx).WithName(Component).Error(err, "Reading the state of failover", "ConfigMap", stateKey())
		}
		p.loaded, p.state, p.stored = true, state, state
		p.retime = stored.Data[eviction.TimeoutKey] != p.timeout()
	}
	request, requested := stored.Data[eviction.ResumeKey]
	p.consume = p.consume || requested
	return requested && p.state.Stopped() && request == eviction.ResumeValue(p.state.Since), nil
}

// timeout returns the value of eviction.TimeoutKey, nothing for the default.
func (p *publisher) timeout() string {
	if d := p.options.GracefulTimeout; d > 0 && d != eviction.DefaultGracefulTimeout {
		return d.String()
	}
	return ""
}

func stateKey() client.ObjectKey {
	return client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: names.FailoverState}
}

// write stores a state, and removes the request to resume if there is one.
func (p *publisher) write(ctx context.Context, state eviction.MassFailureState) error {
	text, err := state.Encode()
	if err != nil {
		return err
	}
	stored := &corev1.ConfigMap{}
	err = p.live.Get(ctx, stateKey(), stored)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("reading ConfigMap %s: %w", stateKey(), err)
	}
	if stored.Data == nil {
		stored.Data = map[string]string{}
	}
	if stored.Data[eviction.StateKey] = text; text == "" {
		delete(stored.Data, eviction.StateKey)
	}
	if stored.Data[eviction.TimeoutKey] = p.timeout(); p.timeout() == "" {
		delete(stored.Data, eviction.TimeoutKey)
	}
	if p.consume {
		delete(stored.Data, eviction.ResumeKey)
	}
	if missing {
		stored.Namespace, stored.Name = stateKey().Namespace, stateKey().Name
		err = p.client.Create(ctx, stored)
	} else {
		err = p.client.Update(ctx, stored)
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", stateKey(), err)
	}
	p.stored, p.consume, p.retime = state, false, false
	return nil
}

// writeCondition writes the condition of one cluster if it changed, and records an event then.
func (p *publisher) writeCondition(ctx context.Context, cluster *clusterv1alpha1.Cluster, v *eviction.MassFailureVerdict) error {
	held := slices.Contains(v.Held, cluster.Name)
	before := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped)
	changed := held != (before != nil && before.Status == metav1.ConditionTrue)
	if !changed && !held {
		return nil
	}
	condition := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionEvictionsStopped, Status: metav1.ConditionFalse, Reason: reasonResumed,
		Message: "Workloads that do not tolerate the taints of the cluster are evicted.", LastTransitionTime: metav1.NewTime(p.env.Clock.Now()),
	}
	if held {
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonStopped
		condition.Message = fmt.Sprintf("Workloads are not evicted from the cluster: %d of %d clusters failed within %s, which is likely a problem of the control plane. "+
			"Evictions resume when the clusters are Ready, or with %q.", v.State.Failed, v.State.Total, eviction.MassFailureWindow, "karmadactl failover resume")
	}
	if !changed && before.Message == condition.Message {
		return nil
	}
	wrote, err := p.writer.Put(ctx, cluster, func(s *clusterv1alpha1.ClusterStatus) { meta.SetStatusCondition(&s.Conditions, condition) })
	if err != nil || !wrote || !changed { // only the numbers are others
		return err
	}
	if held {
		p.events.Warning(cluster, eventStopped, condition.Message)
	} else {
		p.events.Normal(cluster, reasonResumed, condition.Message)
	}
	return nil
}
