package member

import (
	"context"
	"crypto"
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// NewToken returns a fresh bootstrap token with the default usages and groups. A
// zero expires means never.
func NewToken(expires time.Time) (registration.Token, error) {
	id, err := randomText(6)
	if err != nil {
		return registration.Token{}, err
	}
	secret, err := randomText(16)
	if err != nil {
		return registration.Token{}, err
	}
	return registration.Token{
		ID: id, Secret: secret, Expires: expires,
		Usages: []string{"signing", "authentication"}, Groups: []string{names.BootstrapGroup},
	}, nil
}

// CreateToken stores a bootstrap token in the control plane.
func CreateToken(ctx context.Context, controlPlane client.Client, t registration.Token) error {
	if err := controlPlane.Create(ctx, registration.TokenSecret(t)); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("storing token %s: there is one of that id already", t.ID)
		}
		return fmt.Errorf("storing token %s: %w", t.ID, err)
	}
	return nil
}

// randomText returns letters and digits from a cryptographic source.
func randomText(length int) (string, error) {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	out := make([]byte, length)
	for i := range out {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			return "", fmt.Errorf("making a token: %w", err)
		}
		out[i] = letters[n.Int64()]
	}
	return string(out), nil
}

// cutToken returns the two parts of a token; both are "" if it is none.
func cutToken(token string) (id, secret string) {
	id, secret, err := registration.ParseToken(token)
	if err != nil {
		return "", ""
	}
	return id, secret
}

// pairOf puts what was signed and its key together.
func pairOf(csr *certificatesv1.CertificateSigningRequest, key crypto.Signer) (pki.Pair, error) {
	cert, err := pki.ParseCert(csr.Status.Certificate)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("reading the certificate of request %s: %w", csr.Name, err)
	}
	pair := pki.Pair{Cert: cert, Key: key}
	if !pair.Matches() {
		return pki.Pair{}, fmt.Errorf("the certificate of request %s is for another key", csr.Name)
	}
	return pair, nil
}

// ListTokens returns the bootstrap tokens of the control plane by name, and an
// error for each Secret that is none though it says so.
func ListTokens(ctx context.Context, controlPlane client.Client) ([]registration.Token, []error, error) {
	secrets := &corev1.SecretList{}
	err := controlPlane.List(ctx, secrets, client.InNamespace(metav1.NamespaceSystem), client.MatchingFields{"type": string(bootstrapapi.SecretTypeBootstrapToken)})
	if err != nil {
		return nil, nil, fmt.Errorf("listing bootstrap tokens: %w", err)
	}
	var tokens []registration.Token
	var malformed []error
	for i := range secrets.Items {
		t, err := registration.TokenOf(&secrets.Items[i])
		if err != nil {
			malformed = append(malformed, err)
			continue
		}
		tokens = append(tokens, t)
	}
	slices.SortFunc(tokens, func(a, b registration.Token) int { return strings.Compare(a.ID, b.ID) })
	return tokens, malformed, nil
}

// DeleteToken deletes a bootstrap token by its id.
func DeleteToken(ctx context.Context, controlPlane client.Client, id string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: registration.TokenSecretName(id)}}
	if err := controlPlane.Delete(ctx, secret); err != nil {
		return fmt.Errorf("failed to delete bootstrap token %q, err: %w", id, err)
	}
	return nil
}
