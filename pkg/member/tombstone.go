package member

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// Keys of the ConfigMap that remembers a cluster that was abandoned.
const (
	// TombstoneID is the id of the cluster.
	TombstoneID = "clusterID"
	// TombstoneAbandoned is when it was abandoned, RFC 3339.
	TombstoneAbandoned = "abandonedAt"
	// TombstoneCleaned is when its agent had cleaned up, RFC 3339.
	TombstoneCleaned = "cleanedAt"
	// TombstoneCount is the number of objects that were left in the member.
	TombstoneCount = "objectCount"
	// TombstoneObjects, in binaryData, are these objects: a list of Left, as JSON,
	// compressed with gzip.
	TombstoneObjects = "objects.json.gz"
)

// inventoryLimit is how long the list of what an abandoned member has may be.
const inventoryLimit = 256 << 20

// recordAbandoned remembers a cluster that is abandoned, and what it has, and lets its agent
// read that.
func recordAbandoned(ctx context.Context, d Deps, r UnjoinRequest, cluster *clusterv1alpha1.Cluster, left leftovers) error {
	packed, err := pack(left)
	if err != nil {
		return err
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: names.Tombstone(r.Name), Labels: systemLabels()},
		Data: map[string]string{
			TombstoneID: cluster.Spec.ID, TombstoneAbandoned: r.At.UTC().Format(time.RFC3339), TombstoneCount: strconv.Itoa(len(left)),
		},
		BinaryData: map[string][]byte{TombstoneObjects: packed},
	}
	j := &journal{client: d.ControlPlane}
	if err := ensureNamespace(ctx, j, want.Namespace, d.Report); err != nil {
		return err
	}
	objects := []client.Object{want}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		objects = append(objects, registration.TombstoneRBAC(r.Name)...)
	}
	for _, obj := range objects {
		if err := put(ctx, j, obj); err != nil {
			return fmt.Errorf("remembering that cluster %q is abandoned: %w", r.Name, err)
		}
	}
	return nil
}

// removeRecord removes what recordAbandoned made, for a cluster that joins in Push mode under its
// earlier name. What that membership left in it is found by the control plane. The
// record of another cluster of the name stays for the agent of that one.
func removeRecord(ctx context.Context, d Deps, cluster, id string) error {
	tombstone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: names.Tombstone(cluster)}}
	err := d.ControlPlane.Get(ctx, client.ObjectKeyFromObject(tombstone), tombstone)
	if apierrors.IsNotFound(err) || err == nil && tombstone.Data[TombstoneID] != id {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading whether cluster %q was abandoned: %w", cluster, err)
	}
	for _, obj := range append([]client.Object{tombstone}, registration.TombstoneRBAC(cluster)...) {
		if err := d.ControlPlane.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the record that cluster %q was abandoned: %w", cluster, err)
		}
	}
	if count := tombstone.Data[TombstoneCount]; count != "" && count != "0" {
		d.Report.say("cluster %q was a member before and was abandoned with %s objects; those that get no work again are reported by its condition %s",
			cluster, count, clusterv1alpha1.ClusterConditionOrphanedObjects)
	}
	return nil
}

func pack(left leftovers) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(left); err != nil {
		return nil, fmt.Errorf("encoding what is left in the member: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("encoding what is left in the member: %w", err)
	}
	return b.Bytes(), nil
}

func unpack(data []byte) (leftovers, error) {
	var left leftovers
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, inventoryLimit)).Decode(&left)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is left in the member: %w", err)
	}
	return left, nil
}

// CleanAbandoned is for the agent of a cluster that may have been abandoned while
// it was away. If so, it deletes from the member what the control plane had put
// there and reports that; found reports whether there was anything to do. The client
// of the member must know all its kinds. occupant returns what a namespace has beside that, for which it stays, or "".
func CleanAbandoned(ctx context.Context, controlPlane, member client.Client, cluster, id string, now time.Time, occupant func(ctx context.Context, namespace string) (string, error)) (found bool, err error) {
	tombstone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: names.Tombstone(cluster)}}
	err = controlPlane.Get(ctx, client.ObjectKeyFromObject(tombstone), tombstone)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking whether cluster %q was abandoned: %w", cluster, err)
	case tombstone.Data[TombstoneCleaned] != "":
		return false, nil
	case tombstone.Data[TombstoneID] != id:
		return false, nil // another cluster of that name was
	}
	left, err := unpack(tombstone.BinaryData[TombstoneObjects])
	if err != nil {
		return true, err
	}
	var errs []error
	for _, namespaces := range []bool{false, true} { // after what is in them
		for _, one := range left {
			if (one.Kind == "Namespace") == namespaces {
				errs = append(errs, cleanLeft(ctx, member, cluster, one, occupant))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return true, err
	}
	cleaned := func() { tombstone.Data[TombstoneCleaned] = now.UTC().Format(time.RFC3339) }
	if err := patch.Change(ctx, controlPlane, tombstone, cleaned); err != nil {
		return true, fmt.Errorf("reporting that cluster %q is cleaned up: %w", cluster, err)
	}
	return true, nil
}

// cleanLeft deletes one object, if it is still the one that came with the Work.
func cleanLeft(ctx context.Context, member client.Client, cluster string, l Left, occupant func(context.Context, string) (string, error)) error {
	obj := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: l.APIVersion, Kind: l.Kind}}
	err := member.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: l.Name}, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", l, err)
	}
	annotations := obj.GetAnnotations()
	if annotations[workv1alpha2.WorkNameAnnotation] != l.Work || annotations[workv1alpha2.WorkNamespaceAnnotation] != names.ExecutionNamespace(cluster) {
		return nil
	}
	if l.Kind == "Namespace" {
		if in, err := occupant(ctx, l.Name); err != nil || in != "" {
			return err
		}
	}
	err = member.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: new(obj.GetUID())})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s: %w", l, err)
	}
	return nil
}
