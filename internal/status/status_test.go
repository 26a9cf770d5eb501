package status_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/resourceversion"
	"github.com/karmada-toolkit/karmada/internal/status"
)

type namespaceWriter = status.Writer[*corev1.Namespace, *corev1.NamespaceStatus]

func options(c client.Client, clock *clocktesting.FakeClock) status.Options[*corev1.Namespace, *corev1.NamespaceStatus] {
	return status.Options[*corev1.Namespace, *corev1.NamespaceStatus]{
		Get:    func(n *corev1.Namespace) *corev1.NamespaceStatus { return &n.Status },
		Set:    func(n *corev1.Namespace, s *corev1.NamespaceStatus) { n.Status = *s },
		Shared: []string{"conditions"},
		Client: c, Live: c, Clock: clock,
	}
}

// bench is a Namespace in a store, and what a cache shows of it.
type bench struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	store   client.Client
	patches []string
	fail    []error // of the next writes
	writer  *namespaceWriter
	written status.Written[*corev1.NamespaceStatus]
	cached  *corev1.Namespace
}

func newBench(t *testing.T, adjust func(*status.Options[*corev1.Namespace, *corev1.NamespaceStatus])) *bench {
	t.Helper()
	b := &bench{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	b.store = fake.NewClientBuilder().WithObjects(obj).WithStatusSubresource(obj).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			b.patches = append(b.patches, string(data))
			if len(b.fail) > 0 {
				err, b.fail = b.fail[0], b.fail[1:]
				return err
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	opts := options(b.store, b.clock)
	if adjust != nil {
		adjust(&opts)
	}
	b.writer = status.NewWriter(opts)
	b.observe()
	return b
}

// stored returns the Namespace in the store.
func (b *bench) stored() *corev1.Namespace {
	b.t.Helper()
	out := &corev1.Namespace{}
	if err := b.store.Get(b.t.Context(), client.ObjectKey{Name: "n"}, out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// observe lets the cache show what is stored.
func (b *bench) observe() { b.cached = b.stored() }

// other changes the stored status as another controller does.
func (b *bench) other(change func(*corev1.NamespaceStatus)) {
	b.t.Helper()
	obj := b.stored()
	change(&obj.Status)
	if err := b.store.Status().Update(b.t.Context(), obj); err != nil {
		b.t.Fatal(err)
	}
}

// restore sets the stored status and its resource version back, as a restore of etcd does.
func (b *bench) restore(old *corev1.Namespace) {
	b.other(func(s *corev1.NamespaceStatus) { *s = *old.Status.DeepCopy() })
	b.cached = old.DeepCopy()
}

func (b *bench) write(change func(*corev1.NamespaceStatus)) bool {
	b.t.Helper()
	wrote, err := b.writer.Write(b.t.Context(), b.cached, &b.written, change)
	if err != nil {
		b.t.Fatal(err)
	}
	return wrote
}

func phase(p corev1.NamespacePhase) func(*corev1.NamespaceStatus) {
	return func(s *corev1.NamespaceStatus) { s.Phase = p }
}

func condition(name string) func(*corev1.NamespaceStatus) {
	return func(s *corev1.NamespaceStatus) {
		s.Conditions = append(s.Conditions, corev1.NamespaceCondition{Type: corev1.NamespaceConditionType(name), Status: corev1.ConditionTrue})
	}
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "namespaces"}, "n", errors.New("changed"))
}

func TestWriter(t *testing.T) {
	for name, tc := range map[string]struct {
		run         func(*bench)
		wantPatches []string
		wantPhase   corev1.NamespacePhase
	}{
		"no difference: nothing is written": {func(b *bench) { b.write(func(*corev1.NamespaceStatus) {}) }, nil, ""},
		"lag: the same status is not written twice": {func(b *bench) {
			b.write(phase("A"))
			if b.write(phase("A")) || b.writer.Current(b.cached, &b.written).Phase != "A" {
				b.t.Error("the cache counts although it is behind the write")
			}
		}, []string{`{"metadata":{"uid":"u"},"status":{"phase":"A"}}`}, "A"},
		"lag: the next status is compared with the written one": {func(b *bench) {
			b.write(phase("A"))
			b.write(phase(""))
		}, []string{`{"metadata":{"uid":"u"},"status":{"phase":"A"}}`, `{"metadata":{"uid":"u"},"status":{"phase":null}}`}, ""},
		"lag: a cache that is ahead of the write counts": {func(b *bench) {
			b.write(phase("A"))
			b.other(phase("B"))
			b.observe()
			if got := b.writer.Current(b.cached, &b.written).Phase; got != "B" {
				b.t.Errorf("the current phase is %q", got)
			}
		}, []string{`{"metadata":{"uid":"u"},"status":{"phase":"A"}}`}, "B"},
		"restore: a lost status is written again after the TTL": {func(b *bench) {
			old := b.cached
			b.write(phase("A"))
			b.restore(old)
			b.clock.Step(status.WrittenTTL - time.Second)
			if b.write(phase("A")) {
				b.t.Error("it is written before the TTL is over")
			}
			b.clock.Step(time.Second)
			if !b.write(phase("A")) {
				b.t.Error("it is not written again")
			}
		}, []string{`{"metadata":{"uid":"u"},"status":{"phase":"A"}}`, `{"metadata":{"uid":"u"},"status":{"phase":"A"}}`}, "A"},
		"restore: an object that was made anew has its own status": {func(b *bench) {
			b.write(phase("A"))
			b.cached.UID = "v"
			if got := b.writer.Current(b.cached, &b.written).Phase; got != "" {
				b.t.Errorf("the current phase is %q", got)
			}
		}, []string{`{"metadata":{"uid":"u"},"status":{"phase":"A"}}`}, "A"},
		"conflict: the change is applied to what is stored": {func(b *bench) {
			b.other(condition("theirs"))
			b.write(condition("ours"))
			var got []string
			for _, c := range b.stored().Status.Conditions {
				got = append(got, string(c.Type))
			}
			if diff := cmp.Diff([]string{"theirs", "ours"}, got); diff != "" {
				b.t.Error(diff)
			}
		}, []string{
			`{"metadata":{"resourceVersion":"999","uid":"u"},"status":{"conditions":[{"lastTransitionTime":null,"status":"True","type":"ours"}]}}`,
			`{"metadata":{"resourceVersion":"1000","uid":"u"},"status":{"conditions":[{"lastTransitionTime":null,"status":"True","type":"theirs"},{"lastTransitionTime":null,"status":"True","type":"ours"}]}}`,
		}, ""},
		"conflict: another writer made the same change": {func(b *bench) {
			b.fail = []error{conflict()}
			b.other(phase("A"))
			if b.write(phase("A")) {
				b.t.Error("it reports a write")
			}
		}, []string{`{"metadata":{"uid":"u"},"status":{"phase":"A"}}`}, "A"},
		"conflict: the object was replaced": {func(b *bench) {
			b.cached.UID = "old"
			b.fail = []error{conflict()}
			if b.write(phase("A")) {
				b.t.Error("it reports a write")
			}
		}, []string{`{"metadata":{"uid":"old"},"status":{"phase":"A"}}`}, ""},
		"gone: nothing is written": {func(b *bench) {
			b.fail = []error{apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n")}
			if b.write(phase("A")) || !b.written.At().IsZero() {
				b.t.Error("it reports a write")
			}
		}, []string{`{"metadata":{"uid":"u"},"status":{"phase":"A"}}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			tc.run(b)
			if diff := cmp.Diff(tc.wantPatches, b.patches); diff != "" {
				t.Error(diff)
			}
			if got := b.stored().Status.Phase; got != tc.wantPhase {
				t.Errorf("the stored phase is %q, want %q", got, tc.wantPhase)
			}
		})
	}
}

func TestWriter_ConflictsAreLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		live bool
		want int
	}{"with reads from the API server": {true, 5}, "without": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *status.Options[*corev1.Namespace, *corev1.NamespaceStatus]) {
				if !tc.live {
					o.Live = nil
				}
			})
			for range 10 {
				b.fail = append(b.fail, conflict())
			}
			_, err := b.writer.Write(t.Context(), b.cached, &b.written, phase("A"))
			if !apierrors.IsConflict(err) || len(b.patches) != tc.want {
				t.Errorf("%d attempts, %v", len(b.patches), err)
			}
		})
	}
}

func TestWriter_UpdatesWherePatchIsForbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "n", errors.New("update only"))
	b := newBench(t, func(o *status.Options[*corev1.Namespace, *corev1.NamespaceStatus]) { o.UpdateIfForbidden = true })
	b.fail = []error{forbidden}
	b.write(phase("A"))
	b.write(phase("B"))
	if got := b.stored().Status.Phase; got != "B" || len(b.patches) != 1 {
		t.Errorf("phase %s after patches %v", got, b.patches)
	}
	b = newBench(t, nil)
	b.fail = []error{forbidden}
	if _, err := b.writer.Write(t.Context(), b.cached, &b.written, phase("A")); !apierrors.IsForbidden(err) {
		t.Errorf("got error %v", err)
	}
}

func TestWriter_DryRunStoresNothing(t *testing.T) {
	b := newBench(t, nil)
	if err := b.writer.DryRun(t.Context(), b.cached, &b.written, phase("A")); err != nil {
		t.Fatal(err)
	}
	if b.stored().Status.Phase != "" || !b.written.At().IsZero() {
		t.Error("a dry run counts as a write")
	}
	b.fail = []error{apierrors.NewBadRequest("no")}
	if err := b.writer.DryRun(t.Context(), b.cached, &b.written, phase("A")); !apierrors.IsBadRequest(err) {
		t.Errorf("got error %v", err)
	}
}

func TestWriter_FieldsKeepNumbersExact(t *testing.T) {
	b := newBench(t, func(o *status.Options[*corev1.Namespace, *corev1.NamespaceStatus]) {
		o.Fields = func(s *corev1.NamespaceStatus) any { return map[string]any{"phase": json.RawMessage(s.Phase)} }
	})
	b.cached.Status.Phase = "[1]"
	b.fail = []error{apierrors.NewNotFound(schema.GroupResource{}, "")}
	b.write(phase("[9007199254740993]"))
	if want := []string{`{"metadata":{"uid":"u"},"status":{"phase":[9007199254740993]}}`}; !cmp.Equal(want, b.patches) {
		t.Errorf("got %v", b.patches)
	}
}

func TestNewer(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{{"10", "9", true}, {"9", "10", false}, {"9", "9", false}, {"x", "9", true}, {"x", "x", false}} {
		if got := resourceversion.Newer(tc.a, tc.b); got != tc.want {
			t.Errorf("Newer(%q, %q) = %t", tc.a, tc.b, got)
		}
	}
}

func TestMemory(t *testing.T) {
	m := status.NewMemory[types.UID, int](2)
	if _, ok := m.Get("a"); ok {
		t.Error("an empty memory has an entry")
	}
	m.Set("a", 1)
	m.Set("b", 2)
	m.Update("a", func(v int, found bool) (int, bool) { return v + 1, found })
	m.Set("c", 3) // above the limit
	if _, ok := m.Get("b"); ok {
		t.Error("the limit is exceeded")
	}
	if v, ok := m.Get("a"); !ok || v != 2 {
		t.Errorf("got %d, %t", v, ok)
	}
	m.Update("a", func(int, bool) (int, bool) { return 0, false })
	m.Delete("c")
	m.Update("c", func(_ int, found bool) (int, bool) {
		if found {
			t.Error("a deleted entry is found")
		}
		return 0, false
	})
	if _, ok := m.Get("a"); ok {
		t.Error("a removed entry is found")
	}
}
