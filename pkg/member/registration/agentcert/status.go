package agentcert

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// StatusAnnotation on the Lease of a cluster has the certificate and the authorities that its agent uses. See Status.
const StatusAnnotation = "cluster.karmada.io/agent-certificate"

// Status is what an agent reports of its certificate.
type Status struct {
	// NotAfter is when it ends, Serial its number in hexadecimal digits, and Issuer the name of the authority.
	NotAfter time.Time `json:"notAfter"`
	Serial   string    `json:"serial"`
	Issuer   string    `json:"issuer,omitempty"`
	// Authority is the pin of the trusted authority that signed it; empty if none of them did. See pki.Pin.
	Authority string `json:"authority,omitempty"`
	// Trusts are the pins of the authorities by which the agent recognises the control plane, sorted.
	Trusts []string `json:"trusts,omitempty"`
}

// StatusOf returns the status of an agent with a certificate that trusts some authorities.
func StatusOf(c *x509.Certificate, trusted []*x509.Certificate) Status {
	out := Status{NotAfter: c.NotAfter.UTC(), Serial: c.SerialNumber.Text(16), Issuer: c.Issuer.CommonName}
	for _, ca := range trusted {
		pin := pki.Pin(ca)
		if c.CheckSignatureFrom(ca) == nil {
			out.Authority = pin
		}
		out.Trusts = append(out.Trusts, pin)
	}
	slices.Sort(out.Trusts)
	return out
}

// String returns the value of StatusAnnotation.
func (s Status) String() string {
	data, err := json.Marshal(s)
	if err != nil {
		return "" // its time is out of range
	}
	return string(data)
}

// maxStatus is how long a status may be, which agents write, in bytes.
const maxStatus = 4096

// StatusIn returns the status in the annotations of the Lease of a cluster, the zero value if there is none.
func StatusIn(lease metav1.Object) (Status, error) {
	text := lease.GetAnnotations()[StatusAnnotation]
	var out Status
	switch {
	case text == "":
		return out, nil
	case len(text) > maxStatus:
		return out, fmt.Errorf("the annotation %s is too long: %d bytes, of %d at most", StatusAnnotation, len(text), maxStatus)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return Status{}, fmt.Errorf("reading the annotation %s: %w", StatusAnnotation, err)
	}
	return out, nil
}

// Uses reports whether the agent trusts an authority, and has its certificate from it.
func (s Status) Uses(authority *x509.Certificate) bool {
	pin := pki.Pin(authority)
	return s.Authority == pin && slices.Contains(s.Trusts, pin)
}
