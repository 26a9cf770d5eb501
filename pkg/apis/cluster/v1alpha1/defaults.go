package v1alpha1

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gibibyte = int64(1) << 30

// DefaultResourceModels returns the nine grades of a cluster that has none: one
// CPU with up to 4Gi, then doubling, the last one open-ended.
func DefaultResourceModels() []ResourceModel {
	bounds := []struct{ cpu, memory int64 }{
		{0, 0}, {1, 4 * gibibyte}, {2, 16 * gibibyte}, {4, 32 * gibibyte}, {8, 64 * gibibyte}, {16, 128 * gibibyte},
		{32, 256 * gibibyte}, {64, 512 * gibibyte}, {128, 1024 * gibibyte}, {math.MaxInt64, math.MaxInt64},
	}
	models := make([]ResourceModel, 0, len(bounds)-1)
	for i := range len(bounds) - 1 {
		lower, upper := bounds[i], bounds[i+1]
		models = append(models, ResourceModel{Grade: uint(i), Ranges: []ResourceModelRange{
			{
				Name: corev1.ResourceCPU,
				Min:  *resource.NewQuantity(lower.cpu, resource.DecimalSI),
				Max:  *resource.NewQuantity(upper.cpu, resource.DecimalSI),
			},
			{
				Name: corev1.ResourceMemory,
				Min:  *resource.NewQuantity(lower.memory, resource.BinarySI),
				Max:  *resource.NewQuantity(upper.memory, resource.BinarySI),
			},
		}})
	}
	return models
}

// StandardizeResourceModels sorts models by grade and opens both ends, in place:
// the first starts at 0, the last ends at the largest integer. Quantities keep
// their format.
func StandardizeResourceModels(models []ResourceModel) {
	if len(models) == 0 {
		return
	}
	slices.SortStableFunc(models, func(a, b ResourceModel) int { return cmp.Compare(a.Grade, b.Grade) })
	first, last := models[0].Ranges, models[len(models)-1].Ranges
	for i := range first {
		first[i].Min.Set(0)
	}
	for i := range last {
		last[i].Max.Set(math.MaxInt64)
	}
}

// PrepareClusterForCreate prepares a new Cluster for validation: no status,
// generation 1 and, with customModeling (the feature gate
// CustomizedClusterResourceModeling), default or standard resource models.
func PrepareClusterForCreate(c *Cluster, customModeling bool) {
	c.Status = ClusterStatus{}
	c.Generation = 1
	if !customModeling {
		return
	}
	if len(c.Spec.ResourceModels) == 0 {
		c.Spec.ResourceModels = DefaultResourceModels()
		return
	}
	StandardizeResourceModels(c.Spec.ResourceModels)
}

// PrepareClusterForUpdate prepares a changed Cluster for validation: the stored
// status, a generation that counts changes of the spec and, with customModeling,
// standard resource models. Models that an update clears stay cleared.
func PrepareClusterForUpdate(updated, old *Cluster, customModeling bool) {
	updated.Status = old.Status
	if customModeling {
		StandardizeResourceModels(updated.Spec.ResourceModels)
	}
	updated.Generation = old.Generation
	if !equality.Semantic.DeepEqual(updated.Spec, old.Spec) {
		updated.Generation++
	}
}

// PrepareClusterForStatusUpdate prepares an update of the status. Only the status
// changes: a client that may write the status must not be able to change the
// endpoint of the cluster. A status with a true Ready condition also removes the
// taints of unhealthy clusters, so that no reader observes a cluster that is
// ready but tainted.
func PrepareClusterForStatusUpdate(updated, old *Cluster) {
	fields := updated.ManagedFields
	old.ObjectMeta.DeepCopyInto(&updated.ObjectMeta)
	updated.ManagedFields = fields
	old.Spec.DeepCopyInto(&updated.Spec)
	if !meta.IsStatusConditionTrue(updated.Status.Conditions, ClusterConditionReady) {
		return
	}
	updated.Spec.Taints = slices.DeleteFunc(updated.Spec.Taints, IsHealthTaint)
	if len(updated.Spec.Taints) == 0 {
		updated.Spec.Taints = nil
	}
	if len(updated.Spec.Taints) < len(old.Spec.Taints) {
		updated.Generation++
	}
}

// IsHealthTaint reports whether a taint is one that the control plane adds to
// clusters whose Ready condition is not true.
func IsHealthTaint(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule && (t.Key == TaintClusterNotReady || t.Key == TaintClusterUnreachable)
}

// CanonicalizeCluster rewrites a valid Cluster to the one form that is stored:
// NoExecute taints carry the time they were added, and the deprecated zone
// becomes the list of zones.
func CanonicalizeCluster(c *Cluster, now metav1.Time) {
	for i := range c.Spec.Taints {
		if t := &c.Spec.Taints[i]; t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded == nil {
			t.TimeAdded = now.DeepCopy()
		}
	}
	if c.Spec.Zone != "" && len(c.Spec.Zones) == 0 {
		c.Spec.Zones = []string{c.Spec.Zone}
		c.Spec.Zone = ""
	}
}
