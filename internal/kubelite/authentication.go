package kubelite

import (
	"crypto/x509"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// certificateTTL is how long a verified client certificate counts without another verification, as long as tokens do.
	certificateTTL = 10 * time.Second
	// remoteUserHeader is the header by which a front proxy names the user.
	remoteUserHeader = "X-Remote-User"
	// maxCertificates limits the verified certificates that are kept.
	maxCertificates = 1024
)

// certificateCache authenticates requests by client certificates that were verified less than ten seconds before. To verify one takes
// the API server longer than many requests themselves.
type certificateCache struct {
	next     authenticator.Request
	clock    clock.PassiveClock
	verified *lru.Cache
}

type verifiedCertificate struct {
	response *authenticator.Response
	until    time.Time
}

func newCertificateCache(next authenticator.Request, clock clock.PassiveClock) *certificateCache {
	return &certificateCache{next: next, clock: clock, verified: lru.New(maxCertificates)}
}

// AuthenticateRequest implements authenticator.Request.
func (c *certificateCache) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	leaf := onlyCredential(req)
	if leaf == nil {
		return c.next.AuthenticateRequest(req)
	}
	now := c.clock.Now()
	if known, ok := c.verified.Get(string(leaf.Raw)); ok {
		if v := known.(verifiedCertificate); now.Before(v.until) {
			return v.response, true, nil
		}
	}
	response, ok, err := c.next.AuthenticateRequest(req)
	if ok && err == nil && response.User.GetName() == leaf.Subject.CommonName {
		until := now.Add(certificateTTL)
		if leaf.NotAfter.Before(until) {
			until = leaf.NotAfter
		}
		c.verified.Add(string(leaf.Raw), verifiedCertificate{response, until})
	}
	return response, ok, err
}

// onlyCredential returns the client certificate of a request that has nothing else that authenticates it: neither a
// token nor a user that a front proxy names.
func onlyCredential(req *http.Request) *x509.Certificate {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return nil
	}
	for _, header := range []string{remoteUserHeader, "Authorization", "Sec-Websocket-Protocol"} {
		if len(req.Header[header]) > 0 {
			return nil
		}
	}
	return req.TLS.PeerCertificates[0]
}
