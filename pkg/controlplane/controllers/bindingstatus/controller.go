// Package bindingstatus aggregates what the Works of a binding report, and writes
// it into the status of the binding and of its template: with one controller for
// both scopes, and one write to each of the two objects when there is a difference
// and the clusters have had time to become stable.
package bindingstatus

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// workers is high because bindings wait for the API server most of the time.
const workers = 8

// Templates reads templates, from a cache or else from the API server. The objects
// are shared and read-only.
type Templates interface {
	Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
}

// Options are the options of the controllers.
type Options struct {
	Templates Templates
	// TemplateConditions adds the conditions that clients of Kubernetes wait for to
	// the status of templates.
	TemplateConditions bool
	// EndEvictions is set if the eviction tasks of bindings end in this process: those of
	// workloads that are healthy elsewhere with the status of that, others by the controller
	// of graceful evictions. Clusters whose tasks are about to end are not reported.
	EndEvictions bool
	// Policy delays the status of bindings that are about to change. Default: DefaultPolicy().
	Policy Policy
}

// reconciler writes the status of the bindings of one scope and of their templates.
type reconciler struct {
	scope     *scope.Binding
	env       *env.Env
	options   Options
	client    client.Client
	events    *events.Recorder
	bindings  *bindings
	templates *aggregator
	states    *status.Memory[types.NamespacedName, *state]
}

// state is the state of one binding and its template.
type state struct {
	uid types.UID
	// summarized is when the Works were last summarized.
	summarized time.Time

	binding  bindingState
	template templateState
	// resource is the template if its status has been aggregated.
	resource *workv1alpha2.ObjectReference
}

func newReconciler(e *env.Env, s *scope.Binding, recorder record.EventRecorder, o Options) *reconciler {
	r := events.New(recorder).WithMode(e.Events)
	return &reconciler{
		scope: s, env: e, options: o, client: e.Client, events: r,
		bindings: newBindings(e, o), templates: newAggregator(e, r, o),
		states: status.NewMemory[types.NamespacedName, *state](0),
	}
}

// Setup adds the controllers of both scopes to the manager.
func Setup(ctx context.Context, e *env.Env, o Options) error {
	for _, s := range scope.Bindings() {
		if err := e.Index(ctx, &workv1alpha1.Work{}, indexName(s), indexer(s)); err != nil {
			return err
		}
		r := newReconciler(e, s, e.Manager.GetEventRecorderFor(s.StatusController), o)
		if o.EndEvictions {
			r.bindings.evictions = &evictions{e.Client, e.Recorder(eviction.GracefulController(s))}
		}
		if err := r.register(e.Manager, controllers.Options(workers, workers, controllers.Retry{})); err != nil {
			return err
		}
	}
	return nil
}

// Reconcile writes the status of one binding and of its template.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	binding := r.scope.New()
	err := r.client.Get(ctx, req.NamespacedName, binding, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("reading the binding: %w", err)
	}
	if err != nil || binding.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, r.end(ctx, req.NamespacedName, binding)
	}
	if s, ok := r.states.Get(req.NamespacedName); ok && s.uid != binding.GetUID() {
		if err := r.reset(ctx, req.NamespacedName, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	id := r.scope.ID(binding)
	if id == "" {
		return reconcile.Result{}, nil
	}
	s, now := r.state(req.NamespacedName, binding.GetUID()), r.env.Clock.Now()
	if next := s.summarized.Add(r.bindings.policy.spacing(len(binding.GetSpec().Clusters))); next.After(now) {
		return reconcile.Result{RequeueAfter: next.Sub(now)}, nil // other Works may change until then
	}
	s.summarized = now
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.MatchingFields{indexName(r.scope): id}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the works: %w", err)
	}
	sum := r.summarize(binding, works.Items)
	if sum.progress == unreported && meta.FindStatusCondition(r.bindings.current(binding, &s.binding).Conditions, workv1alpha2.FullyApplied) == nil {
		return reconcile.Result{}, nil // there has never been anything to aggregate
	}
	again, err := r.write(ctx, binding, s, &sum)
	switch {
	case err == nil:
		publishRecovered(r.events, binding)
	case ctx.Err() == nil:
		publishFailed(r.events, binding, err)
	}
	return controllers.After(again, err)
}

func (r *reconciler) summarize(binding workv1alpha2.Binding, works []workv1alpha1.Work) summary {
	if r.options.EndEvictions && len(binding.GetSpec().GracefulEvictionTasks) > 0 {
		return summarizeEviction(binding, works)
	}
	return summarize(binding.GetSpec(), works)
}

// write writes the two statuses if they differ, and returns when to reconcile the
// binding again; 0 for not before something changes.
func (r *reconciler) write(ctx context.Context, binding workv1alpha2.Binding, s *state, sum *summary) (time.Duration, error) {
	done, err := r.bindings.write(ctx, binding, &s.binding, sum)
	if err != nil || done.delay > 0 {
		return done.delay, err
	}
	if done.wrote && done.items {
		publishWritten(r.events, binding)
	}
	s.template.announce = s.template.announce || done.completed
	s.template.recheck = 0
	if len(sum.items) > 0 || hadItems(binding.GetStatus()) || hadItems(r.bindings.current(binding, &s.binding)) {
		ref := binding.GetSpec().Resource
		s.resource = &ref
		err = r.templates.write(ctx, binding, &s.template, sum.items)
	}
	now := r.env.Clock.Now()
	return controllers.Earliest(s.template.recheck, s.binding.written.Pending(now), s.template.written.Pending(now)), err
}

// hadItems reports whether a status has or had items, see writtenFields.
func hadItems(s *workv1alpha2.ResourceBindingStatus) bool { return s.AggregatedStatus != nil }

// state returns the state of a binding. A binding with another UID has a new one.
func (r *reconciler) state(key types.NamespacedName, uid types.UID) *state {
	var out *state
	r.states.Update(key, func(s *state, _ bool) (*state, bool) {
		if s == nil || s.uid != uid {
			s = &state{uid: uid}
		}
		out = s
		return s, true
	})
	return out
}
