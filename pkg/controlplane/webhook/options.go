// Package webhook is the role that answers the API server's questions about
// objects of the federation: defaults, identities, validation, protection from
// deletion, and conversion between versions.
//
// Mutations change what they mean to change and leave everything else as it is,
// also fields that this program does not have.
package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// Options are the settings of the role.
type Options struct {
	// BindAddress and SecurePort are where the server listens.
	BindAddress string
	SecurePort  int
	// CertDir holds the serving certificate CertName and its key KeyName, which are
	// read again when they change.
	CertDir, CertName, KeyName string
	// ClientCAFile is the path of the authorities, in PEM, of the client certificate
	// that admission reviews must come with. Empty lets everybody send them.
	// Conversion needs no certificate: API servers present none.
	ClientCAFile string
	// ClientAllowedNames are the common names of client certificates that may send
	// admission reviews, with ClientCAFile. Empty means every name.
	ClientAllowedNames []string
	// TLSMinVersion is 1.0, 1.1, 1.2 or 1.3.
	TLSMinVersion string
	// AllowNoExecuteTaintPolicy admits ClusterTaintPolicies that evict.
	AllowNoExecuteTaintPolicy bool
	// Gates are the feature gates.
	Gates *gates.Gates
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		BindAddress:   "0.0.0.0",
		SecurePort:    8443,
		CertDir:       filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"),
		CertName:      "tls.crt",
		KeyName:       "tls.key",
		TLSMinVersion: "1.3",

		ClientAllowedNames: []string{names.WebhookClientUser},

		Gates: gates.New(gates.ControllerManager()...),
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to listen on.")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "Port to listen on.")
	fs.StringVar(&o.CertDir, "cert-dir", o.CertDir, "Directory of the serving certificate and its key.")
	fs.StringVar(&o.CertName, "tls-cert-file-name", o.CertName, "File name of the serving certificate in the directory.")
	fs.StringVar(&o.KeyName, "tls-private-key-file-name", o.KeyName, "File name of the key in the directory.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "File with the authorities of the API server's client certificate, which admission reviews must then come with; the API server is given it by an AdmissionConfiguration. Conversion needs none.")
	fs.StringSliceVar(&o.ClientAllowedNames, "client-allowed-names", o.ClientAllowedNames, "Common names of client certificates that may send admission reviews, with --client-ca-file; empty allows every certificate of the authorities.")
	fs.StringVar(&o.TLSMinVersion, "tls-min-version", o.TLSMinVersion, "Lowest TLS version accepted: 1.0, 1.1, 1.2 or 1.3.")
	fs.BoolVar(&o.AllowNoExecuteTaintPolicy, "allow-no-execute-taint-policy", o.AllowNoExecuteTaintPolicy,
		"Admit ClusterTaintPolicies with taints of effect NoExecute, which evict what runs in the clusters that they match.")
	o.Gates.AddFlag(fs)
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(net.ParseIP(o.BindAddress) != nil, "--bind-address %q is not an IP address", o.BindAddress)
	errs.Require(o.SecurePort >= 0 && o.SecurePort <= 65535, "--secure-port %d is not between 0 and 65535", o.SecurePort)
	_, err := tlsVersion(o.TLSMinVersion)
	return errors.Join(append(errs, err)...)
}

func tlsVersion(name string) (uint16, error) {
	switch name {
	case "1.0":
		return tls.VersionTLS10, nil
	case "1.1":
		return tls.VersionTLS11, nil
	case "1.2":
		return tls.VersionTLS12, nil
	case "1.3":
		return tls.VersionTLS13, nil
	}
	return 0, fmt.Errorf("--tls-min-version %q is not one of 1.0, 1.1, 1.2 and 1.3", name)
}
