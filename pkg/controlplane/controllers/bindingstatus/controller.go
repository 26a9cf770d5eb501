// Package bindingstatus adds up what the Works of a binding report, and writes
// it into the binding and its template: one body for both scopes, one write for
// each of the two objects when there is something new, and not before the
// clusters have had the time to settle.
package bindingstatus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/debounce"
	"github.com/karmada-toolkit/karmada/internal/events"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Templates reads templates: from memory, or else live. What it returns is
// shared.
type Templates interface {
	Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
}

// Interpreter knows how status adds up.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	AggregateStatus(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
}

// Deps is what the controllers need.
type Deps struct {
	Templates   Templates
	Interpreter Interpreter
	// Workers is the number of bindings handled at a time, for each scope.
	// Default 8: they wait for the API server most of the time.
	Workers int
	// TemplateConditions adds the conditions that clients of Kubernetes wait for to
	// the status of templates.
	TemplateConditions bool
	// Pace says how long status waits for more of it.
	Pace Pace
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Clock defaults to the real one.
	Clock clock.PassiveClock
}

// Reconciler writes the status of the bindings of one scope.
type Reconciler struct {
	scope  Scope
	deps   Deps
	client client.Client
	live   client.Reader
	events record.EventRecorder

	waiting debounce.Backlog[types.NamespacedName]
	mu      sync.Mutex
	states  map[types.NamespacedName]*state
}

// state is what is remembered of a binding.
type state struct {
	uid types.UID
	// written is the status as written last, when the cache may be behind.
	written        *workv1alpha2.ResourceBindingStatus
	writtenVersion string
	writtenAt      time.Time
	dirtySince     time.Time
	// failure is the last failure told to the user.
	failure string
	// template is what is known of the template.
	template templateState
}

// New returns the reconciler of a scope.
func New(scope Scope, c client.Client, live client.Reader, recorder record.EventRecorder, d Deps) *Reconciler {
	d.Pace.complete()
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
	return &Reconciler{scope: scope, deps: d, client: c, live: live, events: events.Plain(recorder), states: map[types.NamespacedName]*state{}}
}

// Setup adds the controllers of both scopes to the manager.
func Setup(ctx context.Context, mgr manager.Manager, d Deps) error {
	if d.Workers <= 0 {
		d.Workers = 8
	}
	for _, scope := range Scopes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, scope.Index, scope.id); err != nil {
			return fmt.Errorf("indexing works for the %s: %w", scope.Name, err)
		}
		r := New(scope, mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorderFor(scope.Name), d)
		if err := r.register(mgr, controller.Options{MaxConcurrentReconciles: d.Workers}); err != nil {
			return err
		}
	}
	return nil
}

// Reconcile handles one binding.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	binding := r.scope.New()
	err := r.client.Get(ctx, req.NamespacedName, binding, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && binding.GetDeletionTimestamp() != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the binding: %w", err)
	}
	id := binding.GetLabels()[r.scope.IDLabel]
	if id == "" {
		return reconcile.Result{}, nil
	}
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.MatchingFields{r.scope.Index: id}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the works: %w", err)
	}
	s := r.state(req.NamespacedName, binding.GetUID())
	sum := summarize(binding.GetSpec(), works.Items)
	if sum.progress == silent && meta.FindStatusCondition(s.current(binding).Conditions, workv1alpha2.FullyApplied) == nil {
		// Nothing is known but that nothing is there, which goes without saying.
		return reconcile.Result{}, nil
	}
	wait, err := r.binding(ctx, binding, s, &sum)
	if wait > 0 || err != nil {
		return reconcile.Result{RequeueAfter: wait}, r.told(ctx, binding, s, err)
	}
	err = r.template(ctx, binding, s, sum.items)
	return reconcile.Result{RequeueAfter: s.template.recheck}, r.told(ctx, binding, s, err)
}

// binding writes the status of the binding if it differs and it is time to, and
// returns when to try again otherwise.
func (r *Reconciler) binding(ctx context.Context, binding workv1alpha2.Binding, s *state, sum *summary) (time.Duration, error) {
	now := r.deps.Clock.Now()
	before := s.current(binding)
	same := sameItems(before.AggregatedStatus, sum.items)
	condition := fullyAppliedCondition(sum.fullyApplied, now)
	old := meta.FindStatusCondition(before.Conditions, workv1alpha2.FullyApplied)
	flip := old == nil || old.Status != condition.Status || old.Reason != condition.Reason || old.Message != condition.Message
	key := client.ObjectKeyFromObject(binding)
	if same && !flip {
		s.dirtySince = time.Time{}
		if sum.progress == settled {
			r.waiting.Done(key, now)
		}
		return 0, nil
	}
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	if wait := r.deps.Pace.wait(sum.progress, now, s.dirtySince, s.writtenAt, r.patience(key, sum.progress, now)); wait > 0 {
		return wait, nil
	}
	want := expected(binding.GetSpec())
	s.template.news = s.template.news || complete(want, sum.items) && !complete(want, before.AggregatedStatus)
	change := change{items: sum.items}
	if flip {
		change.condition = &condition
	}
	if err := r.write(ctx, binding, s, change); err != nil {
		return 0, err
	}
	s.dirtySince, s.writtenAt = time.Time{}, now
	r.waiting.Publish(key)
	r.aggregated(binding, !same)
	return 0, nil
}

// patience returns how long the clusters of a binding may take to settle.
func (r *Reconciler) patience(key types.NamespacedName, p progress, now time.Time) time.Duration {
	switch p {
	case unsettled, pending, silent:
		return r.waiting.Wait(key, now, r.deps.Pace.Settle)
	case settled:
		r.waiting.Done(key, now)
	case failed:
		r.waiting.Forget(key)
	}
	return 0
}

// current returns the status as it is in the control plane, as far as is known.
func (s *state) current(binding workv1alpha2.Binding) *workv1alpha2.ResourceBindingStatus {
	if s.written != nil && newer(s.writtenVersion, binding.GetResourceVersion()) {
		return s.written
	}
	s.written = nil
	return binding.GetStatus()
}

func fullyAppliedCondition(yes bool, now time.Time) metav1.Condition {
	c := metav1.Condition{Type: workv1alpha2.FullyApplied, LastTransitionTime: metav1.NewTime(now)}
	if yes {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, workv1alpha2.FullyAppliedSuccessReason, workv1alpha2.FullyAppliedSuccessMessage
	} else {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1alpha2.FullyAppliedFailedReason, workv1alpha2.FullyAppliedFailedMessage
	}
	return c
}

func (r *Reconciler) state(key types.NamespacedName, uid types.UID) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[key]
	if s == nil || s.uid != uid {
		s = &state{uid: uid}
		r.states[key] = s
	}
	return s
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, key)
	r.waiting.Forget(key)
}

// conflict says whether an error is one of a write that came too late.
func conflict(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsConflict(err)
}
