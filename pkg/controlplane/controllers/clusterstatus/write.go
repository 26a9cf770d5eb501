package clusterstatus

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// attempts bounds the tries to write a status that others write too.
const attempts = 5

// statusPatch returns the patch from one status to another, or nil if they mean
// the same. Conditions have several writers, so the patch holds for that version
// only.
func statusPatch(version string, before, after *clusterv1alpha1.ClusterStatus) ([]byte, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	from, err := json.Marshal(map[string]any{"status": before})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	to, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}, "status": after})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("comparing the status: %w", err)
	}
	return patch, nil
}

// send writes the status. Whoever may not patch may still update: agents that
// were registered by other tools have that right only.
func (l *collector) send(ctx context.Context, cluster *clusterv1alpha1.Cluster, after *clusterv1alpha1.ClusterStatus, version string, patch []byte) (*clusterv1alpha1.Cluster, error) {
	out := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name}}
	if !l.c.mayNotPatch.Load() {
		err := l.c.client.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, patch))
		if !apierrors.IsForbidden(err) {
			return out, err
		}
		l.c.mayNotPatch.Store(true)
	}
	out = cluster.DeepCopy()
	out.ResourceVersion, out.Status = version, *after
	return out, l.c.client.Status().Update(ctx, out)
}

// newer says whether resource version a is later than b.
func newer(a, b string) bool {
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil {
		return order > 0
	}
	return a != b
}
