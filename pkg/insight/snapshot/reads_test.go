package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/kube"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// reader reads from a control plane with a binding in each of the namespaces a and b, whose lists answer as list says.
func reader(list func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error) *Reader {
	var objects []client.Object
	for _, ns := range []string{"a", "b"} {
		objects = append(objects, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-deployment"}})
	}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
	return &Reader{
		ControlPlane: c, Now: time.Now, Deadline: time.Minute,
		Raw: func(context.Context, string) ([]byte, error) { return []byte("{}"), nil },
	}
}

// read returns the names of the bindings that were read, and what could not be.
func read(t *testing.T, r *Reader) (bindings, gaps string) {
	t.Helper()
	f, err := r.Federation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names, missing []string
	for _, b := range f.Bindings {
		names = append(names, b.GetNamespace()+"/"+b.GetName())
	}
	for _, g := range f.Gaps {
		missing = append(missing, g.What)
	}
	return strings.Join(names, " "), strings.Join(missing, ", ")
}

func TestFederation_ReadsAllPages(t *testing.T) {
	pages := 0
	bindings, gaps := read(t, reader(func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		l, ok := list.(*workv1alpha2.ResourceBindingList)
		if !ok {
			return c.List(ctx, list)
		}
		asked := (&client.ListOptions{}).ApplyOptions(o)
		if asked.Limit != pageSize || asked.Continue != strings.Repeat("x", pages) {
			return fmt.Errorf("page %d has limit %d, continue %q", pages, asked.Limit, asked.Continue)
		}
		pages++
		l.Items = []workv1alpha2.ResourceBinding{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(pages)}}}
		if pages < 3 {
			l.Continue = strings.Repeat("x", pages)
		}
		return nil
	}))
	if bindings != "ns/1 ns/2 ns/3" || gaps != "" {
		t.Errorf("bindings %s; gaps %s", bindings, gaps)
	}
}

func TestFederation_UserOfOneNamespace(t *testing.T) {
	r := reader(func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if ns := (&client.ListOptions{}).ApplyOptions(o).Namespace; ns != "a" {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
		}
		return c.List(ctx, list, client.InNamespace("a"))
	})
	const others = "Clusters, ClusterResourceBindings, Events of the namespace karmada-system, FederatedResourceQuotas, Leases in karmada-system, ResourceBindings, ResourceRegistries"
	if bindings, gaps := read(t, r); bindings != "" || gaps != sorted(others) {
		t.Errorf("without a namespace: bindings %s; gaps %s", bindings, gaps)
	}
	r.Namespace = "b"
	if bindings, gaps := read(t, r); bindings != "" || gaps != sorted(others) {
		t.Errorf("in a namespace that may not be read: bindings %s; gaps %s", bindings, gaps)
	}
	r.Namespace = "a"
	want := sorted(strings.NewReplacer("Quotas", "Quotas of other namespaces", " ResourceBindings", " ResourceBindings of other namespaces").Replace(others))
	if bindings, gaps := read(t, r); bindings != "a/web-deployment" || gaps != want {
		t.Errorf("in a namespace: bindings %s; gaps %s", bindings, gaps)
	}
}

func TestFederation_Deadline(t *testing.T) {
	r := reader(func(ctx context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		if _, ok := list.(*workv1alpha2.ResourceBindingList); ok {
			<-ctx.Done()
			return ctx.Err()
		}
		return c.List(ctx, list)
	})
	r.Deadline = time.Millisecond
	f, err := r.Federation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !f.Lacks("ResourceBindings") || !strings.Contains(fmt.Sprint(f.Gaps), "no answer in time") {
		t.Errorf("gaps %v", f.Gaps)
	}
}

func sorted(list string) string {
	parts := strings.Split(list, ", ")
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// TestTemplate_Reads counts the reads for a template in 20 clusters, none of which is asked: one for the Work in each, and few for the rest.
// The command reads the object itself and asks whether the server is a control plane.
func TestTemplate_Reads(t *testing.T) {
	var reads atomic.Int32
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-deployment"}}
	binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web"}
	for i := range 20 {
		binding.Spec.Clusters = append(binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: fmt.Sprint("m", i)})
	}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(binding).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			reads.Add(1)
			return c.Get(ctx, key, obj, o...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			reads.Add(1)
			return c.List(ctx, list)
		},
	}).Build()
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "ns", "name": "web"}}}
	f, err := (&Reader{ControlPlane: c, Now: time.Now}).Template(t.Context(), template, nil)
	if err != nil || len(f.Targets()) != 20 {
		t.Fatalf("%d targets, %v", len(f.Targets()), err)
	}
	if got := reads.Load(); got > 10+20 {
		t.Errorf("%d reads", got)
	}
}
