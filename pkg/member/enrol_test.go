package member

import (
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestPresent_ANewTokenMayNotBeKnownYet(t *testing.T) {
	unauthorized := apierrors.NewUnauthorized("Unauthorized")
	for name, test := range map[string]struct {
		refusals int
		refusal  error
		accepted bool
		atMost   time.Duration
	}{
		"known at once":  {refusals: 0, accepted: true, atMost: time.Millisecond},
		"known later":    {refusals: 4, refusal: unauthorized, accepted: true, atMost: time.Second},
		"never accepted": {refusals: 1000, refusal: unauthorized, atMost: tokenAcceptTimeout + lastInterval},
		"a restart":      {refusals: 100, refusal: apierrors.NewServiceUnavailable("starting"), accepted: true, atMost: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				left := test.refusals
				s.refuse = func(string, client.Object) error {
					if left--; left >= 0 {
						return test.refusal
					}
					return nil
				}
				start := time.Now()
				csr := newRequest(EnrolRequest{Name: "m1", ID: "id"}, []byte("request"))
				err := present(t.Context(), s, csr, time.Minute, nil)
				if test.accepted != (err == nil) || !test.accepted && !apierrors.IsUnauthorized(err) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start); took > test.atMost {
					t.Errorf("it took %s", took)
				}
				if got := s.Get(t.Context(), client.ObjectKeyFromObject(csr), &certificatesv1.CertificateSigningRequest{}); test.accepted != (got == nil) {
					t.Errorf("the request on the server: %v", got)
				}
			})
		})
	}
}
