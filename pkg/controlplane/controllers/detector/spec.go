package detector

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/gates"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// wanted is what the detector writes into the spec of a binding.
type wanted struct {
	*propagation.Spec
	// content is the hash of what is propagated of the template.
	content uint64
}

// specBuilder builds the specs of bindings.
type specBuilder struct {
	store       *templates.Store
	interpreter env.Interpreter
	gates       *gates.Gates
	events      *recorder
}

// build returns what the binding of a template contains under a policy.
func (b *specBuilder) build(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy) (*wanted, error) {
	content, err := templates.Hash(obj)
	if err != nil {
		return nil, err
	}
	features := propagation.Features{
		Components: b.gates.Enabled(gates.MultiplePodTemplatesScheduling),
		Quotas:     b.gates.Enabled(gates.ResourceQuotaEstimate),
		Affinity:   b.gates.Enabled(gates.WorkloadAffinity),
	}
	size, err := propagation.SizeOf(obj, b.interpreter, features)
	switch size.By {
	case configv1alpha1.InterpreterOperationInterpretComponent:
		b.events.components(obj, len(size.Components), err)
		if err != nil {
			return nil, fmt.Errorf("getting components: %w", err)
		}
	case configv1alpha1.InterpreterOperationInterpretReplica:
		b.events.replicas(obj, size.Replicas, err)
		if err != nil {
			return nil, fmt.Errorf("getting replicas: %w", err)
		}
	}
	w := &wanted{Spec: propagation.SpecOf(obj, p, size, features), content: content}
	if w.Scope.Priority && b.gates.Enabled(gates.PriorityBasedScheduling) {
		w.Priority, err = b.schedulePriority(ctx, w.Policy.SchedulePriority)
	}
	return w, err
}

// schedulePriority returns the value of the priority class that a policy names.
func (b *specBuilder) schedulePriority(ctx context.Context, sp *policyv1alpha1.SchedulePriority) (*workv1alpha2.SchedulePriority, error) {
	if sp == nil {
		return nil, nil
	}
	if sp.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("priority class source %q is not known", sp.PriorityClassSource)
	}
	gvk := schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	class, err := b.store.Get(ctx, gvk, "", sp.PriorityClassName)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("priority class %q does not exist", sp.PriorityClassName)
	}
	if err != nil {
		return nil, err
	}
	value, _, err := unstructured.NestedInt64(class.Object, "value")
	if err != nil {
		return nil, fmt.Errorf("reading priority class %q: %w", sp.PriorityClassName, err)
	}
	return &workv1alpha2.SchedulePriority{Priority: int32(value)}, nil
}
