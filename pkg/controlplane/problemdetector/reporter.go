package problemdetector

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// reporter writes what the nodes report as a condition of the Cluster.
type reporter struct {
	cluster string
	stale   time.Duration
	nodes   client.Reader
	plane   client.Client
	status  *status.Writer[*clusterv1alpha1.Cluster, *clusterv1alpha1.ClusterStatus]
	clock   clock.WithTicker
}

func newReporter(o *Options, nodes client.Reader, plane client.Client, clk clock.WithTicker) *reporter {
	return &reporter{
		cluster: o.ClusterName, stale: o.StaleThreshold, nodes: nodes, plane: plane, clock: clk,
		status: status.For(plane, plane, clk, func(c *clusterv1alpha1.Cluster) *clusterv1alpha1.ClusterStatus { return &c.Status }, "conditions"),
	}
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
	cluster := &clusterv1alpha1.Cluster{}
	err := r.plane.Get(ctx, client.ObjectKey{Name: r.cluster}, cluster)
	switch {
	case apierrors.IsNotFound(err), err == nil && cluster.DeletionTimestamp != nil:
		return nil
	case err != nil:
		return fmt.Errorf("reading cluster %q: %w", r.cluster, err)
	}
	_, err = r.status.Put(ctx, cluster, func(s *clusterv1alpha1.ClusterStatus) { meta.SetStatusCondition(&s.Conditions, condition) })
	return err
}
