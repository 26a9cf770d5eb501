package federatedquota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/ledgers"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

const (
	// countDelay collects changes of bindings before they are counted.
	countDelay = 250 * time.Millisecond
	// reservedDelay is the time until the bindings are counted again while writes that admission has passed are not
	// observed yet.
	reservedDelay = time.Second
	// statusInterval is the shortest time between two writes of the status of the quotas of a namespace, for each of its
	// quotas: a namespace with many does not write more often than one with few.
	statusInterval = 50 * time.Millisecond
	// countAttempts limits the writes of a ledger that conflict with those of admission.
	countAttempts = 10
)

// counter counts the bindings of namespaces that have quotas. A request is for a namespace.
type counter struct {
	client  client.Client
	live    client.Reader
	ledgers ledgers.Ledgers
	events  *events.Recorder
	period  time.Duration
	clock   clock.PassiveClock
	// written is when the status of the quotas of a namespace was written last. It has every namespace that may have a
	// ledger. There is one worker.
	written map[string]time.Time
}

// SetupEnforcement adds the controller that counts what bindings use of quotas.
func SetupEnforcement(_ context.Context, e *env.Env, period time.Duration) error {
	r := &counter{
		client: e.Client, live: e.Live, ledgers: ledgers.Ledgers{Live: e.Live, Writer: e.Client},
		events: e.Recorder(EnforcementComponent), period: period, clock: e.Clock, written: map[string]time.Time{},
	}
	return e.Controller(EnforcementComponent, 1, 1).
		Watches(&policyv1alpha1.FederatedResourceQuota{}, enqueueNamespace(0), builder.WithPredicates(overallChanged())).
		Watches(&workv1alpha2.ResourceBinding{}, enqueueNamespace(countDelay), builder.WithPredicates(usageChanged())).
		WatchesRawSource(source.Func(r.leftovers)).
		Complete(r)
}

// enqueueNamespace enqueues the namespace of an object after a delay.
func enqueueNamespace(delay time.Duration) handler.EventHandler {
	add := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], obj client.Object) {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: obj.GetNamespace()}}, delay)
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(q, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object) },
	}
}

// overallChanged passes quotas that are new, deleted, or whose limit changed.
func overallChanged() predicate.Predicate {
	return controllers.Filter[*policyv1alpha1.FederatedResourceQuota]{Updated: func(before, after *policyv1alpha1.FederatedResourceQuota) bool {
		return !equality.Semantic.DeepEqual(before.Spec.Overall, after.Spec.Overall)
	}}
}

// usageChanged passes bindings that use something, and updates that change what they use.
func usageChanged() predicate.Predicate {
	uses := func(b *workv1alpha2.ResourceBinding) bool { return len(quota.Usage(&b.Spec)) > 0 }
	return controllers.Filter[*workv1alpha2.ResourceBinding]{
		Created: uses,
		Updated: func(before, after *workv1alpha2.ResourceBinding) bool {
			return before.Generation != after.Generation && !equality.Semantic.DeepEqual(quota.Usage(&before.Spec), quota.Usage(&after.Spec))
		},
		Deleted: uses,
	}
}

// leftovers enqueues the namespaces that have a ledger at the start: their last quota may have been deleted.
func (r *counter) leftovers(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	namespaces, err := r.ledgers.Namespaces(ctx)
	for _, namespace := range namespaces {
		r.written[namespace] = time.Time{}
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	}
	return err
}

// Reconcile counts the bindings of one namespace.
func (r *counter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cached := &policyv1alpha1.FederatedResourceQuotaList{}
	if err := r.client.List(ctx, cached, client.InNamespace(req.Name), client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the quotas of namespace %s: %w", req.Name, err)
	}
	if len(cached.Items) == 0 {
		return reconcile.Result{}, r.forget(ctx, req.Name)
	}
	ledger, err := r.count(ctx, req.Name)
	if err != nil {
		for i := range cached.Items {
			r.publish(&cached.Items[i], false, err)
		}
		return reconcile.Result{}, err
	}
	result := reconcile.Result{RequeueAfter: quota.ReservationTTL}
	if r.period > 0 {
		result.RequeueAfter = min(r.period, result.RequeueAfter)
	}
	if len(ledger.Reservations) > 0 {
		result.RequeueAfter = reservedDelay
	}
	if wait := r.early(req.Name, len(cached.Items)); wait > 0 {
		result.RequeueAfter = wait
		return result, nil
	}
	return result, r.report(ctx, req.Name, ledger)
}

// forget removes what is stored about a namespace without quotas.
func (r *counter) forget(ctx context.Context, namespace string) error {
	if _, known := r.written[namespace]; !known {
		return nil
	}
	if err := r.ledgers.Delete(ctx, namespace); err != nil {
		return err
	}
	delete(r.written, namespace)
	return nil
}

// early returns the time until the status of the quotas may be written again.
func (r *counter) early(namespace string, quotas int) time.Duration {
	return r.written[namespace].Add(time.Duration(quotas) * statusInterval).Sub(r.clock.Now())
}

// count writes the ledger of a namespace and returns it.
func (r *counter) count(ctx context.Context, namespace string) (*ledgers.Stored, error) {
	var err error
	for range countAttempts {
		var before *ledgers.Stored
		if before, err = r.ledgers.Get(ctx, namespace); err != nil {
			return nil, err
		}
		next := before.Copy()
		if err := r.recount(ctx, namespace, next); err != nil {
			return nil, err
		}
		if before.Counted && equality.Semantic.DeepEqual(before.Ledger, next.Ledger) {
			return next, nil
		}
		if err = r.ledgers.Put(ctx, namespace, next); err == nil || !ledgers.Conflict(err) {
			return next, err
		}
	}
	return nil, err
}

func (r *counter) recount(ctx context.Context, namespace string, s *ledgers.Stored) error {
	stored, err := ledgers.Bindings(ctx, r.client, namespace)
	if err == nil && s.Behind(stored, r.clock.Now()) {
		stored, err = ledgers.Bindings(ctx, r.live, namespace)
	}
	if err != nil {
		return err
	}
	// The cache may not show a binding yet.
	missing := func(binding string) bool {
		return apierrors.IsNotFound(r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: binding}, &workv1alpha2.ResourceBinding{}))
	}
	s.Recount(stored, missing, r.clock.Now())
	return nil
}

// report writes the status of the quotas of a namespace. It is compared with what is stored: the cache may not show the
// last write.
func (r *counter) report(ctx context.Context, namespace string, ledger *ledgers.Stored) error {
	quotas := &policyv1alpha1.FederatedResourceQuotaList{}
	if err := r.live.List(ctx, quotas, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the quotas of namespace %s: %w", namespace, err)
	}
	r.written[namespace] = r.clock.Now()
	total := ledger.Total()
	var errs []error
	for i := range quotas.Items {
		q := &quotas.Items[i]
		next := q.DeepCopy()
		quota.Count(next, total)
		wrote := false
		var err error
		if !equality.Semantic.DeepEqual(q.Status, next.Status) {
			wrote, err = writeStatus(ctx, r.client, q, next)
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		r.publish(q, wrote, err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *counter) publish(q *policyv1alpha1.FederatedResourceQuota, changed bool, err error) {
	publish(r.events, q, [2]string{"CollectOverallStatusSucceed", "CollectOverallStatusFailed"},
		fmt.Sprintf("Collect overall status of FederatedResourceQuota(%s/%s) succeed.", q.Namespace, q.Name), changed, err)
}
