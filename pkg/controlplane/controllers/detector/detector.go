// Package detector finds the policy of each template, writes the claim on the
// template, and makes the binding that says what the policy wants.
package detector

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// Component is the source of the events.
const Component = "resource-detector"

// Interpreter answers what the detector asks about a template. It only reads the
// objects it gets.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	GetReplicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	GetComponents(obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)
}

// Gates are the feature gates that the detector knows.
type Gates struct {
	// Preemption is PropagationPolicyPreemption.
	Preemption bool
	// Priority is PriorityBasedScheduling.
	Priority bool
	// Components is MultiplePodTemplatesScheduling.
	Components bool
	// WorkloadAffinity is the gate of that name.
	WorkloadAffinity bool
	// Quota is ResourceQuotaEstimate.
	Quota bool
}

// Deps is what the detector needs beside a manager.
type Deps struct {
	Store       *templates.Store
	Interpreter Interpreter
	Gates       Gates
	// TemplateSyncs, PolicySyncs and ClusterPolicySyncs are the numbers of workers;
	// 0 means the defaults 5, 1 and 1.
	TemplateSyncs, PolicySyncs, ClusterPolicySyncs int
	// Retry bounds the delay between attempts.
	Retry controllers.Retry
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Registerer takes the metrics; nil means the one of controller-runtime.
	Registerer prometheus.Registerer
}

// detector is what both reconcilers share.
type detector struct {
	client      client.Client
	live        client.Reader
	store       *templates.Store
	interpreter Interpreter
	events      *events.Recorder
	gates       Gates
	waiting     *waiting
	unmatched   *unmatched
	held        *heldReports
	// started is when this process began to work.
	started  time.Time
	records  *records
	queue    *queue
	measures *measures
}

// Setup adds the detector to the manager.
func Setup(ctx context.Context, mgr manager.Manager, d Deps) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	det := newDetector(mgr.GetClient(), mgr.GetAPIReader(), d, events.ForManager(mgr, Component, d.Events))
	c, err := controller.NewTyped(Component, mgr, controller.TypedOptions[templateKey]{
		MaxConcurrentReconciles: controllers.Workers(d.TemplateSyncs, 5),
		Reconciler:              &templateReconciler{detector: det},
		RateLimiter:             controllers.RateLimiter[templateKey](d.Retry),
	})
	if err != nil {
		return fmt.Errorf("adding the detector: %w", err)
	}
	if err := c.Watch(templateSource{det}); err != nil {
		return fmt.Errorf("watching templates: %w", err)
	}
	for _, s := range scope.Policies() {
		if err := setupPolicies(mgr, det, s, d); err != nil {
			return err
		}
	}
	return nil
}

func newDetector(c client.Client, live client.Reader, d Deps, recorder *events.Recorder) *detector {
	if d.Registerer == nil {
		d.Registerer = metrics.Registry
	}
	m := newMeasures(d.Registerer, clock.RealClock{})
	return &detector{
		measures: m, started: m.clock.Now(),
		client: c, live: live, store: d.Store, interpreter: d.Interpreter, events: recorder, gates: d.Gates,
		waiting: newWaiting(), unmatched: newUnmatched(), held: newHeldReports(), records: newRecords(), queue: newQueue(),
	}
}
