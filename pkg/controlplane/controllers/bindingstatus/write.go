package bindingstatus

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// attempts bounds the tries to write a status that others write too.
const attempts = 5

// change is what is written into the status of a binding.
type change struct {
	items     []workv1alpha2.AggregatedStatusItem
	condition *metav1.Condition // nil: as it is
}

// patch returns the change as a patch of the binding. The list of conditions
// has another writer, so a patch with conditions holds for that version of the
// binding only.
func (c change) patch(binding workv1alpha2.Binding, known *workv1alpha2.ResourceBindingStatus, version string) ([]byte, error) {
	metadata := map[string]any{"uid": binding.GetUID()}
	items := c.items
	if items == nil {
		items = []workv1alpha2.AggregatedStatusItem{}
	}
	status := map[string]any{"aggregatedStatus": items}
	if c.condition != nil {
		conditions := known.DeepCopy().Conditions
		meta.SetStatusCondition(&conditions, *c.condition)
		status["conditions"] = conditions
		metadata["resourceVersion"] = version
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata, "status": status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return data, nil
}

// write patches the status of the binding.
func (r *Reconciler) write(ctx context.Context, binding workv1alpha2.Binding, s *state, c change) error {
	known, version := s.current(binding), binding.GetResourceVersion()
	if s.written != nil {
		version = s.writtenVersion
	}
	for range attempts {
		patch, err := c.patch(binding, known, version)
		if err != nil {
			return err
		}
		out := r.scope.New()
		out.SetNamespace(binding.GetNamespace())
		out.SetName(binding.GetName())
		err = r.client.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, patch))
		if err == nil {
			s.written, s.writtenVersion = out.GetStatus(), out.GetResourceVersion()
			return nil
		}
		if !conflict(err) {
			return client.IgnoreNotFound(wrap(err))
		}
		fresh := r.scope.New()
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(binding), fresh); err != nil {
			return client.IgnoreNotFound(wrap(err))
		}
		if fresh.GetUID() != binding.GetUID() {
			return nil
		}
		known, version = fresh.GetStatus(), fresh.GetResourceVersion()
	}
	return fmt.Errorf("writing the status of the binding: it keeps changing")
}

func wrap(err error) error { return fmt.Errorf("writing the status of the binding: %w", err) }

// newer says whether resource version a is later than b.
func newer(a, b string) bool {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil {
		return order > 0
	}
	return a != b
}
