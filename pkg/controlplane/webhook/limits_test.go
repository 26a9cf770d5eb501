package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const spaces = "                                                                "

// endless is a body without an end, made up of one byte, that counts what is read
// of it.
type endless struct {
	mu   sync.Mutex
	read int64
	max  int64
}

func (e *endless) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.read >= e.max {
		return 0, io.EOF
	}
	for n := 0; n < len(p); n += copy(p[n:], spaces) {
	}
	e.read += int64(len(p))
	return len(p), nil
}

// attacked is a webhook server that asks for client certificates.
type attacked struct {
	url string
	ca  pki.Pair
	// caFile is the file of its authorities.
	caFile string
	t      *testing.T
}

func newAttacked(t *testing.T) *attacked {
	t.Helper()
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "karmada"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(path, ca.CertPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	address := startServer(t, dir, func(o *Options) { o.ClientCAFile = path })
	a := &attacked{url: "https://" + address, ca: ca, caFile: path, t: t}
	anonymous := a.client("")
	eventually(t, "the server answers", func() bool {
		resp, err := anonymous.Get(a.url + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return a
}

// client returns a client with a certificate of the authority, or without one.
func (a *attacked) client(commonName string) *http.Client {
	a.t.Helper()
	cfg := &tls.Config{InsecureSkipVerify: true}
	if commonName != "" {
		pair, err := pki.NewLeaf(pki.LeafConfig{CommonName: commonName, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.ca, time.Now())
		if err != nil {
			a.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair.TLS()}
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}}
	a.t.Cleanup(c.CloseIdleConnections)
	return c
}

// post sends a body and returns the status code and the start of the answer; 0 is a
// connection that was cut off.
func (a *attacked) post(c *http.Client, path string, body io.Reader) (int, string) {
	a.t.Helper()
	resp, err := c.Post(a.url+path, "application/json", body)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return resp.StatusCode, string(text)
}

func TestServer_OtherAuthoritiesOfClients(t *testing.T) {
	a := newAttacked(t)
	old := a.client(names.WebhookClientUser)
	next, err := pki.NewCA(pki.CAConfig{CommonName: "next"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.caFile, next.CertPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	a.ca = next
	const path = "/mutate-overridepolicy"
	eventually(t, "a client of the new authority is accepted", func() bool {
		code, _ := a.post(a.client(names.WebhookClientUser), path, strings.NewReader(review))
		return code == http.StatusOK
	})
	if code, text := a.post(old, path, strings.NewReader(review)); code != http.StatusUnauthorized {
		t.Errorf("a client of the old authority: %d %s", code, text)
	}
}

func paths(t *testing.T) []string {
	t.Helper()
	handlers, err := Handlers(Deps{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for path := range handlers {
		if !strings.HasPrefix(path, "/readyz") {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
	`"kind":{"group":"policy.karmada.io","version":"v1alpha1","kind":"OverridePolicy"},"object":{"apiVersion":"policy.karmada.io/v1alpha1","kind":"OverridePolicy","metadata":{"name":"o","namespace":"d"}}}}`

func TestWebhook_Limits(t *testing.T) {
	a := newAttacked(t)
	server := a.client(names.WebhookClientUser)

	t.Run("the API server's reviews are answered", func(t *testing.T) {
		code, text := a.post(server, "/mutate-overridepolicy", strings.NewReader(review))
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusOK || answer.Response == nil || !answer.Response.Allowed {
			t.Errorf("%d %s (%v)", code, text, err)
		}
	})
	t.Run("no certificate: no path but conversion answers", func(t *testing.T) {
		anonymous := a.client("")
		for _, path := range paths(t) {
			code, text := a.post(anonymous, path, strings.NewReader(review))
			want := http.StatusUnauthorized
			if path == convertPath {
				want = http.StatusOK
			}
			if code != want {
				t.Errorf("%s: %d %s, want %d", path, code, text, want)
			}
		}
	})
	t.Run("the certificate of an agent or of a member is not the API server's", func(t *testing.T) {
		for _, name := range []string{names.AgentUser("member1"), "system:admin", names.ComponentUser("scheduler")} {
			c := a.client(name)
			for _, path := range paths(t) {
				if path == convertPath {
					continue
				}
				if code, text := a.post(c, path, strings.NewReader(review)); code != http.StatusForbidden {
					t.Errorf("%s as %s: %d %s", path, name, code, text)
				}
			}
		}
	})
	t.Run("the certificate of another authority is refused", func(t *testing.T) {
		other, err := pki.NewCA(pki.CAConfig{CommonName: "karmada"}, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		forged := &attacked{url: a.url, ca: other, t: t}
		if code, text := forged.post(forged.client(names.WebhookClientUser), "/mutate-overridepolicy", strings.NewReader(review)); code != 0 {
			t.Errorf("%d %s", code, text)
		}
	})
	t.Run("no path reads more than 7 MiB", func(t *testing.T) {
		for _, path := range paths(t) {
			body := &endless{max: 700 << 20}
			code, text := a.post(server, path, body)
			switch {
			case code == http.StatusOK && strings.Contains(text, `"code":413`):
			case code == http.StatusRequestEntityTooLarge, code == 0: // the rest was not waited for
			default:
				t.Errorf("%s: %d %s", path, code, text)
			}
			if body.read > 3*MaxBodyBytes {
				t.Errorf("%s: %d MiB were taken", path, body.read>>20)
			}
		}
	})
	t.Run("a conversion of 7 MiB is read, one byte more is too large", func(t *testing.T) {
		anonymous := a.client("")
		head, tail := `{"request":{"uid":"u","desiredAPIVersion":"work.karmada.io/v1alpha2","objects":[]`, "}}"
		fits := head + strings.Repeat(" ", MaxBodyBytes-len(head)-len(tail)) + tail
		if code, text := a.post(anonymous, convertPath, strings.NewReader(fits)); code != http.StatusOK {
			t.Errorf("at the limit: %d %s", code, text)
		}
		code, text := a.post(anonymous, convertPath, strings.NewReader(" "+fits))
		if want := fmt.Sprintf("request entity is too large; limit is %d bytes\n", MaxBodyBytes); code != http.StatusRequestEntityTooLarge || text != want {
			t.Errorf("over the limit: %d %s", code, text)
		}
	})
}

// TestWebhook_LimitsMemory sends many large conversions at the same time, as
// every client can that reaches the port.
func TestWebhook_LimitsMemory(t *testing.T) {
	before := heap()
	var mu sync.Mutex
	var peak uint64
	decode := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		peak = max(peak, heap())
	})
	handler := buffered(decode, 2)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://webhook/convert", &endless{max: MaxBodyBytes})
			if err != nil {
				t.Error(err)
				return
			}
			handler.ServeHTTP(&discard{header: http.Header{}}, r)
		})
	}
	group.Wait()
	if grown := int64(peak) - int64(before); grown > 100<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// discard is a response without a reader.
type discard struct {
	bytes.Buffer
	header http.Header
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
