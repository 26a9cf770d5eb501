package bindingstatus

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	evictionevents "github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

// evictions ends the eviction tasks of bindings together with the status that lets them end: the controller of graceful
// evictions would end them after it, and the scheduler would confirm that with a third write.
type evictions struct {
	client client.Client
	events *events.Recorder
}

// end ends the tasks of a binding whose workload is healthy in all of its clusters by the items of a status. It returns
// the binding as it is stored then, and the generation that needs no scheduling; 0 if the scheduler decides. It returns
// the binding unchanged if no task ends or others wrote the binding.
func (e *evictions) end(ctx context.Context, binding workv1alpha2.Binding, facts eviction.GracefulFacts) (workv1alpha2.Binding, int64, error) {
	spec := binding.GetSpec()
	facts.Generation, facts.Spec = binding.GetGeneration(), spec
	verdict := eviction.Graceful(facts)
	if !verdict.Replaced || len(verdict.Ended) == 0 || len(spec.Clusters) == 0 {
		return binding, 0, nil
	}
	after := binding.DeepCopyObject().(workv1alpha2.Binding)
	err := patch.ChangeLocked(ctx, e.client, after, func() { after.GetSpec().GracefulEvictionTasks = verdict.Keep })
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return binding, 0, nil
	case err != nil:
		return binding, 0, fmt.Errorf("ending the evictions: %w", err)
	}
	for _, cluster := range verdict.Ended {
		evictionevents.Succeeded(e.events, after, cluster)
	}
	// No cause to schedule depends on tasks, except for what follows the clusters at once.
	divided := spec.IsWorkload() && spec.Placement.ReplicaSchedulingType() == policyv1alpha1.ReplicaSchedulingTypeDivided
	if !divided || after.GetGeneration() != binding.GetGeneration()+1 {
		return after, 0, nil
	}
	return after, after.GetGeneration(), nil
}

// end resets the status of the template of a binding that is deleted or being deleted,
// and drops the state of the binding.
func (r *reconciler) end(ctx context.Context, key types.NamespacedName, binding workv1alpha2.Binding) error {
	s, ok := r.states.Get(key)
	if !ok {
		// An earlier process aggregated the status.
		s = &state{}
		if hadItems(binding.GetStatus()) {
			ref := binding.GetSpec().Resource
			s.resource = &ref
		}
	}
	if err := r.reset(ctx, key, s); err != nil {
		return err
	}
	r.bindings.debouncer.Forget(key)
	if binding.GetDeletionTimestamp() == nil {
		r.states.Delete(key)
		return nil
	}
	r.states.Set(key, &state{uid: binding.GetUID()}) // nothing is left to reset
	return nil
}

// reset writes into the template of a binding that is gone the status of an object that
// is in no cluster, if a status was aggregated: it does not outlive the binding.
func (r *reconciler) reset(ctx context.Context, key types.NamespacedName, s *state) error {
	if s.resource == nil {
		return nil
	}
	gone := r.scope.New()
	gone.SetNamespace(key.Namespace)
	gone.SetName(key.Name)
	gone.GetSpec().Resource = *s.resource
	s.template.announce = false
	return client.IgnoreNotFound(r.templates.write(ctx, gone, &s.template, nil))
}
