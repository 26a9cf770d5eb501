package search

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/build"
)

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
	body, err := ToMember(FormatJSON, []byte(`{"metadata":{"resourceVersion":"`+sent.Encode()+`"}}`), "m2")
	if want := `{"metadata":{"resourceVersion":"5"}}`; err != nil || strings.TrimSpace(string(body)) != want {
		t.Errorf("the member gets %s, %v", body, err)
	}
}
