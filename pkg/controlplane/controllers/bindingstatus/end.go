package bindingstatus

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

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
	r.bindings.backlog.Forget(key)
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
