// Package pki creates certificate authorities and the certificates they sign, and keeps them in a store so that
// a second run finds what the first one made.
//
// The generation functions are pure: everything they need, the time included, is an argument. Store adds
// load-or-create on top of a Storage, which is a directory (Dir) or a map (Memory, the content of a Secret).
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Algorithm names the kind of a private key.
type Algorithm string

const (
	// ECDSA is a key on the P-256 curve, the default: it is made in microseconds.
	ECDSA Algorithm = "ECDSA"
	// RSA is a 3072 bit RSA key.
	RSA Algorithm = "RSA"
)

const rsaBits = 3072

// Pair is a certificate and its private key.
type Pair struct {
	Cert *x509.Certificate
	Key  crypto.Signer
	// chain is sent after a certificate that is not of an authority, PEM.
	chain []byte
}

// CertPEM returns the certificate with its chain as PEM.
func (p Pair) CertPEM() []byte { return append(EncodeCert(p.Cert), p.chain...) }

// KeyPEM returns the private key as PEM.
func (p Pair) KeyPEM() ([]byte, error) { return EncodeKey(p.Key) }

// TLS returns the pair as a certificate for a TLS server or client.
func (p Pair) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{p.Cert.Raw}, PrivateKey: p.Key, Leaf: p.Cert}
}

// Matches reports whether the key belongs to the certificate.
func (p Pair) Matches() bool {
	if p.Cert == nil || p.Key == nil {
		return false
	}
	pub, ok := p.Key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && pub.Equal(p.Cert.PublicKey)
}

// NewKey makes a private key. The zero Algorithm means ECDSA.
func NewKey(a Algorithm) (crypto.Signer, error) {
	switch a {
	case ECDSA, "":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	}
	return nil, fmt.Errorf("unknown key algorithm %q: use %s or %s", a, ECDSA, RSA)
}

// AlgorithmOf returns the kind of a private key: RSA, or ECDSA for every other.
func AlgorithmOf(key crypto.Signer) Algorithm {
	if _, ok := key.(*rsa.PrivateKey); ok {
		return RSA
	}
	return ECDSA
}

// Pin returns how a certificate is recognised by its public key: "sha256:" and the hash of the key in hexadecimal digits.
func Pin(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// EncodeCert returns a certificate as PEM.
func EncodeCert(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})
}

// EncodeKey returns a private key as PEM in the traditional form of its algorithm.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	out, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the private key: %w", err)
	}
	return out, nil
}

// ParseCert returns the first certificate of PEM data.
func ParseCert(data []byte) (*x509.Certificate, error) {
	all, err := cert.ParseCertsPEM(data)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// BundleContains reports whether the first certificate of PEM data is in a bundle, PEM. The first certificate of a bundle is that of the
// authority that signs; the others verify what it or another authority signed before.
func BundleContains(bundle, data []byte) bool {
	first, err := ParseCert(data)
	if err != nil {
		return false
	}
	all, err := cert.ParseCertsPEM(bundle)
	return err == nil && slices.ContainsFunc(all, first.Equal)
}

// SameSigner reports whether the first certificates of two bundles, PEM, are the same.
func SameSigner(a, b []byte) bool {
	first, err := ParseCert(a)
	return err == nil && BundleContains(EncodeCert(first), b)
}

// ParseKey returns the first private key of PEM data: EC, PKCS#1 or PKCS#8.
func ParseKey(data []byte) (crypto.Signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return signer, nil
}

// ParsePair reads a certificate and its key and checks that they belong together.
func ParsePair(certPEM, keyPEM []byte) (Pair, error) {
	all, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return Pair{}, fmt.Errorf("reading the certificate: %w", err)
	}
	key, err := ParseKey(keyPEM)
	if err != nil {
		return Pair{}, fmt.Errorf("reading the private key: %w", err)
	}
	pair := Pair{Cert: all[0], Key: key}
	for i := 1; i < len(all) && !pair.Cert.IsCA; i++ {
		pair.chain = append(pair.chain, EncodeCert(all[i])...)
	}
	if !pair.Matches() {
		return Pair{}, errors.New("the private key does not belong to the certificate")
	}
	return pair, nil
}
