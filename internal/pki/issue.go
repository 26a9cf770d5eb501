package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	// CAValidity is how long a certificate authority is valid.
	CAValidity = 10 * 365 * 24 * time.Hour
	// DefaultValidity is how long a leaf certificate is valid unless its config sets another.
	DefaultValidity = 365 * 24 * time.Hour

	// clockSkew is how far the validity of an authority reaches back, for peers whose clock is behind.
	clockSkew = 5 * time.Minute
	// renewBefore is the longest time before its end at which a leaf certificate is renewed.
	renewBefore = 30 * 24 * time.Hour
)

// CAConfig describes a certificate authority.
type CAConfig struct {
	CommonName string
	Algorithm  Algorithm
	// Validity of the certificate, CAValidity if zero.
	Validity time.Duration
}

// LeafConfig describes a certificate signed by an authority.
type LeafConfig struct {
	CommonName   string
	Organization []string
	// Hosts are the names and addresses of a server; those that parse as an IP address become IP SANs.
	// Empty strings and repetitions are dropped.
	Hosts []string
	// Usages are the extended key usages: server and client authentication if empty.
	Usages    []x509.ExtKeyUsage
	Algorithm Algorithm
	// Validity of the certificate, DefaultValidity if zero. It never outlives the authority.
	Validity time.Duration
}

// NewCA makes a self-signed authority. With a nil key a new one is made.
func NewCA(cfg CAConfig, key crypto.Signer, now time.Time) (Pair, error) {
	key, err := keyOrNew(key, cfg.Algorithm)
	if err != nil {
		return Pair{}, err
	}
	validity := cfg.Validity
	if validity <= 0 {
		validity = CAValidity
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: cfg.CommonName},
		DNSNames:              []string{cfg.CommonName},
		NotBefore:             now.Add(-clockSkew).UTC(),
		NotAfter:              now.Add(validity).UTC(),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, key, Pair{Cert: template, Key: key})
}

// NewLeaf makes a certificate signed by ca, with a new key.
func NewLeaf(cfg LeafConfig, ca Pair, now time.Time) (Pair, error) {
	return leafWithKey(cfg, nil, ca, now)
}

func leafWithKey(cfg LeafConfig, key crypto.Signer, ca Pair, now time.Time) (Pair, error) {
	if ca.Cert == nil || ca.Key == nil {
		return Pair{}, fmt.Errorf("signing certificate %q: the authority has no key", cfg.CommonName)
	}
	key, err := keyOrNew(key, cfg.Algorithm)
	if err != nil {
		return Pair{}, err
	}
	dns, ips := splitHosts(cfg.Hosts)
	notAfter := now.Add(cfg.validity()).UTC()
	if notAfter.After(ca.Cert.NotAfter) {
		notAfter = ca.Cert.NotAfter
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: cfg.CommonName, Organization: nonEmpty(cfg.Organization)},
		DNSNames:              dns,
		IPAddresses:           ips,
		NotBefore:             ca.Cert.NotBefore,
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           cfg.usages(),
		BasicConstraintsValid: true,
	}
	return sign(template, key, ca)
}

// RenewReason returns why a leaf certificate must be made again to satisfy cfg, or "" if it is fine: it is about to
// expire, was signed by another authority, or lacks a name.
func RenewReason(pair Pair, cfg LeafConfig, ca *x509.Certificate, now time.Time) string {
	cert := pair.Cert
	switch {
	case !pair.Matches():
		return "key and certificate do not belong together"
	case cert.CheckSignatureFrom(ca) != nil:
		return "signed by another authority"
	case now.Before(cert.NotBefore):
		return "not valid yet"
	case expiresSoon(cert, ca, now):
		return "near its end"
	case cert.Subject.CommonName != cfg.CommonName:
		return "other common name"
	case !sameSet(cert.Subject.Organization, nonEmpty(cfg.Organization)):
		return "other organization"
	}
	return missingFromCert(cert, cfg)
}

// expiresSoon is true in the last third of a certificate's life, at most 30 days before its end, unless a new one
// could not live longer because the authority ends at the same time.
func expiresSoon(cert, ca *x509.Certificate, now time.Time) bool {
	if !now.Before(cert.NotAfter) {
		return true
	}
	return now.After(RenewAfter(cert)) && cert.NotAfter.Before(ca.NotAfter)
}

// RenewAfter returns when the last third of a certificate's life begins, at most 30 days before its end.
func RenewAfter(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-min(renewBefore, cert.NotAfter.Sub(cert.NotBefore)/3))
}

