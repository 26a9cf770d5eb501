package conformance

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/webhook"
)

//go:embed testdata/admission.jsonl.gz
var admissionCases []byte

// admissionReader opens admission.jsonl in the directory that CONFORMANCE_DATA
// names, or else the cases in the repository.
func admissionReader(t *testing.T) io.Reader {
	t.Helper()
	dir := os.Getenv("CONFORMANCE_DATA")
	if dir == "" {
		r, err := gzip.NewReader(bytes.NewReader(admissionCases))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	f, err := os.Open(filepath.Join(dir, "admission.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestAdmission(t *testing.T) {
	cases, err := readAdmission(admissionReader(t))
	if err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(kube.NewScheme()).Build()
	handlers, err := webhook.Handlers(webhook.Deps{
		NewID: func() string { return string(uuid.NewUUID()) }, Reader: reader, LiveReader: reader, Writer: reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := newAdmissionServer(handlers)
	if err != nil {
		t.Fatal(err)
	}
	passed, sameText := 0, 0
	for _, c := range cases {
		got, err := server.Create(t.Context(), c.Path, c.Object)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if diff := diffAnswers(c.Expect, got); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
			continue
		}
		passed++
		if c.Expect.Message == got.Message {
			sameText++
		}
	}
	t.Logf("%d of %d cases, %d with the same text", passed, len(cases), sameText)
}
