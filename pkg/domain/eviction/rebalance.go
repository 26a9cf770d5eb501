package eviction

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// RebalancedWorkloads returns the entries of the status before anything is triggered, sorted: those of the spec with the result
// that they have, and former ones that were successful. Each workload is there once.
func RebalancedWorkloads(r *appsv1alpha1.WorkloadRebalancer) []appsv1alpha1.ObservedWorkload {
	former := map[appsv1alpha1.ObjectReference]appsv1alpha1.ObservedWorkload{}
	for _, w := range r.Status.ObservedWorkloads {
		former[w.Workload] = w
	}
	var out []appsv1alpha1.ObservedWorkload
	wanted := map[appsv1alpha1.ObjectReference]bool{}
	for _, reference := range r.Spec.Workloads {
		if wanted[reference] {
			continue
		}
		wanted[reference] = true
		if w, ok := former[reference]; ok {
			out = append(out, w)
			continue
		}
		out = append(out, appsv1alpha1.ObservedWorkload{Workload: reference})
	}
	for reference, w := range former {
		if !wanted[reference] && w.Result == appsv1alpha1.RebalanceSuccessful {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b appsv1alpha1.ObservedWorkload) int {
		return cmp.Compare(workloadKey(a.Workload), workloadKey(b.Workload))
	})
	return out
}

func workloadKey(r appsv1alpha1.ObjectReference) string {
	return strings.Join([]string{r.APIVersion, r.Kind, r.Namespace, r.Name}, " ")
}

// RebalancedBinding returns the namespace and name of the binding of a workload; a ClusterResourceBinding has no namespace.
func RebalancedBinding(r appsv1alpha1.ObjectReference) (namespace, name string) {
	return r.Namespace, names.Binding(r.Kind, r.Name)
}

// RebalanceDue reports whether a binding that was last triggered at a time, nil for never, is triggered by a rebalancer that was
// created at another.
func RebalanceDue(triggered *metav1.Time, created metav1.Time) bool {
	return triggered == nil || triggered.Before(&created)
}

// RebalanceVerdict is what a pass over a rebalancer ends with.
type RebalanceVerdict struct {
	// Status replaces that of the rebalancer if Changed.
	Status  appsv1alpha1.WorkloadRebalancerStatus
	Changed bool
	// Retry is the number of workloads that have no result yet.
	Retry int
	// Delete reports whether the rebalancer is deleted now.
	Delete bool
	// Requeue reports whether it is deleted later, and RequeueAfter when to decide again.
	Requeue      bool
	RequeueAfter time.Duration
}

// FinishRebalance returns what a pass ends with, from the workloads with the results of the pass. A rebalancer whose time is over
// is deleted in a pass that does not change its status: the version that is deleted is then the one that was read.
func FinishRebalance(r *appsv1alpha1.WorkloadRebalancer, workloads []appsv1alpha1.ObservedWorkload, now time.Time) RebalanceVerdict {
	v := RebalanceVerdict{Status: appsv1alpha1.WorkloadRebalancerStatus{
		ObservedWorkloads: workloads, ObservedGeneration: r.Generation, FinishTime: r.Status.FinishTime,
	}}
	for _, w := range workloads {
		if w.Result == "" {
			v.Retry++
		}
	}
	v.Changed = !reflect.DeepEqual(v.Status, r.Status)
	if v.Retry > 0 {
		return v
	}
	if v.Changed {
		v.Status.FinishTime = &metav1.Time{Time: now}
	}
	if r.Spec.TTLSecondsAfterFinished == nil || v.Status.FinishTime == nil {
		return v
	}
	left := v.Status.FinishTime.Add(time.Duration(*r.Spec.TTLSecondsAfterFinished) * time.Second).Sub(now)
	switch {
	case left > 0:
		v.Requeue, v.RequeueAfter = true, left
	case v.Changed:
		v.Requeue = true
	default:
		v.Delete = true
	}
	return v
}
