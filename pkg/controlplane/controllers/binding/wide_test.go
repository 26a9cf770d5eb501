package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// wideHarness returns a harness with a binding of n targets, w000 and so on.
func wideHarness(t *testing.T, n int) *harness {
	t.Helper()
	b := resourceBinding(nil)
	var stored []client.Object
	for i := range n {
		name := fmt.Sprintf("w%03d", i)
		stored = append(stored, build.Cluster(name))
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 1})
	}
	return newHarness(t, deployment(), b, stored...)
}

// slices reconciles until no slice is left, and returns the writes of each. The writes are about other Works each time.
func (h *harness) slices() []int {
	h.Helper()
	var out []int
	seen := sets.New[string]()
	for {
		result, err := h.reconcile()
		if err != nil {
			h.Fatal(err)
		}
		wrote := h.Writes()
		if seen.HasAny(wrote...) {
			h.Errorf("slice %d writes again what an earlier one wrote", len(out))
		}
		seen.Insert(wrote...)
		out = append(out, len(wrote))
		if result.RequeueAfter == 0 || len(out) > 20 {
			return out
		}
	}
}

func (h *harness) wantSlices(total int) {
	h.Helper()
	got, sum := h.slices(), 0
	for _, n := range got {
		if sum += n; n > slice+parallel {
			h.Errorf("a slice has %d writes", n)
		}
	}
	if sum != total || len(got) < total/(slice+parallel) {
		h.Errorf("writes %v, want %d together", got, total)
	}
}

func TestReconcile_WideBindingGivesItsWorkerBack(t *testing.T) {
	const n = 3*slice + 20
	h := wideHarness(t, n)
	h.wantSlices(n)
	if got := len(h.clustersWithWorks()); got != n {
		t.Fatalf("%d works", got)
	}
	h.wantSlices(0) // nothing changes
	h.change(func(spec *workv1alpha2.ResourceBindingSpec) { spec.PreserveResourcesOnDeletion = new(true) })
	if _, err := h.reconcile(); err != nil { // one slice, and then another change
		t.Fatal(err)
	}
	h.Writes()
	h.change(func(spec *workv1alpha2.ResourceBindingSpec) { spec.PreserveResourcesOnDeletion = new(false) })
	h.slices()
	for i := range n {
		if work := h.work(fmt.Sprintf("w%03d", i)); *work.Spec.PreserveResourcesOnDeletion {
			t.Fatalf("the work in w%03d has the spec from before", i)
		}
	}
	h.Writes()
	h.change(func(spec *workv1alpha2.ResourceBindingSpec) { spec.Clusters = spec.Clusters[:1] })
	for range n { // the finalizers keep the Works, so deletions are requested again
		list := h.works()
		for i := range list {
			if list[i].DeletionTimestamp != nil {
				list[i].Finalizers = nil
				h.Must(h.Stored.Update(t.Context(), &list[i]))
			}
		}
		result, err := h.reconcile()
		if err != nil {
			t.Fatal(err)
		}
		if wrote := h.Writes(); len(wrote) > slice {
			t.Errorf("%d works are deleted at once", len(wrote))
		}
		if result.RequeueAfter == 0 {
			break
		}
	}
	remaining := slices.DeleteFunc(h.works(), func(w workv1alpha1.Work) bool { return w.DeletionTimestamp != nil })
	if len(remaining) != 1 {
		t.Errorf("%d works remain", len(remaining))
	}
}

// Clusters whose Works are refused end no slice and do not keep the others waiting; what failed is reported at the end.
func TestReconcile_WideBindingWithRefusedWorks(t *testing.T) {
	const n = 3 * slice
	h := wideHarness(t, n)
	refused := errors.New("refused")
	h.Before = func(request string) error {
		if strings.HasPrefix(request, "create Work ") && request < "create Work karmada-es-w070" {
			return refused
		}
		return nil
	}
	for range 10 {
		result, err := h.reconcile()
		if err == nil && result.RequeueAfter == 0 {
			t.Fatal("the failure is not reported")
		}
		if err != nil {
			if !errors.Is(err, refused) || len(h.clustersWithWorks()) != n-70 {
				t.Errorf("%d works, error %v", len(h.clustersWithWorks()), err)
			}
			return
		}
	}
	t.Error("the slices do not end")
}

func TestTenant_WideBindings(t *testing.T) {
	for n, want := range map[int]string{2: "default", slice: "default", slice + 1: controllers.Bulk("default")} {
		h := wideHarness(t, n)
		if got := h.r.tenant(t.Context(), h.key); got != want {
			t.Errorf("%d targets: %q, want %q", n, got, want)
		}
	}
}
