package agentcsr

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

func TestReconcile_DeletesRefusedRegistrations(t *testing.T) {
	now := time.Unix(1000, 0)
	key, err := pki.NewKey(pki.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: agentcert.Subject("m1")}, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		user    string
		usages  []certificatesv1.KeyUsage
		answer  certificatesv1.RequestConditionType
		age     time.Duration
		after   time.Duration
		deleted bool
	}{
		"just refused":                         {answer: certificatesv1.CertificateDenied, age: time.Minute, after: 4 * time.Minute},
		"refused long ago":                     {answer: certificatesv1.CertificateDenied, age: 5 * time.Minute, deleted: true},
		"approved":                             {answer: certificatesv1.CertificateApproved, age: time.Hour},
		"the refused renewal of an agent":      {user: names.AgentUser("m1"), answer: certificatesv1.CertificateDenied, age: time.Hour},
		"a refused request for something else": {usages: []certificatesv1.KeyUsage{certificatesv1.UsageAny}, answer: certificatesv1.CertificateDenied, age: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "m1-x", UID: "uid"},
				Spec: certificatesv1.CertificateSigningRequestSpec{
					Username: "system:bootstrap:abcdef", SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: agentcert.Usages(),
					Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				},
				Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{
					{Type: tc.answer, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(now.Add(-tc.age))},
				}},
			}
			if tc.user != "" {
				csr.Spec.Username = tc.user
			}
			if tc.usages != nil {
				csr.Spec.Usages = tc.usages
			}
			m := memory.New(t, csr)
			m.Clock.SetTime(now)
			a := &approver{client: m.Client, live: m.Client, clock: m.Clock}
			got, err := a.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csr)})
			if err != nil || got.RequeueAfter != tc.after {
				t.Errorf("%v %v", got, err)
			}
			if err := m.Stored.Get(t.Context(), client.ObjectKeyFromObject(csr), csr); apierrors.IsNotFound(err) != tc.deleted {
				t.Error(err)
			}
		})
	}
}
