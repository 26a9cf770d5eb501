package metricsapi

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/metrics"
)

// row is an object of a table.
type row struct {
	name   string
	usage  corev1.ResourceList
	window time.Duration
	object runtime.Object
}

func podRows(obj runtime.Object) []row {
	list, ok := obj.(*metrics.PodMetricsList)
	if !ok {
		list = &metrics.PodMetricsList{Items: []metrics.PodMetrics{*obj.(*metrics.PodMetrics)}}
	}
	rows := make([]row, 0, len(list.Items))
	for i := range list.Items {
		pod := &list.Items[i]
		rows = append(rows, row{pod.Name, Sum(pod.Containers), pod.Window.Duration, pod})
	}
	return rows
}

func nodeRows(obj runtime.Object) []row {
	list, ok := obj.(*metrics.NodeMetricsList)
	if !ok {
		list = &metrics.NodeMetricsList{Items: []metrics.NodeMetrics{*obj.(*metrics.NodeMetrics)}}
	}
	rows := make([]row, 0, len(list.Items))
	for i := range list.Items {
		node := &list.Items[i]
		rows = append(rows, row{node.Name, node.Usage, node.Window.Duration, node})
	}
	return rows
}

// Sum returns the usage of all containers together.
func Sum(containers []metrics.ContainerMetrics) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range containers {
		for name, quantity := range containers[i].Usage {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

// ConvertToTable implements rest.TableConvertor. The columns are those of metrics-server: the name, the resources of the
// first object, and the window.
func (s *storage) ConvertToTable(_ context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	rows := s.rows(obj)
	if len(rows) == 0 {
		return table, nil
	}
	var resources []string
	for name := range rows[0].usage {
		resources = append(resources, string(name))
	}
	slices.Sort(resources)
	table.ColumnDefinitions = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "Name of the resource"}}
	for _, name := range resources {
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string", Format: "quantity"})
	}
	table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Window", Type: "string", Format: "duration"})
	for _, r := range rows {
		cells := []any{r.name}
		for _, name := range resources {
			quantity := r.usage[corev1.ResourceName(name)]
			cells = append(cells, quantity.String())
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: append(cells, r.window.String()), Object: runtime.RawExtension{Object: r.object}})
	}
	return table, nil
}
