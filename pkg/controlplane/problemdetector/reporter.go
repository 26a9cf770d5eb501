package problemdetector

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// reporter writes what the nodes report as a condition of the Cluster.
type reporter struct {
	cluster string
	stale   time.Duration
	nodes   client.Reader
	plane   client.Client
	clock   clock.WithTicker
}

// mapper maps the only kind of the control plane that the detector uses, without discovery requests.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	return m
}

// report writes the condition if it differs. A Cluster that was deleted, or is being deleted, is left alone.
func (r *reporter) report(ctx context.Context) error {
	list := &corev1.NodeList{}
	// From the memory of the API server: nodes report every few seconds.
	if err := r.nodes.List(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	condition, known := clustercondition.NameResolution(list.Items, r.clock.Now(), r.stale)
	if !known {
		return nil
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return r.write(ctx, condition) })
}

func (r *reporter) write(ctx context.Context, condition metav1.Condition) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := r.plane.Get(ctx, client.ObjectKey{Name: r.cluster}, cluster)
	notFound := apierrors.IsNotFound(err)
	if err != nil && !notFound {
		return fmt.Errorf("reading cluster %q: %w", r.cluster, err)
	}
	if notFound || cluster.DeletionTimestamp != nil {
		return nil
	}
	before := cluster.DeepCopy()
	if !meta.SetStatusCondition(&cluster.Status.Conditions, condition) {
		return nil
	}
	// A merge patch replaces all conditions, so it must be of this version.
	if err := r.plane.Status().Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the condition of cluster %q: %w", r.cluster, err)
	}
	return nil
}
