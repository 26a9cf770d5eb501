package member

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	testID     = "abcdef"
	testSecret = "0123456789abcdef"
	testToken  = testID + "." + testSecret
)

// sealed returns the signature of a token as the control plane writes it.
func sealed(payload, id, secret string) string {
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(header + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))))
	return header + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// publicServer serves what anonymous users may read of a control plane. Change
// changes the response; status replaces it.
func publicServer(t *testing.T, status int, change func(cm *corev1.ConfigMap, ca []byte)) (endpoint string, pins []string) {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status != 0 || r.URL.Path != "/api/v1/namespaces/kube-public/configmaps/cluster-info" || r.Header.Get("Authorization") != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(max(status, http.StatusBadRequest))
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + map[int]string{403: "Forbidden", 404: "NotFound"}[status] + `","code":` + map[int]string{403: "403", 404: "404"}[status] + `}`))
			return
		}
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		objects, err := registration.Bootstrap(server.URL, ca)
		if err != nil {
			t.Error(err)
			return
		}
		cm := objects[0].(*corev1.ConfigMap)
		cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		cm.Data["jws-kubeconfig-"+testID] = sealed(cm.Data["kubeconfig"], testID, testSecret)
		if change != nil {
			change(cm, ca)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, json.SerializerOptions{}).Encode(cm, w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	pins, err := Pins(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(server.URL, "https://"), pins
}

func TestDiscover_FindsTheControlPlane(t *testing.T) {
	endpoint, pins := publicServer(t, 0, nil)
	for name, d := range map[string]Discovery{
		"by its pin":               {Pins: pins},
		"by a pin in capitals":     {Pins: []string{"sha256:" + strings.ToUpper(strings.TrimPrefix(pins[0], "sha256:"))}},
		"by one pin of several":    {Pins: append([]string{"sha256:" + strings.Repeat("a", 64)}, pins...)},
		"by the word of the token": {Unpinned: true},
	} {
		t.Run(name, func(t *testing.T) {
			d.Endpoint, d.Token, d.Timeout = endpoint, testToken, 2*time.Minute
			server, err := Discover(t.Context(), d, nil)
			if err != nil || server.URL != "https://"+endpoint || len(server.CABundle) == 0 {
				t.Errorf("got %v, %v", server, err)
			}
		})
	}
}

// Of several authorities one is pinned, and it must be that of the server.
func TestDiscover_SeveralAuthorities(t *testing.T) {
	next, err := pki.NewCA(pki.CAConfig{CommonName: "next"}, nil, time.Unix(1_900_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	pinsOfNext, err := Pins(next.CertPEM())
	if err != nil {
		t.Fatal(err)
	}
	endpoint, pins := publicServer(t, 0, func(cm *corev1.ConfigMap, ca []byte) {
		objects, err := registration.Bootstrap("https://control-plane", slices.Concat(next.CertPEM(), ca))
		if err != nil {
			t.Error(err)
			return
		}
		cm.Data["kubeconfig"] = objects[0].(*corev1.ConfigMap).Data["kubeconfig"]
		cm.Data["jws-kubeconfig-"+testID] = sealed(cm.Data["kubeconfig"], testID, testSecret)
	})
	for name, tc := range map[string]struct {
		pins []string
		is   error
	}{
		"that of the server is pinned":   {pins, nil},
		"both are pinned":                {slices.Concat(pinsOfNext, pins), nil},
		"the other is pinned":            {pinsOfNext, ErrIdentity},
		"neither is pinned":              {[]string{"sha256:" + strings.Repeat("a", 64)}, ErrPin},
		"none, by the word of the token": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := Discovery{Endpoint: endpoint, Token: testToken, Timeout: 2 * time.Minute, Pins: tc.pins, Unpinned: tc.pins == nil}
			server, err := Discover(t.Context(), d, nil)
			if !errors.Is(err, tc.is) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			if got, err := Pins(server.CABundle); err != nil || !slices.Equal(got, slices.Concat(pinsOfNext, pins)) {
				t.Errorf("what the control plane trusts is not complete: %v, %v", got, err)
			}
		})
	}
}

func TestDiscover_EachMistakeHasItsError(t *testing.T) {
	endpoint, pins := publicServer(t, 0, nil)
	_, port, _ := strings.Cut(endpoint, ":")
	other, otherPins := publicServer(t, 0, func(cm *corev1.ConfigMap, _ []byte) { delete(cm.Data, "jws-kubeconfig-"+testID) })
	missing, _ := publicServer(t, http.StatusNotFound, nil)
	closed, _ := publicServer(t, http.StatusForbidden, nil)
	wrong := []string{"sha256:" + strings.Repeat("a", 64)}
	for name, tc := range map[string]struct {
		d    Discovery
		is   error
		text string
	}{
		"no token":                        {Discovery{Endpoint: endpoint, Pins: pins}, nil, "is not of the form"},
		"a malformed pin":                 {Discovery{Endpoint: endpoint, Token: testToken, Pins: []string{"sha256:12"}}, nil, "64 hexadecimal digits"},
		"neither pin nor trust":           {Discovery{Endpoint: endpoint, Token: testToken}, nil, "need to verify CACertHashes"},
		"another authority":               {Discovery{Endpoint: endpoint, Token: testToken, Pins: wrong}, ErrPin, "another control plane"},
		"an unknown token":                {Discovery{Endpoint: other, Token: testToken, Pins: otherPins}, ErrToken, "has expired"},
		"an unknown token, short timeout": {Discovery{Endpoint: other, Token: testToken, Pins: otherPins, Timeout: 3 * time.Second}, ErrToken, "was used for a cluster that is gone"},
		"nothing to read, short timeout":  {Discovery{Endpoint: missing, Token: testToken, Pins: pins, Timeout: 3 * time.Second}, nil, "no control plane that clusters can register at"},
		"another secret":                  {Discovery{Endpoint: endpoint, Token: "abcdef.fedcba9876543210", Pins: pins}, ErrToken, "its secret is another"},
		"another name":                    {Discovery{Endpoint: "localhost:" + port, Token: testToken, Pins: pins}, ErrName, "127.0.0.1"},
		"nothing to read":                 {Discovery{Endpoint: missing, Token: testToken, Pins: pins}, nil, "no control plane that clusters can register at"},
		"no anonymous access":             {Discovery{Endpoint: closed, Token: testToken, Pins: pins}, nil, "does not let anonymous users read"},
		"not reachable":                   {Discovery{Endpoint: "127.0.0.1:1", Token: testToken, Pins: pins, Timeout: time.Second}, nil, "does not answer for 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.d.Timeout == 0 {
				tc.d.Timeout = 2 * time.Minute
			}
			_, err := Discover(t.Context(), tc.d, nil)
			for strings.HasSuffix(name, "short timeout") && err != nil && strings.Contains(err.Error(), "does not answer") {
				tc.d.Timeout *= 2 // it was too short for this machine
				_, err = Discover(t.Context(), tc.d, nil)
			}
			if err == nil || !strings.Contains(err.Error(), tc.text) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSignatureValid(t *testing.T) {
	good := sealed("payload", testID, testSecret)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"`+testID+`"}`)) + ".."
	for name, tc := range map[string]struct {
		signature, payload, id, secret string
		want                           bool
	}{
		"what the token signed":        {good, "payload", testID, testSecret, true},
		"another payload":              {good, "Payload", testID, testSecret, false},
		"another secret":               {good, "payload", testID, "fedcba9876543210", false},
		"the signature of another id":  {good, "payload", "aaaaaa", testSecret, false},
		"no algorithm":                 {none, "payload", testID, testSecret, false},
		"no signature":                 {"", "payload", testID, testSecret, false},
		"a payload within":             {strings.Replace(good, "..", ".cGF5bG9hZA.", 1), "payload", testID, testSecret, false},
		"a header that is not encoded": {"{}..x", "payload", testID, testSecret, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := signatureValid(tc.signature, tc.payload, tc.id, tc.secret); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
