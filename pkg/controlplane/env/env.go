// Package env holds what the controllers of the control plane share, with its defaults.
package env

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Env is what controllers share. What the comment of a field does not give a default for is set by the role that needs it.
type Env struct {
	Manager manager.Manager
	// Client reads from the cache of the manager, Live from the API server.
	Client client.Client
	Live   client.Reader
	// Clock is the real clock by default.
	Clock clock.WithTicker
	// Metrics registers metrics. Default: the registry of controller-runtime.
	Metrics prometheus.Registerer
	// Retry bounds the delay after failures.
	Retry controllers.Retry
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Gates are the feature gates. Default: all are off.
	Gates *gates.Gates
	Syncs

	Store       *templates.Store
	Interpreter Interpreter
	Members     access.Members
	// Scheduler schedules bindings in the same process. Default: none.
	Scheduler Scheduler
}

// Scheduler schedules bindings that controllers create or evict, with one write of the binding instead of two. Each method reports whether it
// wrote the binding; if it did not, the caller does, and the scheduler handles it as any other.
type Scheduler interface {
	// Create creates a binding with its targets. The error is that of a binding which exists already.
	Create(ctx context.Context, s *scope.Binding, b workv1alpha2.Binding) (bool, error)
	// Evict writes a spec that lacks targets and has tasks for them, together with new targets.
	Evict(ctx context.Context, s *scope.Binding, b workv1alpha2.Binding, spec *workv1alpha2.ResourceBindingSpec) (bool, error)
}

// Interpreter interprets templates.
type Interpreter interface {
	propagation.Interpreter
	GetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
	AggregateStatus(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
}

// Syncs are the numbers of objects of each kind that are reconciled at a time. Each controller has a default.
type Syncs struct {
	ClusterSyncs, WorkSyncs, BindingSyncs, ClusterBindingSyncs, TemplateSyncs int
	NamespaceSyncs, PolicySyncs, ClusterPolicySyncs, DependentSyncs           int
}

// New returns an Env with the defaults.
func New(mgr manager.Manager) *Env {
	return &Env{Manager: mgr, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Metrics: metrics.Registry}
}

// Recorder returns a recorder of the events of a source.
func (e *Env) Recorder(source string) *events.Recorder {
	return events.ForManager(e.Manager, source, e.Events)
}

// Works returns a writer of Works.
func (e *Env) Works() *works.Writer { return works.NewWriter(e.Client, e.Live) }

// Index adds an index to the cache of the manager.
func (e *Env) Index(ctx context.Context, obj client.Object, name string, values client.IndexerFunc) error {
	if err := e.Manager.GetFieldIndexer().IndexField(ctx, obj, name, values); err != nil {
		return fmt.Errorf("adding the index %s: %w", name, err)
	}
	return nil
}

// Options returns the options of a controller with a number of workers, or the default if it is 0.
func (e *Env) Options(workers, byDefault int) controller.Options {
	return controllers.Options(workers, byDefault, e.Retry)
}

// Controller returns the builder of a controller with such options.
func (e *Env) Controller(name string, workers, byDefault int) *builder.Builder {
	return builder.ControllerManagedBy(e.Manager).Named(name).WithOptions(e.Options(workers, byDefault))
}
