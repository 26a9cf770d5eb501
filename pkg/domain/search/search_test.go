package search

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/build"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// TestList_PagesAreTheList walks random clusters with random limits: the pages together are the list of all clusters, each has
// at most limit items, and all have the versions of all clusters.
func TestList_PagesAreTheList(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		clusters, want, versions := map[string][]string{}, []string(nil), Versions{}
		for i := range r.IntN(5) {
			name := fmt.Sprintf("m%d", i)
			for j := range r.IntN(6) {
				clusters[name] = append(clusters[name], fmt.Sprintf("%s/%d", name, j))
			}
			want = append(want, clusters[name]...)
			clusters[name] = append([]string{}, clusters[name]...)
			versions = versions.With(name, "7")
		}
		limit := int64(r.IntN(7))
		ask := func(q Query) (*Page[string], error) { return pageOf(r, clusters[q.Cluster], q), nil }
		var got []string
		for token := ""; ; {
			m, err := List(slices.Collect(maps.Keys(clusters)), Request{Continue: token, Limit: limit}, ask)
			if err != nil {
				t.Fatal(err)
			}
			if limit > 0 && int64(len(m.Items)) > limit {
				t.Fatalf("seed %d: %d items, limit %d", seed, len(m.Items), limit)
			}
			got = append(got, m.Items...)
			for _, cluster := range m.Unknown {
				m.With(cluster, "7")
			}
			if m.Versions.Encode() != versions.Encode() {
				t.Fatalf("seed %d: versions %v, want %v", seed, m.Versions.Map(), versions.Map())
			}
			if m.Next == nil {
				break
			}
			token = m.Next.Encode()
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

// pageOf answers with up to the limit of items, sometimes fewer although there are more, as a filter behind a member does.
func pageOf(r *rand.Rand, items []string, q Query) *Page[string] {
	from, _ := strconv.Atoi(q.Continue)
	to := len(items)
	if q.Limit > 0 {
		to = min(to, from+int(q.Limit))
	}
	if r.IntN(3) == 0 && to > from {
		to--
	}
	p := &Page[string]{Items: items[from:to], ResourceVersion: "7"}
	if to < len(items) {
		p.Continue = strconv.Itoa(to)
	}
	if p.Continue == "0" {
		p.Continue = "00"
	}
	return p
}

func TestList_Failures(t *testing.T) {
	failed := errors.New("etcdserver: request timed out")
	ask := func(q Query) (*Page[string], error) {
		switch q.Cluster {
		case "absent":
			return nil, apierrors.NewNotFound(configMaps, "")
		case "failing":
			return nil, failed
		case "other":
			return nil, nil
		}
		return &Page[string]{Items: []string{q.Cluster}, ResourceVersion: "3"}, nil
	}
	m, err := List([]string{"m1", "absent", "other"}, Request{}, ask)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Versions{}.With("absent", "").With("m1", "3")); m.Versions.Encode() != want.Encode() {
		t.Errorf("got %v", m.Versions.Map())
	}
	if diff := cmp.Diff([]string{"other"}, m.Unknown); diff != "" {
		t.Error(diff)
	}
	if _, err := List([]string{"m1", "failing"}, Request{}, ask); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// TestList_ClusterOfTokenLeft goes on with the next cluster.
func TestList_ClusterOfTokenLeft(t *testing.T) {
	token := Continue{Versions: NewVersions(map[string]string{"a": "1", "b": "2", "c": "3"}), Cluster: "b", Token: "5"}.Encode()
	m, err := List([]string{"a", "c"}, Request{Continue: token, Limit: 10}, func(q Query) (*Page[string], error) {
		if q.Continue != "" || q.ResourceVersion != "3" {
			t.Errorf("asked for %+v", q)
		}
		return &Page[string]{Items: []string{q.Cluster}, ResourceVersion: "3"}, nil
	})
	if err != nil || !slices.Equal(m.Items, []string{"c"}) || m.Next != nil {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestRecover(t *testing.T) {
	both := NewVersions(map[string]string{"m1": "5", "m2": "9"}).Encode()
	for name, tc := range map[string]struct {
		version, want    string
		changed, unknown bool
	}{
		"of this cluster":  {both, "5", true, false},
		"of another":       {NewVersions(map[string]string{"m2": "9"}).Encode(), "", true, true},
		"of a member":      {"77", "77", false, false},
		"none":             {"", "", false, false},
		"all of any state": {"0", "0", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: tc.version}}
			changed, unknown := Recover(o, "m1")
			if changed != tc.changed || unknown != tc.unknown || o.ResourceVersion != tc.want {
				t.Errorf("got %v, %v, %q", changed, unknown, o.ResourceVersion)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("eyJtMSI6IjUifQ")
	f.Add("eyJydiI6IjAiLCJjbHVzdGVyIjoibTEiLCJjb250aW51ZSI6InQ1In0")
	f.Add("W10")
	f.Fuzz(func(t *testing.T, text string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(text)), func() { decode(t, text) })
	})
}

// decode checks that what is valid stays the same when it is encoded, and that what is not valid counts as nothing.
func decode(t *testing.T, text string) {
	t.Helper()
	if v, ok := DecodeVersions(text); ok {
		again, ok := DecodeVersions(v.Encode())
		if !ok || !maps.Equal(again.of, v.of) && len(again.of)+len(v.of) > 0 {
			t.Errorf("%q: %v became %v", text, v, again)
		}
	} else if v.Zero || len(v.of) > 0 {
		t.Errorf("%q is not valid and has versions %v", text, v)
	}
	if c, ok := DecodeContinue(text); ok {
		again, ok := DecodeContinue(c.Encode())
		if !ok || again.Cluster != c.Cluster || again.Token != c.Token || again.Versions.Encode() != c.Versions.Encode() {
			t.Errorf("%q: %v became %v", text, c, again)
		}
	}
}

// An object that a watch sends before the version of its cluster is known can be written, and no watch begins at it.
func TestVersions_OfAnObject(t *testing.T) {
	sent := NewVersions(map[string]string{"m1": "7"}).WithObject("m2", "5")
	decoded, ok := DecodeVersions(sent.Encode())
	if !ok || decoded.Object("m2") != "5" || decoded.Object("m1") != "7" || decoded.Has("m2") {
		t.Errorf("got %v, %t", decoded, ok)
	}
	if got := decoded.OfClusters(); !slices.Equal(got.Clusters(), []string{"m1"}) {
		t.Errorf("a watch begins at %v", got)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": sent.Encode()}}}
	if _, unknown := Recover(u, "m2"); unknown || u.GetResourceVersion() != "5" {
		t.Errorf("the member gets version %s, unknown %t", u.GetResourceVersion(), unknown)
	}
}
