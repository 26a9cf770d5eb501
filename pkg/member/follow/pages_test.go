package follow

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// settled is the end of objects that were settled.
const settled = ", settled"

// server serves a number of objects in pages.
type server struct {
	objects int
	// fits is the number of objects in a page above which it is too large.
	fits int64
	// expires is the number of the request whose continue token has expired.
	expires int
	// empty makes it return empty pages without end.
	empty bool

	limits   []int64
	requests int
}

func (s *server) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.requests++
	s.limits = append(s.limits, o.Limit)
	if o.ResourceVersion != "" || o.Limit == 0 {
		return nil, fmt.Errorf("not paged: %+v", o)
	}
	if s.requests == s.expires {
		return nil, apierrors.NewResourceExpired("too old")
	}
	if o.Limit > s.fits {
		return nil, fmt.Errorf("wrapped: %w", &access.LimitError{})
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
	list.SetResourceVersion("7")
	if s.empty {
		list.SetContinue("more")
		return list, nil
	}
	from := 0
	if o.Continue != "" {
		_, _ = fmt.Sscan(o.Continue, &from)
	}
	to := min(s.objects, from+int(o.Limit))
	for i := from; i < to; i++ {
		u := unstructured.Unstructured{}
		u.SetName(fmt.Sprint("n", i))
		list.Items = append(list.Items, u)
	}
	if to < s.objects {
		list.SetContinue(fmt.Sprint(to))
	}
	return list, nil
}

// projection returns one that keeps the names of objects, and a list of a stream that has no other.
func (s *server) projection(maxSize int) (*Projection[string], *list) {
	p := New(Config[string]{
		Name: "test", Source: source(nil, schema.GroupVersionResource{}, &complete, Selection{}),
		Project: From(func(u *unstructured.Unstructured, _ *string) (string, error) { return u.GetName(), nil }),
		Settle: func(key types.NamespacedName, value string) (types.NamespacedName, string) {
			key.Name += settled
			return key, value + settled
		},
		Size: func(s string) int { return len(s) }, MaxSize: func() int { return maxSize },
	})
	return p, &list{readers: []listed{{&p.reader, p.store.list()}}}
}

func TestList_Pages(t *testing.T) {
	for _, tc := range []struct {
		name    string
		server  server
		maxSize int
		want    int
		err     string
		limits  string
	}{
		{"one page", server{objects: 3, fits: 500}, 1 << 20, 3, "", "[500]"},
		{"several", server{objects: 1001, fits: 500}, 1 << 20, 1001, "", "[500 500 500]"},
		{"pages above the limit of a response", server{objects: 100, fits: 62}, 1 << 20, 100, "", "[500 62 62]"},
		{"pages of one object", server{objects: 3, fits: 1}, 1 << 20, 3, "", "[500 62 7 1 1 1]"},
		{"an object above the limit of a response", server{objects: 3, fits: 0}, 1 << 20, 0, "refused", "[500 62 7 1]"},
		{"a continue token that expires once", server{objects: 1001, fits: 500, expires: 2}, 1 << 20, 1001, "", "[500 500 500 500 500]"},
		{"endless empty pages", server{fits: 500, empty: true}, 1 << 20, 0, "shorter than requested", "[500]"},
		{"more bytes than MaxSize", server{objects: 1_000_000, fits: 500}, 64 << 10, 0, "more objects than can be kept", ""},
		{"more objects than the limit", server{objects: 1_000_000, fits: 500}, 1 << 40, 0, "more objects than can be kept", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, list := tc.server.projection(tc.maxSize)
			version, err := new(pager).read(t.Context(), tc.server.list, list)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
			} else if list.readers[0].replace(version); err != nil || p.Len() != tc.want || p.Version() != "7" {
				t.Fatalf("got %d of version %s, %v", p.Len(), p.Version(), err)
			}
			for i := range tc.want {
				name := fmt.Sprint("n", i, settled)
				if got := p.Get(types.NamespacedName{Name: name}); got == nil || *got != name {
					t.Errorf("%s is %v", name, got)
				}
			}
			if got := fmt.Sprint(tc.server.limits); tc.limits != "" && got != tc.limits {
				t.Errorf("got pages of %s, want %s", got, tc.limits)
			}
		})
	}
}

// TestStore_Limits adds objects one by one, as a watch does.
func TestStore_Limits(t *testing.T) {
	m, _ := (&server{}).projection(1000)
	s := m.store
	obj := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetName(name)
		return u
	}
	if got := New(Config[string]{}).cfg.MaxSize(); got != 64<<20 {
		t.Errorf("%d bytes by default", got)
	}
	refused := 0
	for i := range 100 {
		if err := s.put(obj(fmt.Sprint("n", i))); err != nil {
			refused++
		}
	}
	if m.Len() == 0 || s.size > 1000 || refused != 100-m.Len() || m.Failure() == nil {
		t.Errorf("%d objects of %d bytes, %d refused, %v", m.Len(), s.size, refused, m.Failure())
	}
	s.remove(types.NamespacedName{Name: "n0"}, "")
	if err := s.put(obj("n0")); err != nil || m.Get(types.NamespacedName{Name: "n0"}) == nil {
		t.Errorf("an object does not fit where one was removed: %v", err)
	}
	for i := range 100 {
		s.remove(types.NamespacedName{Name: fmt.Sprint("n", i)}, "")
	}
	if s.size != 0 {
		t.Errorf("an empty store has %d bytes", s.size)
	}
}

// TestList_PageSizeRemainsReducedUntilSuccess lists again after a failure, and after a success.
func TestList_PageSizeRemainsReducedUntilSuccess(t *testing.T) {
	l := &server{objects: 1}
	p := &pager{}
	read := func() error {
		_, all := l.projection(1 << 20)
		_, err := p.read(t.Context(), l.list, all)
		return err
	}
	for range 2 {
		if err := read(); !access.IsLimit(err) {
			t.Fatal(err)
		}
	}
	l.fits = 500
	for range 2 {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(l.limits), "[500 62 7 1 1 1 500]"; got != want {
		t.Errorf("got pages of %s, want %s", got, want)
	}
}

func TestScope_With(t *testing.T) {
	all, running := Selection{}, Selection{Phases: Running}
	inA, inB := Selection{Namespace: "a"}, Selection{Namespace: "b"}
	for _, tc := range []struct {
		a, b scope
		want scope
		ok   bool
	}{
		{scope{all, podViews}, scope{all, podViews}, scope{all, podViews}, true},
		{scope{all, podViews}, scope{all, &complete}, scope{all, &complete}, true},
		{scope{all, podViews}, scope{all, &metadataOnly}, scope{all, &complete}, true},
		{scope{running, podViews}, scope{running, podViews}, scope{running, podViews}, true},
		{scope{running, podViews}, scope{all, podViews}, scope{all, podViews}, true},
		{scope{running, podViews}, scope{inA, podViews}, scope{all, podViews}, true},
		{scope{inA, podViews}, scope{inA, &complete}, scope{inA, &complete}, true},
		{scope{inA, podViews}, scope{inB, podViews}, scope{}, false},
		{scope{inA, podViews}, scope{Selection{Labels: "a=b"}, podViews}, scope{}, false},
	} {
		for _, pair := range [][2]scope{{tc.a, tc.b}, {tc.b, tc.a}} {
			if got, ok := pair[0].with(pair[1]); ok != tc.ok || ok && got != tc.want {
				t.Errorf("%+v and %+v: %+v, %v", pair[0], pair[1], got, ok)
			}
		}
	}
}
