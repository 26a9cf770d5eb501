package certs

import (
	"bytes"
	"testing"
)

// What others write is read within bounds, and what is no certificate stays as it is.
func TestContent_Hostile(t *testing.T) {
	s := newSite(t)
	many := &content{data: bytes.Repeat(s.data["karmada-cert/ca.crt"], 1000)}
	if n := len(many.pieces()); n != maxCertificates {
		t.Errorf("%d certificates are read", n)
	}
	for _, text := range []string{"", "x", "certificate-authority-data: [", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		c := &content{data: []byte(text)}
		if got, err := newExchange().in(c); err != nil || string(got) != text {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}

func FuzzExchange(f *testing.F) {
	f.Add([]byte("certificate-authority-data: AAAA"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &content{data: data}
		got, err := newExchange().in(c)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q becomes %q, %v", data, got, err)
		}
	})
}
