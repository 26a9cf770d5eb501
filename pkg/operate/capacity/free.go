package capacity

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Free is what is left in a cluster, as text.
type Free struct {
	CPU, Memory, Pods string
}

// unknown is printed for what a cluster has not reported.
const unknown = "<unknown>"

// FreeOf returns what is left in a cluster by its resource summary: what its nodes offer without the requests of its pods,
// those that wait for a node included.
func FreeOf(cluster *clusterv1alpha1.Cluster) Free { return FreeText(FreeResources(cluster)) }

// FreeText returns the text of what FreeResources returns, or of the sum of several clusters.
func FreeText(free corev1.ResourceList) Free {
	return Free{
		CPU:    freeText(free, corev1.ResourceCPU, cores),
		Memory: freeText(free, corev1.ResourceMemory, bytes),
		Pods:   freeText(free, corev1.ResourcePods, func(q *resource.Quantity) string { return fmt.Sprint(q.Value()) }),
	}
}

// FreeResources returns what FreeOf does as quantities: processors, memory and pods, without those that the cluster has not
// reported.
func FreeResources(cluster *clusterv1alpha1.Cluster) corev1.ResourceList {
	out := corev1.ResourceList{}
	s := cluster.Status.ResourceSummary
	if s == nil {
		return out
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		offered, ok := s.Allocatable[name]
		if !ok {
			continue
		}
		free := offered.DeepCopy()
		free.Sub(s.Allocated[name])
		free.Sub(s.Allocating[name])
		if free.Sign() < 0 {
			free = *resource.NewQuantity(0, offered.Format)
		}
		out[name] = free
	}
	return out
}

// Share is how much of a resource of a cluster its pods request.
type Share struct {
	// Resource is cpu, memory or pods.
	Resource string
	// Used is the part of what the nodes offer that is requested; 0 if they offer none.
	Used float64
	// Free and Offered are texts as those of Free.
	Free, Offered string
}

// Shares returns the shares of the resources that a cluster reports: processors, memory and pods.
func Shares(cluster *clusterv1alpha1.Cluster) []Share {
	left := FreeResources(cluster)
	if len(left) == 0 {
		return nil
	}
	offered := cluster.Status.ResourceSummary.Allocatable
	free, all := FreeText(left), FreeText(offered)
	var out []Share
	for name, texts := range map[corev1.ResourceName][2]string{corev1.ResourceCPU: {free.CPU, all.CPU}, corev1.ResourceMemory: {free.Memory, all.Memory}, corev1.ResourcePods: {free.Pods, all.Pods}} {
		rest, reported := left[name]
		if !reported {
			continue
		}
		share, total := Share{Resource: string(name), Free: texts[0], Offered: texts[1]}, offered[name]
		if total.Sign() > 0 {
			share.Used = 1 - rest.AsApproximateFloat64()/total.AsApproximateFloat64()
		}
		out = append(out, share)
	}
	slices.SortFunc(out, func(a, b Share) int { return strings.Compare(a.Resource, b.Resource) })
	return out
}

func freeText(free corev1.ResourceList, name corev1.ResourceName, format func(*resource.Quantity) string) string {
	q, ok := free[name]
	if !ok {
		return unknown
	}
	return format(&q)
}

// cores returns a number of processors with one digit after the point, rounded down.
func cores(q *resource.Quantity) string { return tenths(q.AsApproximateFloat64()) }

// bytes returns an amount of memory in the largest unit of which there is one, rounded down.
func bytes(q *resource.Quantity) string {
	value := q.AsApproximateFloat64()
	unit := 0
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return tenths(value) + units[unit]
}

func tenths(value float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(int64(value*10))/10), ".0")
}

func joined(parts []string) string { return strings.Join(parts, ", ") }
