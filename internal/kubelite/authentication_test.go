package kubelite

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestCertificateCache(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate := func(raw, name string, valid time.Duration) *x509.Certificate {
		return &x509.Certificate{Raw: []byte(raw), Subject: pkix.Name{CommonName: name}, NotAfter: start.Add(valid)}
	}
	request := func(c *x509.Certificate, header ...string) *http.Request {
		req := &http.Request{Header: http.Header{}}
		if c != nil {
			req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
		}
		for _, h := range header {
			req.Header.Set(h, "x")
		}
		return req
	}
	alice := certificate("alice", "alice", time.Hour)
	for _, tc := range []struct {
		name   string
		first  *http.Request
		after  time.Duration
		second *http.Request
		user   string
		err    error
		want   int // verifications
	}{
		{"the same certificate again", request(alice), 9 * time.Second, request(alice), "alice", nil, 1},
		{"the same certificate of another connection", request(alice), 0, request(certificate("alice", "alice", time.Hour)), "alice", nil, 1},
		{"after the time that tokens count", request(alice), certificateTTL, request(alice), "alice", nil, 2},
		{"expired meanwhile", request(certificate("a", "alice", time.Second)), time.Second, request(certificate("a", "alice", time.Second)), "alice", nil, 2},
		{"another certificate of the same name", request(alice), 0, request(certificate("other", "alice", time.Hour)), "alice", nil, 2},
		{"a front proxy names a user", request(alice), 0, request(alice, "X-Remote-User"), "alice", nil, 2},
		{"with a token", request(alice), 0, request(alice, "Authorization"), "alice", nil, 2},
		{"with a token of a browser", request(alice), 0, request(alice, "Sec-WebSocket-Protocol"), "alice", nil, 2},
		{"authenticated by a token before", request(alice, "Authorization"), 0, request(alice), "alice", nil, 2},
		{"no certificate", request(nil), 0, request(nil), "alice", nil, 2},
		{"the user is not the certificate's", request(alice), 0, request(alice), user.Anonymous, nil, 2},
		{"refused", request(alice), 0, request(alice), "", errors.New("unknown authority"), 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			verified, clock := 0, clocktesting.NewFakePassiveClock(start)
			c := newCertificateCache(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				verified++
				return &authenticator.Response{User: &user.DefaultInfo{Name: tc.user}}, tc.err == nil, tc.err
			}), clock)
			for _, req := range []*http.Request{tc.first, tc.second} {
				got, ok, err := c.AuthenticateRequest(req)
				if ok != (tc.err == nil) || !errors.Is(err, tc.err) || ok && got.User.GetName() != tc.user {
					t.Errorf("got %v, %v, %v", got, ok, err)
				}
				clock.SetTime(start.Add(tc.after))
			}
			if verified != tc.want {
				t.Errorf("verified %d times, want %d", verified, tc.want)
			}
		})
	}
}
