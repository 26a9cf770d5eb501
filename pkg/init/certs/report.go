package certs

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// SchemaVersion is the version of the fields of a Report. It changes when a field is removed or gets another meaning.
const SchemaVersion = "v1"

// Report is what certificates an installation has.
type Report struct {
	SchemaVersion string `json:"schemaVersion"`
	// Certificates in the order of their ends.
	Certificates []Certificate `json:"certificates"`
	// Keys are private keys without a certificate, such as that of the tokens of service accounts. They do not end.
	Keys []Key `json:"keys,omitempty"`
	// Renewal is a change of authorities that is under way.
	Renewal *Renewal `json:"renewal,omitempty"`
	// Gaps are what could not be read.
	Gaps []string `json:"gaps,omitempty"`
}

// Certificate is a certificate and all places where it is.
type Certificate struct {
	// Subject and Issuer are common names.
	Subject string `json:"subject"`
	Issuer  string `json:"issuer"`
	// Serial is the serial number in hexadecimal digits.
	Serial string `json:"serial,omitempty"`
	// Authority reports whether it signs others.
	Authority bool `json:"authority,omitempty"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"notAfter"`
	Places   []Place   `json:"places"`
}

// Key is a private key without a certificate.
type Key struct {
	// Name is the key in its Secret, or its file, without the ending.
	Name string `json:"name"`
	// Since is when its Secret was made or its file written. Nil if that is not known.
	Since  *time.Time `json:"since,omitempty"`
	Places []Place    `json:"places"`
}

// Ends returns the certificates that end before a time.
func (r *Report) Ends(before time.Time) []Certificate {
	var out []Certificate
	for _, c := range r.Certificates {
		if c.NotAfter.Before(before) {
			out = append(out, c)
		}
	}
	return out
}

// newReport returns what is in contents, and the certificates of agents.
func newReport(contents []*content, agents []Agent) *Report {
	out := &Report{SchemaVersion: SchemaVersion, Certificates: []Certificate{}}
	certs, keys, paired := map[[32]byte]*Certificate{}, map[string]*Key{}, map[string]bool{}
	for _, c := range contents {
		for _, p := range c.pieces() {
			if p.cert == nil {
				public := publicKey(p.key.Public())
				if keys[public] == nil {
					keys[public] = &Key{Name: strings.TrimSuffix(cmp.Or(c.Key, c.base()), ".key"), Since: c.since}
				}
				keys[public].Places = append(keys[public].Places, p.Place)
				continue
			}
			paired[publicKey(p.cert.PublicKey)] = true
			sum := sha256.Sum256(p.cert.Raw)
			if certs[sum] == nil {
				certs[sum] = &Certificate{
					Subject: name(p.cert.Subject.CommonName, p.cert.Subject.String()), Issuer: name(p.cert.Issuer.CommonName, p.cert.Issuer.String()),
					Serial: p.cert.SerialNumber.Text(16), Authority: p.cert.IsCA, NotAfter: p.cert.NotAfter,
				}
			}
			certs[sum].Places = append(certs[sum].Places, p.Place)
		}
	}
	for _, c := range certs {
		out.Certificates = append(out.Certificates, *c)
	}
	for _, a := range agents {
		place := Place{Kind: "Cluster", Name: a.Cluster, Key: "agent"}
		i := slices.IndexFunc(out.Certificates, func(c Certificate) bool { return c.Serial == a.Serial && c.Issuer == a.Issuer })
		switch {
		case i >= 0:
			out.Certificates[i].Places = append(out.Certificates[i].Places, place)
		case !a.NotAfter.IsZero():
			out.Certificates = append(out.Certificates, Certificate{
				Subject: a.user(), Issuer: a.Issuer, Serial: a.Serial, NotAfter: a.NotAfter,
				Places: []Place{place},
			})
		}
	}
	for public, k := range keys {
		if !paired[public] {
			out.Keys = append(out.Keys, *k)
		}
	}
	slices.SortFunc(out.Certificates, func(a, b Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), strings.Compare(a.Subject, b.Subject), strings.Compare(a.Serial, b.Serial))
	})
	slices.SortFunc(out.Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// name returns the name of a subject or issuer.
func name(common, all string) string { return cmp.Or(common, all, "-") }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// pairs returns the pairs of certificates and keys that are in contents, authorities and others, each once, without those of agents.
func pairs(contents []*content) (authorities, leaves []named) {
	keys := map[string]piece{}
	var certs []piece
	for p := range pieces(contents) {
		if p.key != nil {
			keys[publicKey(p.key.Public())] = p
		} else {
			certs = append(certs, p)
		}
	}
	seen := map[string]bool{}
	for _, p := range certs {
		key, ok := keys[publicKey(p.cert.PublicKey)]
		if !ok || seen[string(p.cert.Raw)] {
			continue
		}
		seen[string(p.cert.Raw)] = true
		pair := named{Place: p.Place, chain: p.text, keepsKey: p.keepsKey, Pair: pki.Pair{Cert: p.cert, Key: key.key}}
		_, agent := names.ClusterOfAgentUser(p.cert.Subject.CommonName)
		switch {
		case agent: // it renews its certificate itself
		case p.cert.IsCA:
			authorities = append(authorities, pair)
		default:
			leaves = append(leaves, pair)
		}
	}
	return authorities, leaves
}

// named is a pair, and the first place where its certificate is.
type named struct {
	// chain is the text where the certificate is, with what follows it.
	chain []byte
	// keepsKey is that of the content.
	keepsKey bool
	Place
	pki.Pair
}
