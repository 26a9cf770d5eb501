package get

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	upstream "k8s.io/kubectl/pkg/cmd/get"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// printTables prints one table per type.
func (r *request) printTables(out io.Writer, groups []*group, kinds bool) error {
	for i, g := range groups {
		printer, err := r.printer(g.mapping, kinds)
		if err != nil {
			return err
		}
		if i > 0 {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		table := g.table()
		if r.sortBy != "" {
			if err := upstream.NewRuntimeSorter([]runtime.Object{table}, r.sortBy).Sort(); err != nil {
				return fmt.Errorf("sorting %s by %q: %w", g.mapping.Resource.Resource, r.sortBy, err)
			}
		}
		w := printers.GetNewTabWriter(out)
		if err := printer.PrintObj(table, w); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// printer returns the printer of a type; kinds puts the kind before each name.
func (r *request) printer(mapping *meta.RESTMapping, kinds bool) (printers.ResourcePrinter, error) {
	flags := r.print.Copy()
	human := *flags.HumanReadableFlags
	flags.HumanReadableFlags = &human
	if mapping != nil {
		flags.SetKind(mapping.GroupVersionKind.GroupKind())
		if r.allNamespaces && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if err := flags.EnsureWithNamespace(); err != nil {
				return nil, err
			}
		}
	}
	if kinds {
		if err := flags.EnsureWithKind(); err != nil {
			return nil, err
		}
	}
	printer, err := flags.ToPrinter()
	if err == nil && *flags.OutputFormat == "name" && r.severalClusters {
		return namePrinter{printer}, nil
	}
	return printer, err
}

// namePrinter prints the cluster after the name of an object of a member.
type namePrinter struct{ printers.ResourcePrinter }

// PrintObj implements printers.ResourcePrinter.
func (p namePrinter) PrintObj(obj runtime.Object, w io.Writer) error {
	if list, ok := obj.(*unstructured.UnstructuredList); ok {
		for i := range list.Items {
			if err := p.PrintObj(&list.Items[i], w); err != nil {
				return err
			}
		}
		return nil
	}
	var name strings.Builder
	if err := p.ResourcePrinter.PrintObj(obj, &name); err != nil {
		return err
	}
	line := strings.TrimSuffix(name.String(), "\n")
	if o, err := meta.Accessor(obj); err == nil && o.GetAnnotations()[clusterv1alpha1.CacheSourceAnnotation] != "" {
		line += " " + o.GetAnnotations()[clusterv1alpha1.CacheSourceAnnotation]
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// printObjects prints objects as one document: a single one that was requested
// by name as it is, others as a list in which those of members name their cluster.
func (r *request) printObjects(out io.Writer, answers []answer, single bool) error {
	printer, err := r.printer(nil, false)
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	for _, a := range answers {
		for _, p := range a.parts {
			for i := range p.objects {
				if !single && a.cluster != controlPlaneName && !p.merged {
					annotate(&p.objects[i], a.cluster)
				}
				list.Items = append(list.Items, p.objects[i])
			}
		}
	}
	if single {
		if len(list.Items) == 0 {
			return nil
		}
		return printer.PrintObj(&list.Items[0], out)
	}
	if list.Items == nil {
		list.Items = []unstructured.Unstructured{}
	}
	if r.sortBy != "" && len(list.Items) > 0 {
		printer = &upstream.SortingPrinter{SortField: r.sortBy, Delegate: printer}
	}
	return printer.PrintObj(list, out)
}

// annotate notes on an object which member it is from, the way that the caches of
// the control plane do.
func annotate(obj *unstructured.Unstructured, cluster string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.CacheSourceAnnotation] = cluster
	obj.SetAnnotations(annotations)
}
