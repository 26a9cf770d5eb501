package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// planned is a plan.
type planned struct {
	// Clusters are those that can be lost, Lose the one that is.
	Clusters []string
	Lose     string
	// Evict reports whether NoExecute taints evict.
	Evict bool
	File  string
	// Error is why there is no plan.
	Error    string
	Warnings []string
	Effects  *plan.Effects
	Summary  string
	// Columns are the clusters in which something changes.
	Columns []string
	Rows    []effect
	More    int
}

// effect is what becomes of a template.
type effect struct {
	plan.Object
	// Cells are those of the columns; nil where nothing changes.
	Cells []*plan.Cluster
}

// Link returns the address of the page of the template.
func (e effect) Link() string { return object{e.Object.Object}.Link() }

// plan shows what would change.
func (p *pages) plan(ctx context.Context, r *http.Request) (*view, error) {
	s := p.live.state()
	d := &planned{Evict: p.settings.Evict, Clusters: names(columnsOf(s))}
	v := &view{page: "plan", Title: "Plan", Data: d}
	if r.Method == http.MethodPost {
		if err := p.compute(ctx, r, d); err != nil {
			d.Error = why.Line(err.Error())
			v.code = http.StatusUnprocessableEntity
		}
	} else if lose := r.URL.Query().Get("lose"); slices.Contains(d.Clusters, lose) {
		d.Lose = lose
	}
	return v, nil
}

// compute computes the plan that a form asks for.
func (p *pages) compute(ctx context.Context, r *http.Request, d *planned) error {
	if err := r.ParseMultipartForm(maxBody); err != nil { //nolint:gosec // the body is limited by route
		if tooLarge := (&http.MaxBytesError{}); errors.As(err, &tooLarge) {
			return fmt.Errorf("the file has more than %d MiB: plan it with %s plan -f FILE", maxBody>>20, p.program)
		}
		return fmt.Errorf("reading the form: %w", err)
	}
	settings := p.settings
	d.Lose, d.Evict = r.PostFormValue("lose"), r.PostFormValue("evict") != ""
	settings.Evict = d.Evict
	var changes []plan.Change
	if d.Lose != "" {
		changes = append(changes, plan.Lose(d.Lose))
	}
	manifests, err := p.manifests(ctx, r, d)
	if err != nil {
		return err
	}
	if len(changes)+len(manifests) == 0 {
		return errors.New("choose a cluster to lose, or a file")
	}
	d.Effects, err = p.source.Effects(ctx, settings, manifests, func(text string) { d.Warnings = append(d.Warnings, why.Line(text)) }, changes...)
	if err != nil {
		return err
	}
	d.fill()
	return nil
}

// manifests returns the objects of the file of a form.
func (p *pages) manifests(ctx context.Context, r *http.Request, d *planned) ([]*unstructured.Unstructured, error) {
	file, header, err := r.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) || err == nil && header.Size == 0 && header.Filename == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	defer func() { _ = file.Close() }()
	d.File = why.Line(header.Filename)
	return p.decode(ctx, file, header)
}

func (p *pages) decode(ctx context.Context, file io.Reader, header *multipart.FileHeader) ([]*unstructured.Unstructured, error) {
	name := why.Line(cmp.Or(header.Filename, "the file"))
	out, err := limit.Within(ctx, name, func() ([]*unstructured.Unstructured, error) { return p.source.Decode(file, name) })
	if err != nil {
		return nil, err
	}
	return out, planning.Scope(out, p.source.Mapper, cmp.Or(p.namespace, "default"), false)
}

// fill computes the table.
func (d *planned) fill() {
	d.Summary = planning.Summary(d.Effects)
	for i := range d.Effects.Objects {
		for _, c := range d.Effects.Objects[i].Clusters {
			d.Columns = append(d.Columns, c.Name)
		}
	}
	slices.Sort(d.Columns)
	d.Columns = slices.Compact(d.Columns)
	objects := d.Effects.Objects
	if n := len(objects); n > maxListed {
		objects, d.More = objects[:maxListed], n-maxListed
	}
	for i := range objects {
		e := effect{Object: objects[i], Cells: make([]*plan.Cluster, len(d.Columns))}
		for j := range objects[i].Clusters {
			at, _ := slices.BinarySearch(d.Columns, objects[i].Clusters[j].Name)
			e.Cells[at] = &objects[i].Clusters[j]
		}
		d.Rows = append(d.Rows, e)
	}
}
