// Package cluster manages the execution namespace and the taints of member clusters
// until they are unjoined, and sets the Ready condition of clusters whose status is
// not reported any longer to Unknown.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// Name is the name of the controller and the source of its events.
const Name = "cluster-controller"

// defaultWorkers is the default of the number of workers.
const defaultWorkers = 5

// Options are the options of the controller.
type Options struct {
	// MonitorPeriod is the time between two checks of the reports of all clusters.
	// Default: 5 s.
	MonitorPeriod time.Duration
	// MonitorGracePeriod is the time without a report after which a cluster is
	// Unknown. Default: 40 s.
	MonitorGracePeriod time.Duration
	// StartupGracePeriod is the same for a cluster without a report so far. Default:
	// 1 min.
	StartupGracePeriod time.Duration
	// FlapWindow is the time in which the Ready condition of a cluster may change three times; after more changes the
	// cluster is tainted until the condition has not changed for that time. Default: 0, which turns it off.
	FlapWindow time.Duration
	// LeavingPeriod is the time between two checks of what has to be deleted before a cluster. Default: 1 s.
	LeavingPeriod time.Duration
	// Reported is called for clusters with sync mode Pull: after each report with a time that it did not come before, and
	// with the time of the last one while the next is overdue for more than half of the grace period. Optional.
	Reported func(cluster *clusterv1alpha1.Cluster, healthy bool, at time.Time)
}

// reconciler reconciles clusters.
type reconciler struct {
	env     *env.Env
	options Options
	client  client.Client
	live    client.Reader
	events  *events.Recorder
	// tainted are the clusters that had a taint of unhealthy clusters when they were
	// reconciled last, by name.
	tainted *status.Memory[string, types.UID]
}

func newReconciler(e *env.Env, recorder record.EventRecorder, o Options) *reconciler {
	o.MonitorPeriod = cmp.Or(o.MonitorPeriod, 5*time.Second)
	o.MonitorGracePeriod = cmp.Or(o.MonitorGracePeriod, 40*time.Second)
	o.StartupGracePeriod = cmp.Or(o.StartupGracePeriod, time.Minute)
	o.LeavingPeriod = cmp.Or(o.LeavingPeriod, time.Second)
	return &reconciler{env: e, options: o, client: e.Client, live: e.Live, events: events.New(recorder), tainted: status.NewMemory[string, types.UID](0)}
}

// Setup adds the controller and the health monitor to the manager.
func Setup(_ context.Context, e *env.Env, o Options) error {
	r := newReconciler(e, e.Manager.GetEventRecorderFor(Name), o)
	err := builder.ControllerManagedBy(e.Manager).Named("cluster").
		WithOptions(controllers.Options(e.ClusterSyncs, defaultWorkers, controllers.Retry{})).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(changed())).
		Watches(&corev1.Namespace{}, controllers.EnqueueKey(clusterOf), builder.WithPredicates(unprotected())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the %s: %w", Name, err)
	}
	monitor := newMonitor(r)
	if err := e.Manager.Add(manager.RunnableFunc(monitor.run)); err != nil {
		return fmt.Errorf("adding the health monitor of clusters: %w", err)
	}
	return nil
}

// changed passes updates of all but the status, and of the status of the Ready
// condition.
func changed() predicate.Predicate {
	return controllers.Filter[*clusterv1alpha1.Cluster]{Updated: func(old, now *clusterv1alpha1.Cluster) bool {
		return old.Generation != now.Generation || old.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() ||
			!slices.Equal(old.Finalizers, now.Finalizers) || readyStatus(old) != readyStatus(now) ||
			!equality.Semantic.DeepEqual(old.Spec.Taints, now.Spec.Taints)
	}}
}

func clusterOf(namespace *corev1.Namespace) types.NamespacedName {
	cluster, _ := names.ClusterOfExecutionNamespace(namespace.Name) // empty for other namespaces
	return types.NamespacedName{Name: cluster}
}

