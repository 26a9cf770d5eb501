package agentcert

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

func encoded(t *testing.T, template *x509.CertificateRequest) []byte {
	t.Helper()
	key, err := pki.NewKey(pki.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestRequested(t *testing.T) {
	good := func() *x509.CertificateRequest { return &x509.CertificateRequest{Subject: Subject("m1")} }
	for name, tc := range map[string]struct {
		request func(*x509.CertificateRequest)
		spec    func(*certificatesv1.CertificateSigningRequestSpec)
		ok      bool
	}{
		"exactly an agent's": {ok: true},
		"without key encipherment": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}
		}, ok: true},
		"a usage twice": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageClientAuth)
		}},
		"a further usage": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = append(s.Usages, certificatesv1.UsageServerAuth)
		}},
		"no client authentication": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
		}},
		"another signer": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.SignerName = certificatesv1.KubeletServingSignerName
		}},
		"no request": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = []byte("x") }},
		"two requests": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Request = append(s.Request, s.Request...)
		}},
		"a further group": {request: func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, "system:masters")
		}},
		"another user":     {request: func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:admin" }},
		"no cluster":       {request: func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:karmada:agent:" }},
		"a serial number":  {request: func(r *x509.CertificateRequest) { r.Subject.SerialNumber = "1" }},
		"a second CN":      {request: func(r *x509.CertificateRequest) { r.Subject.ExtraNames = extra() }},
		"a DNS name":       {request: func(r *x509.CertificateRequest) { r.DNSNames = []string{"h"} }},
		"an address":       {request: func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(1, 2, 3, 4)} }},
		"an email address": {request: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			if tc.request != nil {
				tc.request(r)
			}
			spec := &certificatesv1.CertificateSigningRequestSpec{
				Request: encoded(t, r), SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: Usages(),
			}
			if tc.spec != nil {
				tc.spec(spec)
			}
			cluster, ok := Requested(spec)
			if ok != tc.ok || ok && cluster != "m1" {
				t.Errorf("got %q, %v", cluster, ok)
			}
		})
	}
}

// extra is a subject with its common name twice.
func extra() []pkix.AttributeTypeAndValue {
	return []pkix.AttributeTypeAndValue{
		{Type: []int{2, 5, 4, 3}, Value: "system:karmada:agent:m2"}, {Type: []int{2, 5, 4, 3}, Value: "system:karmada:agent:m1"},
	}
}

func TestProven(t *testing.T) {
	csr := func(proof string) *certificatesv1.CertificateSigningRequest {
		out := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Request: []byte("r")}}
		out.Annotations = map[string]string{ProofAnnotation: proof}
		return out
	}
	for name, tc := range map[string]struct {
		id, proof string
		want      bool
	}{
		"who knows the id":             {"id", Proof("id", []byte("r")), true},
		"the proof of another request": {"id", Proof("id", []byte("other")), false},
		"another id":                   {"id", Proof("x", []byte("r")), false},
		"the id itself":                {"id", "id", false},
		"no proof":                     {"id", "", false},
		"no id":                        {"", Proof("", []byte("r")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Proven(tc.id, csr(tc.proof)); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
