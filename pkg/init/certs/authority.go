package certs

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// Steps of a change of authorities.
const (
	// StepPrepared is when the new authorities are made and nothing uses them.
	StepPrepared = "prepared"
	// StepTrusted is when both authorities are trusted, and the old one signs.
	StepTrusted = "trusted"
	// StepIssued is when both are trusted, and all certificates are of the new one.
	StepIssued = "issued"
	// StepFinishing is when the old authority is about to be removed.
	StepFinishing = "finishing"
)

// Renewal is a change of authorities that is under way.
type Renewal struct {
	// Step is the last one that was completed.
	Step string `json:"step"`
	// Began is when the new authorities were made.
	Began time.Time `json:"began"`
	// Done has a line for each step, with its time.
	Done []string `json:"done"`
	// Authorities are the names of those that are changed.
	Authorities []string `json:"authorities"`
	// Waiting are the clusters whose agents do not use the new authority yet.
	Waiting []string `json:"waiting,omitempty"`

	changes []change
}

// change is one authority that takes the place of another.
type change struct {
	old *x509.Certificate
	new pki.Pair
	// cross is the new authority signed by the old one: with it in their chain, certificates of the new authority are accepted by
	// those that know the old one alone. Nil if the old one cannot sign any more.
	cross *x509.Certificate
}

// newChange makes an authority of the same name, and of the same kind of key. given takes the place of one that is made.
func newChange(old, given pki.Pair, now time.Time) (change, error) {
	c := change{old: old.Cert, new: given}
	if given.Cert == nil {
		var err error
		c.new, err = pki.NewCA(pki.CAConfig{CommonName: old.Cert.Subject.CommonName, Algorithm: pki.AlgorithmOf(old.Key)}, nil, now)
		if err != nil {
			return change{}, err
		}
	}
	if old.Key == nil || now.After(old.Cert.NotAfter) {
		return c, nil // it helps nobody
	}
	var err error
	c.cross, err = pki.CrossSign(c.new, old)
	return c, err
}

// trust returns the exchange after which both authorities are trusted, where first signs.
func trust(changes []change, newFirst bool) *exchange {
	x := newExchange()
	for _, c := range changes {
		both := []*x509.Certificate{c.old, c.new.Cert}
		if newFirst {
			slices.Reverse(both)
			x.keys[publicKey(c.old.PublicKey)] = c.new.Key
		}
		x.certs[string(c.old.Raw)], x.certs[string(c.new.Cert.Raw)] = both, both
	}
	return x
}

// without returns the exchange after which some certificates are nowhere.
func without(certs ...*x509.Certificate) *exchange {
	x := newExchange()
	for _, c := range certs {
		if c != nil {
			x.certs[string(c.Raw)] = nil
		}
	}
	return x
}

// signers are the authorities that sign new certificates.
type signers struct {
	authorities []pki.Pair
	changes     []change
	validity    time.Duration
	now         time.Time
}

// endsWithAuthority reports whether a certificate is valid for as long as the authority that signed it: a process reads it once.
func (s *signers) endsWithAuthority(c *x509.Certificate) bool {
	return slices.ContainsFunc(s.changes, func(change change) bool {
		return c.CheckSignatureFrom(change.old) == nil && !c.NotAfter.Before(change.old.NotAfter)
	})
}

// signerOf returns what signs the successor of a certificate, and the chain after it; nil if that is not known.
func (s *signers) signerOf(c *x509.Certificate) (*pki.Pair, []*x509.Certificate) {
	for i := range s.changes {
		change := &s.changes[i]
		if c.CheckSignatureFrom(change.old) == nil || c.CheckSignatureFrom(change.new.Cert) == nil {
			var chain []*x509.Certificate
			if change.cross != nil {
				chain = append(chain, change.cross)
			}
			return &change.new, chain
		}
	}
	for i := range s.authorities {
		if c.CheckSignatureFrom(s.authorities[i].Cert) == nil {
			return &s.authorities[i], nil
		}
	}
	return nil, nil
}

// leafKey is the same for certificates of one authority that stand for each other.
func leafKey(c *x509.Certificate) string {
	ips := make([]string, len(c.IPAddresses))
	for i, ip := range c.IPAddresses {
		ips[i] = ip.String()
	}
	return fmt.Sprintf("%s %v %v %v", c.RawSubject, c.DNSNames, ips, c.ExtKeyUsage)
}

