package override

import (
	"maps"
	"slices"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// SelectsOtherwise reports whether the fields of a cluster differ by which overrides select clusters, so that others may be applied.
func SelectsOtherwise(before, after *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(before.Labels, after.Labels) || before.Spec.Provider != after.Spec.Provider ||
		before.Spec.Region != after.Spec.Region || !slices.Equal(before.Spec.Zones, after.Spec.Zones)
}
