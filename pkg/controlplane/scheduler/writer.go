package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// attempts limits the writes of one binding that conflict with those of others.
const attempts = 5

// writer writes bindings, and records what the API server returns.
type writer struct {
	client   client.Client
	live     client.Reader
	statuses *delivery.StatusWriter
	bindings *bindings
}

// refresh reads the binding from the API server.
func (w *writer) refresh(ctx context.Context, b known) (known, error) {
	fresh := b.scope.New()
	if err := w.live.Get(ctx, types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}, fresh); err != nil {
		return b, fmt.Errorf("reading %s: %w", core.Ref(b), err)
	}
	return w.bindings.record(b.scope, fresh), nil
}

// removeTargets removes clusters from the targets, and changes nothing else.
func (w *writer) removeTargets(ctx context.Context, b known, clusters []string) error {
	left := slices.DeleteFunc(slices.Clone(b.GetSpec().Clusters), func(t workv1alpha2.TargetCluster) bool {
		return slices.Contains(clusters, t.Name)
	})
	body := map[string]any{
		"metadata": map[string]any{"resourceVersion": b.GetResourceVersion()},
		"spec":     targetsPatch(left),
	}
	_, err := w.patch(ctx, b, body)
	return err
}

// targetsPatch returns the part of a patch that sets the targets.
func targetsPatch(targets []workv1alpha2.TargetCluster) map[string]any {
	if len(targets) == 0 {
		return map[string]any{"clusters": nil}
	}
	return map[string]any{"clusters": targets}
}

// targets writes the targets, if they are not there already, and the placement that they come from to this version of the
// binding. With evicted it also writes the eviction tasks, and the targets of b are not those that are stored. It reports
// whether the targets are others than before.
func (w *writer) targets(ctx context.Context, b known, targets []workv1alpha2.TargetCluster, evicted bool) (known, bool, error) {
	applied, err := json.Marshal(b.GetSpec().Placement)
	if err != nil {
		return b, false, fmt.Errorf("encoding the placement of %s: %w", core.Ref(b), err)
	}
	metadata := map[string]any{"resourceVersion": b.GetResourceVersion()}
	body := map[string]any{"metadata": metadata}
	if b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation] != string(applied) {
		metadata["annotations"] = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: string(applied)}
	}
	changed := evicted || !scope.SameTargets(b.GetSpec().Clusters, targets)
	if changed {
		spec := targetsPatch(targets)
		if evicted {
			spec["gracefulEvictionTasks"] = b.GetSpec().GracefulEvictionTasks
		}
		body["spec"] = spec
	}
	if !changed && len(metadata) == 1 {
		return b, false, nil
	}
	updated, err := w.patch(ctx, b, body)
	return updated, changed, err
}

// create creates a binding with targets, and with the placement that they come from. After an error the binding is as it was. The result
// is another object than b, which is that of the caller.
func (w *writer) create(ctx context.Context, b known, targets []workv1alpha2.TargetCluster) (known, error) {
	applied, err := json.Marshal(b.GetSpec().Placement)
	if err != nil {
		return b, fmt.Errorf("encoding the placement of %s: %w", core.Ref(b), err)
	}
	before, annotations := b.GetSpec().Clusters, b.GetAnnotations()
	b.GetSpec().Clusters = targets
	b.SetAnnotations(labels.Merge(annotations, map[string]string{policyv1alpha1.AppliedPlacementAnnotation: string(applied)}))
	if err := w.client.Create(ctx, b.Binding); err != nil {
		b.GetSpec().Clusters = before
		b.SetAnnotations(annotations)
		return b, err
	}
	b.Binding = b.DeepCopyObject().(workv1alpha2.Binding)
	return b, nil
}

// patch sends a merge patch of the binding and records the result, whose event does not enqueue the binding.
func (w *writer) patch(ctx context.Context, b known, body map[string]any) (known, error) {
	updated := b.scope.New()
	updated.SetNamespace(b.GetNamespace())
	updated.SetName(b.GetName())
	if err := w.client.Patch(ctx, updated, patch.Merge(body)); err != nil {
		return b, err
	}
	w.bindings.wrote(keyOf(updated), updated.GetResourceVersion())
	return w.bindings.record(b.scope, updated), nil
}

// status changes the status, with one patch of what differs, or none. If others write the binding meanwhile it starts again from what they
// wrote: the conditions are a list that is not the scheduler's alone.
func (w *writer) status(ctx context.Context, b known, change func(*workv1alpha2.ResourceBindingStatus)) (known, error) {
	updated, wrote, conflicted, err := w.statuses.Store(ctx, b.Binding, change)
	if err != nil || !wrote {
		return b, err
	}
	if !conflicted { // what was decided on another version is to be decided again
		w.bindings.wrote(keyOf(updated), updated.GetResourceVersion())
	}
	return w.bindings.record(b.scope, updated), nil
}
