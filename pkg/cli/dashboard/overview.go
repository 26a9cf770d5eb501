package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

const (
	// rowsShown is the number of rows that a page has at a time. Others are loaded when they are scrolled to.
	rowsShown = 60
	// maxLabelled is the number of objects of a kind whose labels are compared.
	maxLabelled = 5000
)

// filter selects rows.
type filter struct {
	Text, Namespace, Label string
	Problems               bool
}

func filterOf(q url.Values) filter {
	return filter{strings.TrimSpace(q.Get("q")), q.Get("namespace"), strings.TrimSpace(q.Get("label")), q.Get("problems") != ""}
}

// Any reports whether rows may be left out.
func (f filter) Any() bool { return f != filter{} }

// matches reports whether a row is selected. labelled are the objects with the labels.
func (f *filter) matches(r *row, labelled map[why.Object]bool) bool {
	return (f.Namespace == "" || r.Object.Namespace == f.Namespace) && (!f.Problems || r.Problem != nil) &&
		(f.Text == "" || strings.Contains(strings.ToLower(r.Object.String()), strings.ToLower(f.Text))) && (f.Label == "" || labelled[r.Object])
}

// column is a cluster.
type column struct {
	Name, Link string
	Ready      bool
}

func columnsOf(s *state) []column {
	var out []column
	for _, c := range s.Clusters {
		out = append(out, column{c.Name, clusterLink(c.Name), c.Ready()})
	}
	return out
}

func names(columns []column) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.Name)
	}
	return out
}

// cell is a cell with its cluster.
type cell struct{ status.Cell }

// Text returns what is shown beside the shape.
func (c *cell) Text() string {
	if c.Counted {
		return fmt.Sprintf("%d/%d", c.Ready, c.Desired)
	}
	return ""
}

// Label returns what a screen reader reads.
func (c *cell) Label() string {
	text := c.Cluster + ": " + labelOf(c.State)
	if c.Counted {
		text += fmt.Sprintf(", %d of %d ready", c.Ready, c.Desired)
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

func labelOf(s status.State) string { return cmp.Or(stateLabels()[string(s)], string(s)) }

// order ranks states, the worst first.
func (c *cell) order() int {
	return slices.Index([]status.State{status.NotApplied, status.Unhealthy, status.Unreachable, status.NotYetApplied, status.Leaving, status.Suspended, status.Unknown, status.Healthy}, c.State)
}

// row is a workload.
type row struct {
	object
	Index   int
	Problem *status.Problem
	// Cells are those of the clusters; nil where the object is not.
	Cells []*cell

	binding  workv1alpha2.Binding
	clusters []string
	unready  func(string) bool
}

// fill computes the cells.
func (r *row) fill() {
	cells := status.Cells(r.binding, r.unready)
	at := make(map[string]*cell, len(cells))
	for _, c := range cells {
		at[c.Cluster] = &cell{c}
	}
	r.Cells = make([]*cell, len(r.clusters))
	for i, name := range r.clusters {
		r.Cells[i] = at[name]
	}
}

// rowsOf returns the rows of all bindings, by namespace, kind and name. Their cells are those of the clusters.
func rowsOf(s *state, clusters []string) []row {
	out := make([]row, 0, len(s.Bindings))
	for _, b := range s.Bindings {
		ref := &b.GetSpec().Resource
		out = append(out, row{
			object:  object{why.Object{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}},
			Problem: s.report.OfBindings[client.ObjectKeyFromObject(b)], binding: b, clusters: clusters, unready: s.unready,
		})
	}
	slices.SortFunc(out, func(a, b row) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.binding.GetName(), b.binding.GetName()))
	})
	return out
}

// table is the table of workloads.
type table struct {
	Filter     filter
	Namespaces []string
	Columns    []column
	// All is the number of workloads, Total that of those which are selected. Rows are those from From on.
	All, Total, From, Window int
	Rows                     []row
	// LabelError is why labels cannot be compared.
	LabelError string
}

// overview shows the federation.
func (p *pages) overview(ctx context.Context, r *http.Request) (*view, error) {
	s, q := p.live.state(), r.URL.Query()
	t := &table{Filter: filterOf(q), Columns: columnsOf(s), All: len(s.Bindings), Window: rowsShown}
	namespaces := map[string]bool{}
	all := rowsOf(s, names(t.Columns))
	labelled, err := p.labelled(ctx, t.Filter.Label, all)
	if err != nil {
		t.LabelError = why.Line(err.Error())
	}
	var rows []row
	for i := range all {
		namespaces[all[i].Namespace] = true
		if t.Filter.matches(&all[i], labelled) {
			rows = append(rows, all[i])
		}
	}
	delete(namespaces, "")
	t.Namespaces = slices.Sorted(maps.Keys(namespaces))
	t.Total, t.From = len(rows), number(q, "from", 0, max(0, len(rows)-rowsShown))
	t.Rows = rows[t.From:min(len(rows), t.From+rowsShown)]
	for i := range t.Rows {
		t.Rows[i].Index = t.From + i + 1
		t.Rows[i].fill()
	}
	return &view{page: "overview", Title: "Overview", Live: true, Data: struct {
		*status.Report
		Table    *table
		Clusters []clusterRow
	}{s.report, t, clusterRows(s)}}, nil
}

// labelled returns the objects of rows whose labels a selector selects. The API server compares them.
func (p *pages) labelled(ctx context.Context, selector string, rows []row) (map[why.Object]bool, error) {
	if selector == "" {
		return nil, nil
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("%q is no label selector: write KEY=VALUE", selector)
	}
	kinds, out := map[schema.GroupVersionKind]bool{}, map[why.Object]bool{}
	for i := range rows {
		kinds[schema.FromAPIVersionAndKind(rows[i].APIVersion, rows[i].Kind)] = true
	}
	for kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.MatchingLabelsSelector{Selector: parsed}, client.Limit(maxLabelled)}
		if p.live.within != "" {
			options = append(options, client.InNamespace(p.live.within))
		}
		if err := p.source.Client.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("reading the labels of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			out[why.Object{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}] = true
		}
	}
	return out, nil
}
