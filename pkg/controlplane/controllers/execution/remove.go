package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/manifest"
)

// remove takes the objects of a Work that is being deleted out of the member,
// or lets go of them, and then lets go of the Work. The objects of a cluster
// that is not Ready wait for it, unless it is leaving.
func (r *runner) remove(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, s *state) error {
	if s.finalized || !slices.Contains(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer) {
		return nil
	}
	if cluster != nil && !ready(cluster) && cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	if cluster != nil && ready(cluster) {
		if err := r.clear(ctx, cluster, work, s); err != nil {
			return err
		}
	}
	if err := r.finalize(ctx, work); err != nil {
		return err
	}
	s.finalized = true
	r.mu.Lock()
	r.releaseLocked(work.Name, s)
	r.mu.Unlock()
	return nil
}

// clear takes the objects out of the member, or lets go of them.
func (r *runner) clear(ctx context.Context, cluster *clusterv1alpha1.Cluster, work *workv1alpha1.Work, s *state) error {
	if err := r.load(work, s); err != nil {
		r.log.Info("Leaving behind what a work that cannot be read made", "Work", work.Name, "err", err)
		return nil
	}
	member, err := r.c.deps.Members.Member(ctx, cluster)
	if err != nil {
		return fmt.Errorf("opening cluster %s: %w", r.cluster, err)
	}
	r.rebind(member)
	var errs []error
	for _, o := range s.objects {
		mapping, err := member.Mapping(o.gvk)
		if meta.IsNoMatchError(err) {
			continue // the type is gone, and its objects with it
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("finding the resource of %s: %w", o.gvk, err))
			continue
		}
		o.gvr = mapping.Resource
		w := r.writer(member, work, s, o)
		if ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) {
			err = w.release(ctx)
		} else {
			err = w.delete(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// delete deletes the object if it belongs to the Work. It is asked for by its
// UID, so that an object that took its place stays.
func (w *writer) delete(ctx context.Context) error {
	for range attempts {
		obj, err := w.get(ctx)
		if err != nil {
			return fmt.Errorf("reading %s %s in cluster %s: %w", w.object.gvk.Kind, w.object.key, w.r.cluster, err)
		}
		if obj == nil || !w.owned(obj) || obj.GetDeletionTimestamp() != nil {
			return nil
		}
		err = w.deleteUID(ctx, obj.GetUID())
		if apierrors.IsConflict(err) {
			continue
		}
		if apierrors.IsNotFound(err) {
			err = nil
		}
		w.r.c.metrics.removed(w.object.gvk, w.r.cluster, err)
		if err != nil {
			return fmt.Errorf("deleting %s %s in cluster %s: %w", w.object.gvk.Kind, w.object.key, w.r.cluster, err)
		}
		return nil
	}
	return fmt.Errorf("deleting %s %s in cluster %s: it keeps changing", w.object.gvk.Kind, w.object.key, w.r.cluster)
}

func (w *writer) deleteUID(ctx context.Context, uid types.UID) error {
	ctx, cancel := w.r.bounded(ctx)
	defer cancel()

	return w.resource.Delete(ctx, w.object.key.Name, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		Preconditions:     &metav1.Preconditions{UID: &uid},
	})
}

// release takes the marks of the control plane off the object, which stays.
func (w *writer) release(ctx context.Context) error {
	for range attempts {
		obj, err := w.get(ctx)
		if err != nil {
			return fmt.Errorf("reading %s %s in cluster %s: %w", w.object.gvk.Kind, w.object.key, w.r.cluster, err)
		}
		if obj == nil || !w.owned(obj) || !manifest.StripOwnership(obj) {
			return nil
		}
		err = w.put(ctx, obj)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("releasing %s %s in cluster %s: %w", w.object.gvk.Kind, w.object.key, w.r.cluster, err)
		}
		return nil
	}
	return fmt.Errorf("releasing %s %s in cluster %s: it keeps changing", w.object.gvk.Kind, w.object.key, w.r.cluster)
}

// finalize lets the Work go. Its finalizers may have changed since it was read,
// so the patch holds for that version only.
func (r *runner) finalize(ctx context.Context, work *workv1alpha1.Work) error {
	finalizers, version := work.Finalizers, work.ResourceVersion
	for range attempts {
		left := make([]string, 0, len(finalizers))
		for _, f := range finalizers {
			if f != workv1alpha2.ExecutionControllerFinalizer {
				left = append(left, f)
			}
		}
		err := r.writeFinalizers(ctx, work, version, left)
		if !apierrors.IsConflict(err) {
			if err = client.IgnoreNotFound(err); err != nil {
				return fmt.Errorf("removing the finalizer of work %s/%s: %w", work.Namespace, work.Name, err)
			}
			return nil
		}
		fresh := &workv1alpha1.Work{}
		if err := r.c.live.Get(ctx, client.ObjectKeyFromObject(work), fresh); err != nil {
			return client.IgnoreNotFound(err)
		}
		if fresh.UID != work.UID {
			return nil
		}
		work, finalizers, version = fresh, fresh.Finalizers, fresh.ResourceVersion
	}
	return fmt.Errorf("removing the finalizer of work %s/%s: it keeps changing", work.Namespace, work.Name)
}

// writeFinalizers sets the finalizers of a version of a Work. Agents that were
// registered by other tools may update Works, but not patch them.
func (r *runner) writeFinalizers(ctx context.Context, work *workv1alpha1.Work, version string, finalizers []string) error {
	if !r.c.mayNotPatch.Load() {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": work.UID, "resourceVersion": version, "finalizers": finalizers}})
		if err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		key := metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}
		err = r.c.client.Patch(ctx, &workv1alpha1.Work{ObjectMeta: key}, client.RawPatch(types.MergePatchType, patch))
		if !apierrors.IsForbidden(err) {
			return err
		}
		r.c.mayNotPatch.Store(true)
	}
	whole := work.DeepCopy()
	whole.ResourceVersion, whole.Finalizers = version, finalizers
	return r.c.client.Update(ctx, whole)
}