func missingFromCert(cert *x509.Certificate, cfg LeafConfig) string {
	dns, ips := splitHosts(cfg.Hosts)
	for _, name := range dns {
		if !slices.Contains(cert.DNSNames, name) {
			return fmt.Sprintf("lacks the name %s", name)
		}
	}
	for _, ip := range ips {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return fmt.Sprintf("lacks the address %s", ip)
		}
	}
	for _, usage := range cfg.usages() {
		if !slices.Contains(cert.ExtKeyUsage, usage) {
			return "lacks a key usage"
		}
	}
	for _, usage := range cert.ExtKeyUsage {
		if !slices.Contains(cfg.usages(), usage) {
			return "has a key usage that is not wanted"
		}
	}
	return ""
}

func (c LeafConfig) validity() time.Duration {
	if c.Validity > 0 {
		return c.Validity
	}
	return DefaultValidity
}

func (c LeafConfig) usages() []x509.ExtKeyUsage {
	if len(c.Usages) > 0 {
		return c.Usages
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

func sign(template *x509.Certificate, key crypto.Signer, ca Pair) (Pair, error) {
	serial, err := newSerial()
	if err != nil {
		return Pair{}, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Cert, key.Public(), ca.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing certificate %q: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, fmt.Errorf("reading the new certificate %q: %w", template.Subject.CommonName, err)
	}
	return Pair{Cert: cert, Key: key}, nil
}

// newSerial is a random positive 63-bit number.
func newSerial() (*big.Int, error) {
	limit := new(big.Int).Lsh(big.NewInt(1), 63)
	limit.Sub(limit, big.NewInt(1))
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}

func keyOrNew(key crypto.Signer, a Algorithm) (crypto.Signer, error) {
	if key != nil {
		return key, nil
	}
	return NewKey(a)
}

// splitHosts sorts hosts into DNS names and IP addresses, without empty ones and repetitions. DNS names come out
// sorted, addresses in order.
func splitHosts(hosts []string) (dns []string, ips []net.IP) {
	for _, host := range hosts {
		host = strings.TrimSpace(host)
		if host == "" {
			continue
		}
		ip := net.ParseIP(host)
		if ip == nil {
			dns = append(dns, host)
			continue
		}
		if !slices.ContainsFunc(ips, ip.Equal) {
			ips = append(ips, ip)
		}
	}
	slices.Sort(dns)
	return slices.Compact(dns), ips
}

func nonEmpty(in []string) []string {
	var out []string
	for _, s := range in {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// VerifyCA checks that a pair can be used as an authority at the given time.
func VerifyCA(ca Pair, now time.Time) error {
	switch {
	case !ca.Matches():
		return errors.New("the private key does not belong to the certificate")
	case !ca.Cert.IsCA:
		return fmt.Errorf("certificate %q is not an authority", ca.Cert.Subject.CommonName)
	case now.After(ca.Cert.NotAfter):
		return fmt.Errorf("authority %q ended on %s", ca.Cert.Subject.CommonName, ca.Cert.NotAfter.Format(time.DateOnly))
	}
	return nil
}

// Renew returns a certificate with the subject, the names and the usages of an old one, signed by ca. It has a new key of the same kind
// unless the key is kept. Validity is as in LeafConfig.
func Renew(old Pair, keepKey bool, ca Pair, validity time.Duration, now time.Time) (Pair, error) {
	cfg := LeafConfig{
		CommonName: old.Cert.Subject.CommonName, Organization: old.Cert.Subject.Organization, Hosts: slices.Clone(old.Cert.DNSNames),
		Usages: old.Cert.ExtKeyUsage, Algorithm: AlgorithmOf(old.Key), Validity: validity,
	}
	for _, ip := range old.Cert.IPAddresses {
		cfg.Hosts = append(cfg.Hosts, ip.String())
	}
	if keepKey {
		return leafWithKey(cfg, old.Key, ca, now)
	}
	return NewLeaf(cfg, ca, now)
}

// CrossSign returns the certificate of an authority signed by another one, which ends with that.
func CrossSign(authority, by Pair) (*x509.Certificate, error) {
	template := *authority.Cert
	template.NotBefore, template.NotAfter, template.AuthorityKeyId = by.Cert.NotBefore, by.Cert.NotAfter, by.Cert.SubjectKeyId
	out, err := sign(&template, authority.Key, by)
	return out.Cert, err
}
