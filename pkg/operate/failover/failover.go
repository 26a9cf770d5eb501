// Package failover reports which workloads leave clusters, or would, and resumes evictions that were stopped because many
// clusters failed at once.
package failover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Phase is how far an eviction is.
type Phase string

// The phases.
const (
	// UnderWay is that of an eviction with a task.
	UnderWay Phase = "under way"
	// Pending is that of an eviction that is due now, or when a toleration ends.
	Pending Phase = "pending"
	// Stopped is that of an eviction that is due but stopped because many clusters failed at once.
	Stopped Phase = "stopped"
	// Unclaimed is that of an eviction that is due but skipped because no policy claims the workload.
	Unclaimed Phase = "skipped (no policy applies)"
)

// Eviction is the departure of one workload from one cluster.
type Eviction struct {
	// Workload is the template as KIND/NAME, and Namespace its namespace; none for cluster-scoped ones.
	Namespace, Workload string
	// Cluster is the cluster that the workload leaves, with that number of replicas; 0 for objects without.
	Cluster  string
	Replicas int32
	// Priority is the schedule priority. Higher ones leave first.
	Priority int32
	Phase    Phase
	// Reason is that of the task. It is set if the eviction is under way.
	Reason string
	// At is when it began, if it is under way, or is due; zero if it is not known.
	At time.Time
	// Purge is how the workload is deleted from the cluster; none while it is not under way.
	Purge policyv1alpha1.PurgeMode
	// Until is when it is deleted from the cluster at the latest; zero if that is not known, or when a user decides.
	Until time.Time
	// Nowhere reports whether the workload has no other target.
	Nowhere bool
}

// Report is the state of failover.
type Report struct {
	// MassFailure is why evictions are stopped, if they are.
	MassFailure eviction.MassFailureState
	// Clusters are those that are not Ready, or have NoExecute taints, by name.
	Clusters []clusterv1alpha1.Cluster
	// Evictions are under way or due, in the order of the phases, then those of higher priority first.
	Evictions []Eviction
	// Silent is since when no karmada-controller-manager has renewed its Lease, although it should have: none decides on
	// evictions. Zero while one does, or if none is elected.
	Silent time.Time
}

// Read returns the state of failover at a time.
func Read(ctx context.Context, c client.Client, now time.Time) (*Report, error) {
	state, stored, err := readState(ctx, c)
	if err != nil {
		return nil, err
	}
	r, timeout := &Report{MassFailure: state}, eviction.GracefulTimeout(stored.Data)
	if r.Silent, err = silent(ctx, c, now); err != nil {
		return nil, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := c.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		if cluster := clusters.Items[i]; !(&cluster).Ready() || executes(&cluster) {
			r.Clusters = append(r.Clusters, cluster)
		}
	}
	err = eachBinding(ctx, c, func(b workv1alpha2.Binding) {
		for _, e := range Tasks(b) {
			if e.Until.IsZero() && !e.At.IsZero() && e.Purge != policyv1alpha1.PurgeModeNever {
				e.Until = e.At.Add(timeout)
			}
			r.Evictions = append(r.Evictions, e)
		}
		for i := range r.Clusters {
			if e, ok := due(b, &r.Clusters[i], now); ok {
				r.Evictions = append(r.Evictions, e)
			}
		}
	})
	slices.SortFunc(r.Evictions, compare)
	return r, err
}

// silent returns the value of Report.Silent. One that a store refuses the renewals of, because it is full, cannot write more
// than that.
func silent(ctx context.Context, c client.Client, now time.Time) (time.Time, error) {
	var last, until time.Time
	for _, name := range []string{"karmada-controller-manager", "karmada-all-in-one"} {
		lease := &coordinationv1.Lease{}
		err := c.Get(ctx, client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: name}, lease)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("reading Lease %s: %w", name, err)
		}
		if at, due := Renewal(lease); at.After(last) {
			last, until = at, due
		}
	}
	if now.After(until) {
		return last, nil
	}
	return time.Time{}, nil
}

// Renewal returns when a Lease was renewed last, and until when it is in time. Both are zero if it never was.
func Renewal(lease *coordinationv1.Lease) (last, until time.Time) {
	at := lease.Spec.RenewTime
	if at == nil {
		return time.Time{}, time.Time{}
	}
	return at.Time, at.Add(2 * time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second)
}

// readState returns the stored state and the ConfigMap, which is empty if there is none.
func readState(ctx context.Context, c client.Client) (eviction.MassFailureState, *corev1.ConfigMap, error) {
	stored := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: names.FailoverState}, stored)
	if client.IgnoreNotFound(err) != nil {
		return eviction.MassFailureState{}, nil, fmt.Errorf("reading the state of failover: %w", err)
	}
	state, err := eviction.DecodeMassFailure(stored.Data)
	if err != nil {
		return state, nil, fmt.Errorf("ConfigMap %s/%s: %w", clusterv1alpha1.NamespaceKarmadaSystem, names.FailoverState, err)
	}
	return state, stored, nil
}

