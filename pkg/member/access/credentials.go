package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// SecretReader reads a Secret of the control plane.
type SecretReader func(ctx context.Context, namespace, name string) (*corev1.Secret, error)

// Credentials are the content of a cluster's Secret.
type Credentials struct {
	Token string
	CA    []byte
}

// ReadCredentials reads the credentials of the control plane for a cluster. It fails for
// a Cluster without an endpoint or a Secret, and for a Secret that lacks a key.
func ReadCredentials(ctx context.Context, cluster *clusterv1alpha1.Cluster, read SecretReader) (Credentials, error) {
	if cluster.Spec.APIEndpoint == "" {
		return Credentials{}, fmt.Errorf("the api endpoint of cluster %s is empty", cluster.Name)
	}
	ref := cluster.Spec.SecretRef
	if ref == nil {
		return Credentials{}, fmt.Errorf("cluster %s does not have a secret", cluster.Name)
	}
	secret, err := read(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return Credentials{}, fmt.Errorf("reading the secret of cluster %s: %w", cluster.Name, err)
	}
	token := secret.Data[clusterv1alpha1.SecretTokenKey]
	if len(token) == 0 {
		return Credentials{}, fmt.Errorf("the secret for cluster %s is missing a non-empty value for %q", cluster.Name, clusterv1alpha1.SecretTokenKey)
	}
	c := Credentials{Token: string(token)}
	if cluster.Spec.InsecureSkipTLSVerification {
		return c, nil
	}
	ca, ok := secret.Data[clusterv1alpha1.SecretCADataKey]
	if !ok {
		return Credentials{}, fmt.Errorf("the secret for cluster %s is missing the CA data key %q", cluster.Name, clusterv1alpha1.SecretCADataKey)
	}
	c.CA = ca
	return c, nil
}

// tokens returns the bearer token of one cluster. It reads the Secret again when the
// token is old, and when the cluster rejects it.
type tokens struct {
	read   func(context.Context) (Credentials, error)
	clock  clock.PassiveClock
	maxAge time.Duration

	mu        sync.Mutex
	current   Credentials
	readAt    time.Time
	caChanged bool
}

// get returns the token. If the Secret cannot be read, that is the previous one.
func (t *tokens) get(ctx context.Context) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clock.Since(t.readAt) >= t.maxAge {
		t.reload(ctx)
	}
	return t.current.Token
}

// rejected returns the token after reading the Secret again, unless it was read since the
// rejected request began.
func (t *tokens) rejected(ctx context.Context, began time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readAt.Before(began) {
		t.reload(ctx)
	}
	return t.current.Token
}

func (t *tokens) reload(ctx context.Context) {
	t.readAt = t.clock.Now()
	fresh, err := t.read(ctx)
	if err != nil {
		return
	}
	t.caChanged = t.caChanged || !bytes.Equal(fresh.CA, t.current.CA)
	t.current = fresh
}

// stale reports whether the CA in the Secret is another one than that of the connections.
func (t *tokens) stale() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.caChanged
}

// bearer adds the token to requests. A request that is rejected is sent once more if the
// Secret has another token by then.
type bearer struct {
	base   http.RoundTripper
	tokens *tokens
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" {
		return b.base.RoundTrip(req)
	}
	ctx := req.Context()
	began := b.tokens.clock.Now()
	token := b.tokens.get(ctx)
	resp, err := b.base.RoundTrip(authorized(req, token))
	if _, unknown := errors.AsType[*tls.CertificateVerificationError](err); unknown {
		b.tokens.rejected(ctx, began) // the Secret may have another CA
	}
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	fresh := b.tokens.rejected(ctx, began)
	if fresh == token {
		return resp, nil
	}
	again := authorized(req, fresh)
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return resp, nil
		}
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil //nolint:nilerr // the first response is returned
		}
	}
	_ = resp.Body.Close()
	return b.base.RoundTrip(again)
}

// WrappedRoundTripper lets client-go find the transport below.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.base }

func authorized(req *http.Request, token string) *http.Request {
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return out
}
