package get

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// answer is the response of one cluster.
type answer struct {
	cluster string
	parts   []*part
}

// group is the rows of one type from all clusters.
type group struct {
	mapping *meta.RESTMapping
	columns []metav1.TableColumnDefinition
	rows    []row
}

// row is one object, and the cells of its line.
type row struct {
	cluster string
	object  *unstructured.Unstructured
	cells   []any
}

// merge puts the rows of all clusters together by type. Types are sorted, and
// within one rows by namespace, name and cluster, the control plane first.
func merge(answers []answer, now metav1.Time) ([]*group, error) {
	var groups []*group
	for _, a := range answers {
		for _, p := range a.parts {
			i := slices.IndexFunc(groups, func(g *group) bool {
				return g.mapping.Resource.GroupResource() == p.mapping.Resource.GroupResource()
			})
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{mapping: p.mapping})
			}
			if err := groups[i].add(a.cluster, p, now); err != nil {
				return nil, err
			}
		}
	}
	groups = slices.DeleteFunc(groups, func(g *group) bool { return len(g.rows) == 0 })
	slices.SortFunc(groups, func(a, b *group) int {
		return strings.Compare(a.mapping.Resource.String(), b.mapping.Resource.String())
	})
	for _, g := range groups {
		slices.SortStableFunc(g.rows, compareRows)
	}
	return groups, nil
}

func compareRows(a, b row) int {
	return cmp.Or(
		strings.Compare(a.object.GetNamespace(), b.object.GetNamespace()),
		strings.Compare(a.object.GetName(), b.object.GetName()),
		compareClusters(a.cluster, b.cluster),
	)
}

func compareClusters(a, b string) int {
	if (a == controlPlaneName) != (b == controlPlaneName) {
		if a == controlPlaneName {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

// add takes in what a cluster has of the type.
func (g *group) add(cluster string, p *part, now metav1.Time) error {
	table := p.table
	if table == nil {
		if len(p.objects) == 0 {
			return nil
		}
		table = plainTable(p.objects, now)
	}
	at := g.align(table.ColumnDefinitions)
	for n, r := range table.Rows {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if len(r.Object.Raw) > 0 {
			if err := json.Unmarshal(r.Object.Raw, &object.Object); err != nil {
				return err
			}
		} else if u, ok := r.Object.Object.(*unstructured.Unstructured); ok {
			object = u
		}
		cells := make([]any, len(g.columns))
		for i, cell := range r.Cells {
			if i < len(at) {
				cells[at[i]] = cell
			}
		}
		g.rows = append(g.rows, row{cluster: p.clusterOf(n, cluster), object: object, cells: cells})
	}
	return nil
}

// align returns where the columns of a table are in those of the group. Clusters of
// other versions may have other columns; those that the group lacks come last.
func (g *group) align(columns []metav1.TableColumnDefinition) []int {
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = slices.IndexFunc(g.columns, func(have metav1.TableColumnDefinition) bool {
			return strings.EqualFold(have.Name, c.Name)
		})
		if at[i] < 0 {
			at[i] = len(g.columns)
			g.columns = append(g.columns, c)
		}
	}
	return at
}

// table lays the group out: the first column, CLUSTER, the others, ADOPTION.
func (g *group) table() *metav1.Table {
	adoption := metav1.TableColumnDefinition{Name: "Adoption", Type: "string"}
	if g.mapping.Resource.Resource == "pods" && g.mapping.Resource.Group == "" {
		adoption.Priority = 1 // only in wide tables
	}
	out := &metav1.Table{ColumnDefinitions: slices.Concat(
		g.columns[:1], []metav1.TableColumnDefinition{{Name: "Cluster", Type: "string"}}, g.columns[1:],
		[]metav1.TableColumnDefinition{adoption},
	)}
	for _, r := range g.rows {
		cells := make([]any, len(g.columns))
		for i, cell := range r.cells {
			cells[i] = escaped(cell)
		}
		out.Rows = append(out.Rows, metav1.TableRow{
			Cells:  slices.Concat(cells[:1], []any{r.cluster}, cells[1:], []any{r.adoption()}),
			Object: runtime.RawExtension{Object: r.object},
		})
	}
	return out
}

// escaped returns a cell as a terminal can show it: servers of members fill them.
func escaped(cell any) any {
	if text, ok := cell.(string); ok {
		return plaintext.Escape(text)
	}
	return cell
}

// adoption reports whether the control plane owns the object in the member.
func (r row) adoption() string {
	switch {
	case r.cluster == controlPlaneName:
		return "-"
	case r.object.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] == workv1alpha2.ManagedByKarmadaLabelValue:
		return "Y"
	default:
		return "N"
	}
}

// plainTable stands in for servers that lay out no tables.
func plainTable(objects []unstructured.Unstructured, now metav1.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name"}, {Name: "Age", Type: "string"},
	}}
	for i := range objects {
		age := "<unknown>"
		if made := objects[i].GetCreationTimestamp(); !made.IsZero() {
			age = duration.HumanDuration(now.Sub(made.Time))
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells: []any{objects[i].GetName(), age}, Object: runtime.RawExtension{Object: &objects[i]},
		})
	}
	return table
}
