package agentrbac

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

func TestExcess(t *testing.T) {
	created := func(kind string, from, count int) []*certificatesv1.CertificateSigningRequest {
		var out []*certificatesv1.CertificateSigningRequest
		for i := from; i < from+count; i++ {
			csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s%d", kind, i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
			}}
			switch kind {
			case "signed":
				csr.Status.Certificate = []byte("certificate")
			case "denied":
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
			case "approved":
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
			}
			out = append(out, csr)
		}
		return out
	}
	for name, tc := range map[string]struct {
		have []*certificatesv1.CertificateSigningRequest
		want string
	}{
		"none":                                        {nil, ""},
		"five of each":                                {slices.Concat(created("open", 0, 5), created("signed", 5, 5)), ""},
		"the newest pending ones are deleted":         {created("open", 0, 7), "open5 open6"},
		"approved ones are pending":                   {slices.Concat(created("approved", 0, 3), created("open", 3, 3)), "open5"},
		"the oldest completed ones are deleted":       {slices.Concat(created("signed", 3, 4), created("denied", 0, 3)), "denied0 denied1"},
		"in any order":                                {slices.Concat(created("open", 4, 3), created("open", 0, 4)), "open5 open6"},
		"completed ones do not displace pending ones": {slices.Concat(created("denied", 0, 9), created("open", 9, 1)), "denied0 denied1 denied2 denied3"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, csr := range excess(tc.have) {
				got = append(got, csr.Name)
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

func TestGranter_ForgetsTheRequestsOfAClusterThatLeaves(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(name, user, subject string, issued bool) client.Object {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject}}, key)
		if err != nil {
			t.Fatal(err)
		}
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: user, SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		}}
		if issued {
			csr.Status.Certificate = []byte("certificate")
		}
		return csr
	}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(
		request("of-the-agent", names.AgentUser("m1"), names.AgentUser("m1"), true), request("of-register", "system:bootstrap:abcdef", names.AgentUser("m1"), true),
		request("pending", "system:bootstrap:abcdef", names.AgentUser("m1"), false), request("of-another-agent", names.AgentUser("m2"), names.AgentUser("m2"), true),
		request("of-a-user", "jane", "jane", true),
	).Build()
	if err := (&Granter{client: c}).forget(t.Context(), "m1"); err != nil {
		t.Fatal(err)
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var left []string
	for i := range list.Items {
		left = append(left, list.Items[i].Name)
	}
	if want := []string{"of-a-user", "of-another-agent", "pending"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}
