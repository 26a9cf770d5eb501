package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

func (s *server) projection(maxSize int) *Projection[string] {
	return New(Config[string]{
		Name: "test", Source: Source{List: s.list},
		Project: func(obj runtime.Object, _ *string) (string, error) {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok {
				return "", errors.New("unexpected")
			}
			return u.GetName(), nil
		},
		Settle: func(key types.NamespacedName, value string) (types.NamespacedName, string) {
			key.Name += settled
			return key, value + settled
		},
		Size: func(s string) int { return len(s) }, MaxSize: func() int { return maxSize },
	})
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
			list, err := tc.server.projection(tc.maxSize).lister.list(t.Context())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
			} else if err != nil || len(list.Items) != tc.want || list.ResourceVersion != "7" {
				t.Fatalf("got %v, %v", list, err)
			}
			for i := range tc.want {
				if p, ok := list.Items[i].(*projected[string]); !ok || p.Name != fmt.Sprint("n", i, settled) || *p.value != p.Name {
					t.Errorf("object %d is %v", i, list.Items[i])
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
	m := (&server{}).projection(1000)
	s := m.store
	obj := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetName(name)
		return u
	}
	refused := 0
	for i := range 100 {
		if err := s.Add(obj(fmt.Sprint("n", i))); err != nil {
			refused++
		}
	}
	if m.Len() == 0 || s.size > 1000 || refused != 100-m.Len() || m.Failure() == nil {
		t.Errorf("%d objects of %d bytes, %d refused, %v", m.Len(), s.size, refused, m.Failure())
	}
	if err := s.Delete(obj("n0")); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(obj("n0")); err != nil || m.Get(types.NamespacedName{Name: "n0"}) == nil {
		t.Errorf("an object does not fit where one was removed: %v", err)
	}
	for i := range 100 {
		_ = s.Delete(obj(fmt.Sprint("n", i)))
	}
	if s.size != 0 {
		t.Errorf("an empty store has %d bytes", s.size)
	}
}

// TestList_PageSizeRemainsReducedUntilSuccess lists again after a failure, and after a success.
func TestList_PageSizeRemainsReducedUntilSuccess(t *testing.T) {
	l := &server{objects: 1}
	m := l.projection(1 << 20)
	for range 2 {
		if _, err := m.lister.list(t.Context()); !access.IsLimit(err) {
			t.Fatal(err)
		}
	}
	l.fits = 500
	for range 2 {
		if _, err := m.lister.list(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(l.limits), "[500 62 7 1 1 1 500]"; got != want {
		t.Errorf("got pages of %s, want %s", got, want)
	}
}
