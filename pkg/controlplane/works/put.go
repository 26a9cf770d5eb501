package works

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// Get returns a Work as it is stored, as far as is known, or nil if there is none. It is
// shared and read-only.
func (w *Writer) Get(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, error) {
	work, err := w.get(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting work %s: %w", key, err)
	}
	return work, nil
}

// Put creates a Work, or patches what differs from existing, which Get returned. It changes
// next. A Work that is being deleted is an error.
func (w *Writer) Put(ctx context.Context, existing, next *workv1alpha1.Work) (Result, error) {
	key := client.ObjectKeyFromObject(next)
	if existing == nil {
		if err := identify(next); err != nil {
			return Unchanged, err
		}
		if err := w.client.Create(ctx, next); err != nil {
			return Unchanged, fmt.Errorf("creating work %s: %w", key, err)
		}
		w.recent.Set(key, next.Generation)
		return Created, nil
	}
	if existing.DeletionTimestamp != nil {
		return Unchanged, fmt.Errorf("work %s is being deleted", key)
	}
	return w.write(ctx, existing, next)
}

// write patches what differs between two versions of a Work.
func (w *Writer) write(ctx context.Context, existing, next *workv1alpha1.Work) (Result, error) {
	if same(existing, next) {
		return Unchanged, nil
	}
	stored, wrote, err := patch.Write(ctx, w.client, existing, next)
	if err != nil || !wrote {
		return Unchanged, sized(err)
	}
	w.recent.Set(client.ObjectKeyFromObject(stored), stored.Generation)
	return Updated, nil
}

// Delete deletes a Work unless that was requested already.
func (w *Writer) Delete(ctx context.Context, work *workv1alpha1.Work) error {
	if work.DeletionTimestamp != nil {
		return nil
	}
	target := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	err := w.client.Delete(ctx, target, client.Preconditions{UID: &work.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// identify gives a new Work and its manifests the id that admission would give them.
func identify(work *workv1alpha1.Work) error {
	if work.Labels[workv1alpha2.WorkPermanentIDLabel] != "" {
		return nil
	}
	id := uuid.NewString()
	metav1.SetMetaDataLabel(&work.ObjectMeta, workv1alpha2.WorkPermanentIDLabel, id)
	for i := range work.Spec.Workload.Manifests {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(work.Spec.Workload.Manifests[i].Raw); err != nil {
			return fmt.Errorf("decoding the manifest of work %s/%s: %w", work.Namespace, work.Name, err)
		}
		manifest.Bookkeep(obj, id)
		raw, err := obj.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encoding the manifest of work %s/%s: %w", work.Namespace, work.Name, err)
		}
		work.Spec.Workload.Manifests[i].Raw = raw
	}
	return nil
}
