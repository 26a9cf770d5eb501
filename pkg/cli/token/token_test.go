package token

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

func TestPrintTokens(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var out, said bytes.Buffer
	e := &env.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &said}, Name: "karmadactl", Now: func() time.Time { return now }}
	err := printTokens(e, []registration.Token{
		{ID: "abcdef", Secret: "0123456789abcdef", Expires: now.Add(23 * time.Hour), Usages: []string{"authentication", "signing"}, Groups: []string{"system:bootstrappers:karmada:default-cluster-token"}},
		{ID: "bcdefg", Secret: "0123456789abcdef", Description: "for ever", Usages: []string{"signing"}},
		{ID: "cdefgh", Secret: "0123456789abcdef", Expires: now.Add(-time.Hour), Groups: []string{"system:bootstrappers:a", "system:bootstrappers:b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	build.AssertGolden(t, "list", out.String())
	out.Reset()
	if err := printTokens(e, nil); err != nil || out.Len() > 0 || said.String() != "No tokens; make one with \"karmadactl token create\"\n" {
		t.Errorf("no tokens print %q and say %q, %v", out.String(), said.String(), err)
	}
	if err := env.PrintItems(e, "json", documents(nil)); err != nil || out.String() != "{\n    \"items\": []\n}\n" {
		t.Errorf("no tokens print %q, %v", out.String(), err)
	}
}

func TestDocuments(t *testing.T) {
	got, err := json.Marshal(documents([]registration.Token{
		{ID: "abcdef", Secret: "0123456789abcdef", Expires: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Usages: []string{"signing"}, Groups: []string{"g"}},
		{ID: "bcdefg", Secret: "0123456789abcdef", Reusable: true},
	}))
	want := `[{"token":"abcdef.0123456789abcdef","expires":"2026-05-01T12:00:00Z","usages":["signing"],"groups":["g"]},` +
		`{"token":"bcdefg.0123456789abcdef","usages":null,"groups":null,"reusable":true}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestCreated pins the names of fields: scripts rely on them.
func TestCreated(t *testing.T) {
	got, err := json.Marshal(created{document: documents([]registration.Token{{ID: "abcdef", Secret: "0123456789abcdef", Usages: []string{"signing"}, Groups: []string{"g"}}})[0], Command: "karmadactl register h:1"})
	want := `{"token":"abcdef.0123456789abcdef","usages":["signing"],"groups":["g"],"command":"karmadactl register h:1"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestEndpointOf(t *testing.T) {
	for server, want := range map[string]string{
		"https://10.0.0.1:32443":  "10.0.0.1:32443",
		"https://10.0.0.1:32443/": "10.0.0.1:32443",
		"https://cp.example.com":  "cp.example.com:443",
		"https://[fd00::1]":       "[fd00::1]:443",
		"https://[fd00::1]:6443":  "[fd00::1]:6443",
	} {
		if got, err := endpointOf(server); err != nil || got != want {
			t.Errorf("%s: got %s, %v", server, got, err)
		}
	}
	for _, server := range []string{"https://h/path", "h:1", ""} {
		if got, err := endpointOf(server); err == nil {
			t.Errorf("%q gives %s", server, got)
		}
	}
}
