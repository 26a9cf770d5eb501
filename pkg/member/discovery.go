package member

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	// pinPrefix starts the pin of an authority.
	pinPrefix = "sha256:"
	// signaturePrefix starts the key of what a token signed.
	signaturePrefix = "jws-kubeconfig-"
	// tokenSignTimeout is how long a control plane may take to sign for a new token.
	tokenSignTimeout = 5 * time.Second
	// discoveryRequest is the timeout of one request.
	discoveryRequest = 10 * time.Second
)

// TokenFileHint explains how to run a printed registration command without showing its
// token to other users of the machine.
const TokenFileHint = "other users of a machine can see --token while \"register\" runs there; \"register --token-file FILE\" reads the token from a file, and \"--token-file -\" from standard input"

// Discovery is the address of a control plane and how to verify its identity.
type Discovery struct {
	// Endpoint is host and port of its API server.
	Endpoint string
	// Token is a bootstrap token of it.
	Token string
	// Pins are the accepted hashes of its authority, sha256:<hex> each. Of several authorities it needs one, which verifies its server.
	Pins []string
	// Unpinned accepts any certificate authority whose signature the token confirms.
	Unpinned bool
	// Timeout is how long the control plane may take to answer.
	Timeout time.Duration
}

// Server is a control plane that was found.
type Server struct {
	// URL of its API server.
	URL string
	// CABundle verifies it, now and when the next of its authorities signs.
	CABundle []byte
}

// Errors of Discover.
var (
	// ErrPin means that the authority is not the one that was pinned.
	ErrPin = errors.New("the certificate authority of the control plane is not the one of --discovery-token-ca-cert-hash")
	// ErrToken means that the control plane does not know the token.
	ErrToken = errors.New("the control plane does not know this token")
	// ErrName means that the certificate of the control plane is for other names.
	ErrName = errors.New("the certificate of the control plane is not for this address")
	// ErrIdentity means that another server answers.
	ErrIdentity = errors.New("the server is not the control plane that the token was issued for")
)

// Discover connects to a control plane and verifies its identity with the token and
// the pins.
func Discover(ctx context.Context, d Discovery, report Reporter) (*Server, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	id, secret := cutToken(d.Token)
	server, err := d.find(ctx, id, secret, report)
	if err != nil {
		return nil, fmt.Errorf("couldn't validate the identity of the API Server: %w", err)
	}
	return server, nil
}

// Validate checks the fields without a request.
func (d Discovery) Validate() error {
	if _, _, err := registration.ParseToken(d.Token); err != nil {
		return err
	}
	if len(d.Pins) == 0 && !d.Unpinned {
		return errors.New("need to verify CACertHashes, or set --discovery-token-unsafe-skip-ca-verification=true")
	}
	for _, pin := range d.Pins {
		digits, ok := strings.CutPrefix(strings.ToLower(pin), pinPrefix)
		sum, err := hex.DecodeString(digits)
		if !ok || err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("--discovery-token-ca-cert-hash %q is not of the form %s<64 hexadecimal digits>", pin, pinPrefix)
		}
	}
	return nil
}

func (d Discovery) find(ctx context.Context, id, secret string, report Reporter) (*Server, error) {
	url := "https://" + d.Endpoint
	info, err := d.clusterInfo(ctx, &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, id, secret, report)
	if err != nil {
		return nil, err
	}
	bundle, err := authority(info)
	if err != nil {
		return nil, err
	}
	roots := bundle
	if len(d.Pins) > 0 {
		roots = pinned(bundle, d.Pins)
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%w: %s may be the address of another control plane; take the command from \"token create --print-register-command\" of the right one", ErrPin, d.Endpoint)
	}
	// A relay of the first response does not have the certificate of the control plane. The second one comes from a server that a pinned
	// authority verifies, so that the other authorities in it, such as the next one, are those of the control plane, too.
	again, err := d.clusterInfo(ctx, &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: roots}}, id, secret, report)
	if errors.Is(err, ErrIdentity) && len(roots) < len(bundle) {
		return nil, fmt.Errorf("%w; if its authority was renewed, take the command from \"token create --print-register-command\"", err)
	}
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(info, again) {
		return nil, fmt.Errorf("%w: %s describes itself differently now; try again", ErrIdentity, d.Endpoint)
	}
	return &Server{URL: url, CABundle: bundle}, nil
}

