package bindingstatus

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/conditions"
)

// templateState is the state of the status of one template.
type templateState struct {
	written status.Written[*templateStatus]
	// announce is set while the event that the template is complete is due.
	announce bool
	// recheck is the time until the conditions of the template change without a change of its status; 0 for never.
	recheck time.Duration
	// excluded are the statuses that are left out of the aggregated one.
	excluded exclusions
}

// templateStatus is the status of a template: a value of JSON, which is replaced as a whole.
type templateStatus struct{ Value any }

// DeepCopy implements status.Status.
func (s *templateStatus) DeepCopy() *templateStatus { return &templateStatus{s.Value} }

func statusOf(obj *unstructured.Unstructured) *templateStatus {
	return &templateStatus{obj.Object["status"]}
}

// withStatus returns a copy of an object that has another status and shares all else.
func withStatus(obj *unstructured.Unstructured, s *templateStatus) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: make(map[string]any, len(obj.Object)+1)}
	maps.Copy(out.Object, obj.Object)
	out.Object["status"] = s.Value
	return out
}

// aggregator aggregates the status of templates from those of the clusters.
type aggregator struct {
	env     *env.Env
	options Options
	events  *events.Recorder
	writer  *status.Writer[*unstructured.Unstructured, *templateStatus]
}

func newAggregator(e *env.Env, recorder *events.Recorder, o Options) *aggregator {
	return &aggregator{env: e, options: o, events: recorder, writer: status.NewWriter(status.Options[*unstructured.Unstructured, *templateStatus]{
		Get: statusOf,
		Fields: func(s *templateStatus) any {
			if s.Value == nil {
				return map[string]any{}
			}
			return s.Value
		},
		Client: e.Client, Live: e.Live, Clock: e.Clock,
	})}
}

// write writes the status of the template of a binding if there is a rule for its kind and it differs.
func (a *aggregator) write(ctx context.Context, binding workv1alpha2.Binding, s *templateState, items []workv1alpha2.AggregatedStatusItem) error {
	ref := binding.GetSpec().Resource
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if !a.aggregates(binding.GetNamespace(), &ref, gvk) {
		return nil
	}
	if err := a.synced(ctx); err != nil {
		return err
	}
	template, err := a.options.Templates.Get(ctx, gvk, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) || err == nil && ref.UID != "" && template.GetUID() != ref.UID {
		return nil
	}
	if err == nil && len(items) == 0 && template.GetDeletionTimestamp() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	run := aggregation{aggregator: a, binding: binding, template: withStatus(template, a.writer.Current(template, &s.written)), cached: template, state: s}
	wrote, err := run.write(ctx, items)
	if err != nil {
		return err
	}
	if s.announce || a.events.All() && wrote {
		s.announce = false
		publishAggregated(a.events, template)
	}
	return nil
}

// aggregates reports whether the status of a template is written for a binding in a namespace: there must be a rule for
// its kind, and nothing outside of the namespace of a binding that a user created may change by it.
func (a *aggregator) aggregates(namespace string, ref *workv1alpha2.ObjectReference, gvk schema.GroupVersionKind) bool {
	if namespace != "" && (ref.Namespace != namespace || delivery.Check(namespace, ref) != nil) {
		return false
	}
	return a.env.Interpreter.HookEnabled(gvk, configv1alpha1.InterpreterOperationAggregateStatus)
}

// synced waits until the templates have been listed: after a start they would be read one by one.
func (a *aggregator) synced(ctx context.Context) error {
	if templates, ok := a.options.Templates.(interface{ WaitForSync(context.Context) error }); ok {
		return templates.WaitForSync(ctx)
	}
	return nil
}

// aggregation is one computation of the status of a template.
type aggregation struct {
	aggregator *aggregator
	binding    workv1alpha2.Binding
	// template has the current status, cached the one that the cache shows.
	template, cached *unstructured.Unstructured
	state            *templateState
}

// write writes the status that the template gets from items, without those of clusters that make it impossible, and
// reports whether it wrote.
func (a *aggregation) write(ctx context.Context, items []workv1alpha2.AggregatedStatusItem) (bool, error) {
	items = a.state.excluded.apply(items, a.aggregator.env.Clock.Now())
	for {
		after, err := a.compute(items)
		if err == nil {
			var wrote bool
			if wrote, err = a.store(ctx, after); !rejected(err) {
				return wrote, err
			}
		}
		// Each time there are fewer.
		if items, err = a.excludeFailing(ctx, items, err, after != nil); err != nil {
			return false, err
		}
	}
}

func (a *aggregation) store(ctx context.Context, after *templateStatus) (bool, error) {
	wrote, err := a.aggregator.writer.Write(ctx, a.cached, &a.state.written, after.replace)
	if wrote && err == nil {
		publishReplicaFailure(a.aggregator.events, a.template, withStatus(a.template, after))
	}
	return wrote, err
}

// replace replaces another status by this one.
func (s *templateStatus) replace(other *templateStatus) { other.Value = s.Value }

// compute returns the status that the template gets from items.
func (a *aggregation) compute(items []workv1alpha2.AggregatedStatusItem) (*templateStatus, error) {
	e := a.aggregator.env
	a.state.recheck = 0
	wanted, err := e.Interpreter.AggregateStatus(a.template.DeepCopy(), items)
	if err != nil {
		return nil, fmt.Errorf("aggregating the status: %w", err)
	}
	if a.aggregator.options.TemplateConditions {
		result, err := conditions.Apply(conditions.Input{
			Template: a.template, Aggregated: wanted, Items: items, Targets: targets(a.binding.GetSpec()), Now: e.Clock.Now(),
		})
		if err != nil {
			return nil, fmt.Errorf("aggregating the status: %w", err)
		}
		a.state.recheck, wanted = result.Recheck, result.Template
	}
	if wanted == nil {
		return &templateStatus{}, nil
	}
	return statusOf(wanted), nil
}

// excludeFailing returns items without the statuses because of which the status cannot be computed, or is rejected by the API server, and
// publishes which: one cluster must not hide the status of the others. It returns cause when there is no such status.
func (a *aggregation) excludeFailing(ctx context.Context, items []workv1alpha2.AggregatedStatusItem, cause error, rejected bool) ([]workv1alpha2.AggregatedStatusItem, error) {
	clock := a.aggregator.env.Clock
	start := clock.Now()
	try := func(items []workv1alpha2.AggregatedStatusItem) error {
		after, err := a.compute(items)
		if err == nil && rejected {
			err = a.aggregator.writer.DryRun(ctx, a.cached, &a.state.written, after.replace)
		}
		return err
	}
	kept, reasons, err := exclude(items, try, func() error {
		if clock.Since(start) > excludeLimit {
			return errUnclear
		}
		return ctx.Err()
	})
	if err != nil || len(reasons) == 0 {
		return nil, cause
	}
	for i := range items {
		if reason, ok := reasons[items[i].ClusterName]; ok {
			a.state.excluded.add(&items[i], start)
			publishExcluded(a.aggregator.events, a.binding, a.template, items[i].ClusterName, reason)
		}
	}
	return kept, nil
}
