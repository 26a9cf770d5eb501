package get

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// notCachedError is the error for a kind that no ResourceRegistry selects.
type notCachedError struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
}

// Error implements error.
func (e notCachedError) Error() string {
	return fmt.Sprintf(`no ResourceRegistry selects %s, so that they are not cached; leave out --cached, or have those of all clusters cached with a file that "apply -f" takes:

apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata:
  name: %s
spec:
  targetCluster: {}
  resourceSelectors:
  - apiVersion: %s
    kind: %s
`, e.resource.GroupResource(), e.resource.Resource, e.kind.GroupVersion(), e.kind.Kind)
}

// cached reports whether a list is one of the caches, by its version. The control plane answers for kinds that no registry
// selects, with its own objects.
func (p *part) cached() bool {
	_, ok := search.DecodeVersions(p.resourceVersion)
	return ok || !p.merged
}

func (p *part) notCached() error {
	return notCachedError{resource: p.mapping.Resource, kind: p.mapping.GroupVersionKind}
}

// takeClusters takes the column of the clusters, which is the first, out of a table, with the rows of clusters that are not
// wanted.
func (p *part) takeClusters(table *metav1.Table) {
	if len(table.ColumnDefinitions) > 0 {
		table.ColumnDefinitions = table.ColumnDefinitions[1:]
	}
	rows := table.Rows
	table.Rows = nil
	for _, row := range rows {
		if len(row.Cells) == 0 {
			continue
		}
		cluster, _ := row.Cells[0].(string)
		row.Cells = row.Cells[1:]
		if p.wants(cluster) {
			p.rowsClusters = append(p.rowsClusters, cluster)
			table.Rows = append(table.Rows, row)
		}
	}
}

// wants reports whether the objects of a cluster are wanted. A bookmark is of none.
func (p *part) wants(cluster string) bool {
	return !p.merged || len(p.wanted) == 0 || cluster == "" || slices.Contains(p.wanted, cluster)
}

// cachedFrom returns the cluster that an object of several clusters is from.
func cachedFrom(o *unstructured.Unstructured) string {
	return o.GetAnnotations()[clusterv1alpha1.CacheSourceAnnotation]
}