// renew adds the successors of certificates to an exchange, and returns them. Certificates of one leafKey have one successor. With
// missing only those get one that the present authority did not sign; one that it signed already is the successor of the others.
func (s *signers) renew(x *exchange, leaves []named, missing bool) ([]*x509.Certificate, error) {
	successors := map[string]pki.Pair{}
	key := func(l named, signer *pki.Pair) string { return leafKey(l.Cert) + string(signer.Cert.Raw) }
	var out []*x509.Certificate
	for _, l := range leaves {
		if signer, _ := s.signerOf(l.Cert); missing && signer != nil && l.Cert.CheckSignatureFrom(signer.Cert) == nil {
			successors[key(l, signer)] = l.Pair
		}
	}
	for _, l := range leaves {
		signer, chain := s.signerOf(l.Cert)
		if signer == nil {
			continue // of another authority
		}
		next, ok := successors[key(l, signer)]
		if !ok {
			validity := s.validity
			if s.endsWithAuthority(l.Cert) {
				validity = pki.CAValidity
			}
			var err error
			if next, err = pki.Renew(l.Pair, l.keepsKey, *signer, validity, s.now); err != nil {
				return nil, fmt.Errorf("%s: %w", l.Place, err)
			}
			successors[key(l, signer)] = next
			out = append(out, next.Cert)
		}
		x.certs[string(l.Cert.Raw)] = append([]*x509.Certificate{next.Cert}, chain...)
		x.keys[publicKey(l.Cert.PublicKey)] = next.Key
	}
	return out, nil
}

// The keys of the state of a change of authorities.
const (
	stateKey    = "state.json"
	progressKey = "progress"
)

// encode returns the state for its Secret: one key to read, one for the program, and the pairs.
func (r *Renewal) encode() (map[string][]byte, error) {
	public := *r
	public.Waiting = nil
	text, err := json.MarshalIndent(&public, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the state of the renewal: %w", err)
	}
	out := map[string][]byte{stateKey: text, progressKey: []byte(strings.Join(r.Done, "\n") + "\n")}
	for i, c := range r.changes {
		prefix := fmt.Sprintf("authority-%d", i) // names can have characters that keys of Secrets cannot
		key, err := c.new.KeyPEM()
		if err != nil {
			return nil, err
		}
		out[prefix+".old.crt"], out[prefix+".crt"], out[prefix+".key"] = pki.EncodeCert(c.old), c.new.CertPEM(), key
		if c.cross != nil {
			out[prefix+".cross.crt"] = pki.EncodeCert(c.cross)
		}
	}
	return out, nil
}

// decodeRenewal reads a state.
func decodeRenewal(data map[string][]byte) (*Renewal, error) {
	out := &Renewal{}
	if err := json.Unmarshal(data[stateKey], out); err != nil {
		return nil, fmt.Errorf("reading %s: %w", stateKey, err)
	}
	for _, key := range sortedKeys(data) {
		prefix, ok := strings.CutSuffix(key, ".old.crt")
		if !ok {
			continue
		}
		var c change
		var err error
		if c.old, err = pki.ParseCert(data[key]); err == nil {
			c.new, err = pki.ParsePair(data[prefix+".crt"], data[prefix+".key"])
		}
		if cross := data[prefix+".cross.crt"]; err == nil && len(cross) > 0 {
			c.cross, err = pki.ParseCert(cross)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", key, err)
		}
		out.changes = append(out.changes, c)
	}
	if len(out.changes) == 0 || !slices.Contains([]string{StepPrepared, StepTrusted, StepIssued, StepFinishing}, out.Step) {
		return nil, fmt.Errorf("it is not complete: it has %d authorities and the step %q", len(out.changes), out.Step)
	}
	return out, nil
}

// record notes that a step was completed.
func (r *Renewal) record(step string, now time.Time) {
	r.Step = step
	r.Done = append(r.Done, now.UTC().Format(time.RFC3339)+" "+cmp.Or(map[string]string{
		StepPrepared:  "the new authorities are made",
		StepTrusted:   "the old and the new authorities are trusted",
		StepIssued:    "all certificates are of the new authorities",
		StepFinishing: "the old authorities are being removed",
	}[step], step))
}