// clusterInfo reads the ConfigMap cluster-info of the control plane, and returns the
// kubeconfig in it if the token has signed it.
func (d Discovery) clusterInfo(ctx context.Context, config *rest.Config, id, secret string, report Reporter) ([]byte, error) {
	config.Timeout = discoveryRequest
	c, err := NewClient(config)
	if err != nil {
		return nil, err
	}
	var last, verdict error
	var since time.Time // when the control plane first answered
	what := func() string { return fmt.Sprintf("the control plane at %s (%v)", d.Endpoint, last) }
	var info []byte
	err = await(ctx, d.Timeout, report, what, func(ctx context.Context) (bool, error) {
		cm := &corev1.ConfigMap{}
		err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespacePublic, Name: registration.ClusterInfoName}, cm)
		if err != nil {
			last = err
			if verdict = d.permanentError(err); verdict == nil {
				return false, nil
			}
		} else if info, verdict = signed(cm, id, secret); verdict == nil {
			return true, nil
		}
		last = verdict
		if since.IsZero() {
			since = time.Now() //nolint:forbidigo // how long something takes
		}
		// A new control plane signs for a new token with a delay.
		if errors.Is(verdict, ErrName) || errors.Is(verdict, ErrIdentity) || time.Since(since) > tokenSignTimeout {
			return false, verdict
		}
		return false, nil
	})
	if errors.Is(err, wait.ErrTimeout) && verdict != nil {
		return nil, verdict // it answers
	}
	if errors.Is(err, wait.ErrTimeout) {
		return nil, fmt.Errorf("%s does not answer for %s: %w; is it the address of the control plane, and can this machine reach it?", d.Endpoint, d.Timeout, last)
	}
	return info, err
}

// permanentError returns the cause of an error of the server, nil if it can be retried.
func (d Discovery) permanentError(err error) error {
	var hostname x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &hostname):
		return fmt.Errorf("%w: %s has a certificate for %s; register with one of those, or give the control plane a certificate for %s",
			ErrName, d.Endpoint, strings.Join(certificateNames(hostname.Certificate), ", "), hostname.Host)
	case errors.As(err, &unknown), errors.As(err, &invalid):
		return fmt.Errorf("%w: the certificate of %s is not of its authority: %w", ErrIdentity, d.Endpoint, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s has no ConfigMap %s/%s: it is no control plane that clusters can register at", d.Endpoint, metav1.NamespacePublic, registration.ClusterInfoName)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not let anonymous users read ConfigMap %s/%s: %w", d.Endpoint, metav1.NamespacePublic, registration.ClusterInfoName, err)
	}
	return nil
}

func certificateNames(c *x509.Certificate) []string {
	out := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		out = append(out, ip.String())
	}
	if len(out) == 0 {
		out = append(out, "no name")
	}
	return out
}

// signed returns the kubeconfig of the description if the token has signed it.
func signed(cm *corev1.ConfigMap, id, secret string) ([]byte, error) {
	kubeconfig := cm.Data[registration.ClusterInfoKey]
	if kubeconfig == "" {
		return nil, fmt.Errorf("ConfigMap %s/%s has no key %q", cm.Namespace, cm.Name, registration.ClusterInfoKey)
	}
	signature := cm.Data[signaturePrefix+id]
	if signature == "" {
		return nil, fmt.Errorf("%w: %s was never made there, or has expired, was deleted, was used for a cluster that is gone or is not for signing; make another with \"token create\"", ErrToken, id)
	}
	if !signatureValid(signature, kubeconfig, id, secret) {
		return nil, fmt.Errorf("%w: there is a token %s, but its secret is another; check the part after the dot", ErrToken, id)
	}
	return []byte(kubeconfig), nil
}

// signatureValid checks a JSON Web Signature, HS256 with the payload left out.
func signatureValid(detached, payload, id, secret string) bool {
	parts := strings.Split(detached, ".")
	if len(parts) != 3 || parts[1] != "" {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return false
	}
	var header struct{ Alg, Kid string }
	if json.Unmarshal(raw, &header) != nil || header.Alg != "HS256" || header.Kid != id {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))))
	have, err := base64.RawURLEncoding.DecodeString(parts[2])
	return err == nil && hmac.Equal(have, mac.Sum(nil))
}

// authority returns the authority in the only cluster of a kubeconfig.
func authority(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	if len(config.Clusters) != 1 {
		return nil, fmt.Errorf("the kubeconfig of the control plane has %d clusters instead of one", len(config.Clusters))
	}
	var cluster *clientcmdapi.Cluster
	for _, cluster = range config.Clusters { // the only one
	}
	if len(cluster.CertificateAuthorityData) == 0 {
		return nil, errors.New("the kubeconfig of the control plane has no certificate authority")
	}
	return cluster.CertificateAuthorityData, nil
}

// pinned returns the authorities that are pinned.
func pinned(bundle []byte, pins []string) []byte {
	certs, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	var out []byte
	for _, c := range certs {
		if slices.ContainsFunc(pins, func(p string) bool { return strings.EqualFold(p, pin(c)) }) {
			out = append(out, pki.EncodeCert(c)...)
		}
	}
	return out
}

// pin returns the hash of a certificate's public key.
func pin(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return pinPrefix + hex.EncodeToString(sum[:])
}

// Pins returns the hashes of the public keys of certificates, in the form of
// Discovery.Pins.
func Pins(bundle []byte) ([]string, error) {
	certs, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w", err)
	}
	out := make([]string, 0, len(certs))
	for _, c := range certs {
		out = append(out, pin(c))
	}
	return out, nil
}
