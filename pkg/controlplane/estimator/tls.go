package estimator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
)

// tlsConfig returns the configuration of connections; nil if they are not encrypted. The files are read for every
// connection, so that renewed ones count at once. It returns an error if they cannot be read now.
func tlsConfig(o *Options) (*tls.Config, error) {
	if o.CertFile == "" {
		return nil, nil
	}
	if _, err := readTLS(o); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return readTLS(o) },
	}, nil
}

func readTLS(o *Options) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the server (--grpc-auth-cert-file, --grpc-auth-key-file): %w", err)
	}
	// Sessions are not resumed: every connection is checked against the current files.
	c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, SessionTicketsDisabled: true}
	if !o.verifiesClients() {
		return c, nil
	}
	text, err := os.ReadFile(o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of clients (--grpc-client-ca-file): %w", err)
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s (--grpc-client-ca-file) has no certificate in PEM form", o.ClientCAFile)
	}
	if len(o.ClientAllowedNames) > 0 {
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if !slices.Contains(o.ClientAllowedNames, s.PeerCertificates[0].Subject.CommonName) {
				return errors.New("the client's certificate has a name that is not among --grpc-client-allowed-names")
			}
			return nil
		}
	}
	return c, nil
}