// executes reports whether a cluster has a NoExecute taint.
func executes(c *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
}

// eachBinding calls f for each binding of both kinds.
func eachBinding(ctx context.Context, c client.Client, f func(workv1alpha2.Binding)) error {
	for _, s := range scope.Bindings() {
		pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := s.NewList()
			return list, c.List(ctx, list, &client.ListOptions{Raw: &o, Limit: o.Limit, Continue: o.Continue})
		})
		if err := pages.EachListItem(ctx, metav1.ListOptions{}, func(b runtime.Object) error { f(b.(workv1alpha2.Binding)); return nil }); err != nil {
			return fmt.Errorf("listing %ss: %w", s.Kind, err)
		}
	}
	return nil
}

// From returns the evictions from a cluster that are under way, those of higher priority first.
func From(ctx context.Context, c client.Client, cluster string) ([]Eviction, error) {
	var out []Eviction
	err := eachBinding(ctx, c, func(b workv1alpha2.Binding) {
		for _, e := range Tasks(b) {
			if e.Cluster == cluster {
				out = append(out, e)
			}
		}
	})
	slices.SortFunc(out, compare)
	return out, err
}

// compare orders evictions by phase, then those of higher priority first, then by name.
func compare(a, b Eviction) int {
	order := []Phase{UnderWay, Pending, Stopped, Unclaimed}
	return cmp.Or(cmp.Compare(slices.Index(order, a.Phase), slices.Index(order, b.Phase)), cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
}

// Progress returns how far an eviction is, in words.
func (e *Eviction) Progress(now time.Time) string {
	text := string(e.Phase)
	switch {
	case e.Phase == UnderWay && e.At.IsZero():
		text += " (" + e.Reason + ")"
	case e.Phase == UnderWay:
		text += fmt.Sprintf(" for %s (%s)", duration.HumanDuration(now.Sub(e.At)), e.Reason)
	case e.At.After(now):
		text += " in " + duration.HumanDuration(e.At.Sub(now).Round(time.Second))
	}
	return text
}

// Deleted returns when the workload is deleted from the cluster, in words; nothing if it is not.
func (e *Eviction) Deleted(now time.Time) string {
	text := ""
	switch {
	case e.Phase != UnderWay:
		return ""
	case e.Purge == policyv1alpha1.PurgeModeNever:
		return "when released"
	case e.Purge == policyv1alpha1.PurgeModeDirectly:
		text = "at once"
	case e.Until.IsZero():
		text = "when it runs elsewhere"
	default:
		text = "within " + duration.HumanDuration(max(0, e.Until.Sub(now)).Round(time.Second))
	}
	if e.Nowhere {
		text += ", runs nowhere else"
	}
	return text
}

func of(b workv1alpha2.Binding, cluster string) Eviction {
	spec := b.GetSpec()
	e := Eviction{Namespace: spec.Resource.Namespace, Workload: strings.ToLower(spec.Resource.Kind) + "/" + spec.Resource.Name, Cluster: cluster}
	if spec.SchedulePriority != nil {
		e.Priority = spec.SchedulePriority.Priority
	}
	return e
}

// Tasks returns the evictions of a binding that are under way.
func Tasks(b workv1alpha2.Binding) []Eviction {
	var out []Eviction
	for i := range b.GetSpec().GracefulEvictionTasks {
		task := &b.GetSpec().GracefulEvictionTasks[i]
		e := of(b, task.FromCluster)
		e.Phase, e.Reason = UnderWay, task.Reason
		if task.Replicas != nil {
			e.Replicas = *task.Replicas
		}
		if e.Purge = task.PurgeMode; task.SuppressDeletion != nil {
			e.Purge = policyv1alpha1.PurgeModeNever
		}
		e.Nowhere = len(scope.Targets(b.GetSpec())) == 0
		if task.CreationTimestamp != nil {
			e.At = task.CreationTimestamp.Time
			if task.GracePeriodSeconds != nil && task.SuppressDeletion == nil {
				e.Until = e.At.Add(time.Duration(*task.GracePeriodSeconds) * time.Second)
			}
		}
		out = append(out, e)
	}
	return out
}

// due returns the eviction of a binding from a cluster because of the taints of the cluster, and false if there is none.
func due(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster, now time.Time) (Eviction, bool) {
	v, err := eviction.Taint(eviction.TaintFacts{Now: now, ClusterName: cluster.Name, Cluster: cluster, Binding: b, Enabled: true, KeepUnclaimed: true})
	if err != nil || !v.Evict && !v.Unclaimed && v.After == 0 {
		return Eviction{}, false // not scheduled yet, or tolerated
	}
	e := of(b, cluster.Name)
	e.Phase, e.At = Pending, now.Add(v.After)
	if v.Evict && meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped) {
		e.Phase = Stopped
	}
	if v.Unclaimed {
		e.Phase = Unclaimed
	}
	for _, target := range b.GetSpec().Clusters {
		if target.Name == cluster.Name {
			e.Replicas = target.Replicas
		}
	}
	return e, true
}