// Reconcile reconciles one cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := r.client.Get(ctx, req.NamespacedName, cluster)
	if apierrors.IsNotFound(err) {
		r.observeTaints(req.Name, "", false)
		return reconcile.Result{}, r.unprotect(ctx, req.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading cluster %s: %w", req.Name, err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return r.leave(ctx, cluster)
	}
	if err := r.ensureExecutionSpace(ctx, cluster); err != nil {
		return reconcile.Result{}, err
	}
	return r.mark(ctx, cluster)
}

// mark writes taints, finalizer and the changes of the Ready condition in one patch if they differ.
func (r *reconciler) mark(ctx context.Context, cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	now := r.env.Clock.Now()
	taints, changed := clustercondition.HealthTaints(cluster.Spec.Taints, cluster.ReadyCondition(), now)
	flap := r.flapping(cluster, now)
	taints, tainted := flap.taints(taints, now)
	result := reconcile.Result{RequeueAfter: flap.after}
	changed = changed || tainted
	metadata := map[string]any{"resourceVersion": cluster.ResourceVersion}
	if flap.changed {
		metadata["annotations"] = flap.annotations
	}
	body := map[string]any{"metadata": metadata}
	if changed {
		body["spec"] = map[string]any{"taints": taints}
	}
	if !slices.Contains(cluster.Finalizers, clusterv1alpha1.ClusterControllerFinalizer) {
		metadata["finalizers"] = append(slices.Clone(cluster.Finalizers), clusterv1alpha1.ClusterControllerFinalizer)
	} else if !changed && !flap.changed {
		if r.observeTaints(cluster.Name, cluster.UID, unhealthy(taints)) {
			publishTainted(r.events, cluster, taints)
		}
		return result, nil
	}
	err := r.patch(ctx, cluster, body)
	if err == nil {
		changed = r.observeTaints(cluster.Name, cluster.UID, unhealthy(taints)) || changed
	}
	switch {
	case !changed || apierrors.IsConflict(err):
	case err != nil:
		r.events.Warning(cluster, reasonTaintFailed, fmt.Sprintf("Taint cluster failed: %v.", err))
	default:
		publishTainted(r.events, cluster, taints)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

func (r *reconciler) patch(ctx context.Context, cluster *clusterv1alpha1.Cluster, body map[string]any) error {
	if err := r.client.Patch(ctx, patch.Named(cluster), patch.Merge(body)); err != nil {
		return fmt.Errorf("patching cluster %s: %w", cluster.Name, err)
	}
	return nil
}

// observeTaints records whether a cluster has a taint of unhealthy clusters, and
// reports whether it lost the last one: the API server of clusters removes them
// in the write that makes a cluster Ready.
func (r *reconciler) observeTaints(name string, uid types.UID, has bool) (lost bool) {
	r.tainted.Update(name, func(had types.UID, found bool) (types.UID, bool) {
		lost = !has && found && had == uid
		return uid, has
	})
	return lost
}

// readyStatus returns the status of the Ready condition, or nothing if there is none.
func readyStatus(cluster *clusterv1alpha1.Cluster) metav1.ConditionStatus {
	if c := cluster.ReadyCondition(); c != nil {
		return c.Status
	}
	return ""
}

// The reasons of the events on clusters.
const (
	reasonCreateSucceed = "CreateExecutionSpaceSucceed"
	reasonCreateFailed  = "CreateExecutionSpaceFailed"
	reasonRemoveSucceed = "RemoveExecutionSpaceSucceed"
	reasonRemoveFailed  = "RemoveExecutionSpaceFailed"
	reasonRemoved       = "ExecutionSpaceDeleted"
	reasonTaintSucceed  = "TaintClusterSucceed"
	reasonTaintFailed   = "TaintClusterFailed"
)

func publishTainted(r *events.Recorder, cluster *clusterv1alpha1.Cluster, taints []corev1.Taint) {
	r.Normal(cluster, reasonTaintSucceed, "Taint cluster succeed: "+clustercondition.Describe(taints)+".")
}
