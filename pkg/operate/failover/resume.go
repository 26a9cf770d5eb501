package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Errors of Resume.
var (
	// ErrNotStopped is returned when there is nothing to resume.
	ErrNotStopped = errors.New("evictions are not stopped")
	// ErrNoneReady is returned when workloads would leave all clusters.
	ErrNoneReady = errors.New("workloads would leave their clusters and run nowhere")
)

// Resume requests that evictions are resumed, and waits until they are. It returns the clusters that count no longer until
// they are Ready again, ErrNotStopped, or, without force, ErrNoneReady.
func Resume(ctx context.Context, c client.Client, force bool, now time.Time, o wait.Options) ([]string, error) {
	state, stored, err := readState(ctx, c)
	if err != nil {
		return nil, err
	}
	if !state.Stopped() {
		return nil, ErrNotStopped
	}
	if !force {
		if err := checkRoom(ctx, c, now); err != nil {
			return nil, err
		}
	}
	since := state.Since
	if err := patch.ChangeLocked(ctx, c, stored, func() { stored.Data[eviction.ResumeKey] = eviction.ResumeValue(since) }); err != nil {
		return nil, fmt.Errorf("requesting that evictions are resumed: %w", err)
	}
	err = wait.Until(ctx, o, func(ctx context.Context) error {
		var err error
		if state, _, err = readState(ctx, c); err != nil {
			return wait.Terminal(err)
		}
		if state.Stopped() && state.Since.Equal(since) {
			return errors.New("karmada-controller-manager has not followed the request yet")
		}
		return nil
	})
	return state.Released, err
}

// maxNamed is the number of workloads that an error names.
const maxNamed = 5

// checkRoom returns ErrNoneReady if no cluster is Ready that stays, or none of those that a workload whose eviction is
// stopped may run in.
func checkRoom(ctx context.Context, c client.Client, now time.Time) error {
	var list clusterv1alpha1.ClusterList
	if err := c.List(ctx, &list); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	var clusters []*clusterv1alpha1.Cluster
	var ready bool
	for i := range list.Items {
		clusters = append(clusters, &list.Items[i])
		ready = ready || remains(&list.Items[i])
	}
	if !ready {
		return fmt.Errorf("no cluster is Ready: %w", ErrNoneReady)
	}
	var without []string
	err := eachBinding(ctx, c, func(b workv1alpha2.Binding) {
		if runsNowhere(b, clusters, now) {
			workload := of(b, "").Workload
			if namespace := b.GetSpec().Resource.Namespace; namespace != "" {
				workload += " in namespace " + namespace
			}
			without = append(without, workload)
		}
	})
	if err != nil || len(without) == 0 {
		return err
	}
	slices.Sort(without)
	text := strings.Join(without[:min(maxNamed, len(without))], ", ")
	if more := len(without) - maxNamed; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Errorf("no other cluster of their placement is Ready for %s: %w", text, ErrNoneReady)
}

// remains reports whether a cluster can run workloads.
func remains(c *clusterv1alpha1.Cluster) bool { return c.Ready() && c.DeletionTimestamp.IsZero() }

// runsNowhere reports whether an eviction of a binding is stopped, and no cluster remains that the binding may run in.
func runsNowhere(b workv1alpha2.Binding, clusters []*clusterv1alpha1.Cluster, now time.Time) bool {
	left := sets.New[string]()
	for _, e := range Tasks(b) {
		left.Insert(e.Cluster)
	}
	var stopped bool
	for _, cluster := range clusters {
		if e, ok := due(b, cluster, now); ok && e.Phase != Unclaimed {
			left.Insert(cluster.Name)
			stopped = stopped || meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped)
		}
	}
	return stopped && !slices.ContainsFunc(clusters, func(cluster *clusterv1alpha1.Cluster) bool {
		return remains(cluster) && !left.Has(cluster.Name) && mayRun(b.GetSpec(), cluster)
	})
}

// mayRun reports whether a binding runs in a cluster, or its placement admits the cluster.
func mayRun(spec *workv1alpha2.ResourceBindingSpec, cluster *clusterv1alpha1.Cluster) bool {
	if scope.Names(scope.Targets(spec)).Has(cluster.Name) || spec.Placement == nil {
		return true
	}
	for i := range cluster.Spec.Taints {
		taint := &cluster.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(spec.Placement.ClusterTolerations, func(t corev1.Toleration) bool { return framework.Tolerates(&t, taint) }) {
			return false
		}
	}
	terms := spec.Placement.ClusterAffinities
	if len(terms) == 0 {
		return match.Cluster(cluster, spec.Placement.ClusterAffinity)
	}
	return slices.ContainsFunc(terms, func(t policyv1alpha1.ClusterAffinityTerm) bool {
		return match.Cluster(cluster, &t.ClusterAffinity) || slices.ContainsFunc(t.OverflowAffinities, func(o policyv1alpha1.OverflowAffinityTerm) bool {
			return match.Cluster(cluster, &o.ClusterAffinity)
		})
	})
}
