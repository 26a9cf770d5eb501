// Package extension holds what the API servers behind the aggregation layer of a control plane share: their flags, the
// listener, and how they authenticate and authorize requests.
package extension

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// Options are the settings that the servers share.
type Options struct {
	// SecureServing is the address and the certificate of the server. Without
	// --cert-dir or a certificate one is made that lives as long as the process.
	SecureServing *genericoptions.SecureServingOptions
	// Authentication configures reviews of tokens and the CAs of client certificates.
	// By default, both come from the control plane of the manager.
	Authentication *genericoptions.DelegatingAuthenticationOptions
	// Authorization configures who authorizes requests.
	Authorization *genericoptions.DelegatingAuthorizationOptions
	// Audit configures the audit log.
	Audit *genericoptions.AuditOptions
	// Features are switches of the server. Profiling and priority and fairness are
	// off regardless of them.
	Features *genericoptions.FeatureOptions
}

// NewOptions returns the defaults.
func NewOptions() Options {
	serving := genericoptions.NewSecureServingOptions()
	serving.HTTP2MaxStreamsPerConnection = 1000
	serving.ServerCert.CertDirectory = ""
	authentication := genericoptions.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFileOptional = true
	authorization := genericoptions.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFileOptional = true
	return Options{
		SecureServing:  serving,
		Authentication: authentication,
		Authorization:  authorization,
		Audit:          genericoptions.NewAuditOptions(),
		Features:       genericoptions.NewFeatureOptions(),
	}
}

// AddFlags adds the flags of the settings.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.SecureServing.AddFlags(fs)
	o.Authentication.AddFlags(fs)
	o.Authorization.AddFlags(fs)
	o.Audit.AddFlags(fs)
	o.Features.AddFlags(fs)
}

// Validate returns an error for settings that cannot work.
func (o *Options) Validate() error {
	var errs []error
	errs = append(errs, o.SecureServing.Validate()...)
	errs = append(errs, o.Authentication.Validate()...)
	errs = append(errs, o.Authorization.Validate()...)
	errs = append(errs, o.Audit.Validate()...)
	errs = append(errs, o.Features.Validate()...)
	return errors.Join(errs...)
}

// Serving opens the listener of a role and returns its settings, with a certificate.
func (o *Options) Serving(role string) (*genericapiserver.SecureServingInfo, error) {
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, fmt.Errorf("making a serving certificate: %w", err)
	}
	var info *genericapiserver.SecureServingInfo
	if err := o.SecureServing.ApplyTo(&info); err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	if info == nil {
		return nil, errors.New("--secure-port 0 leaves nothing to serve")
	}
	// What the provider has is served at once.
	metrics.Certificate("serving", role, func() *x509.Certificate {
		certificate, key := info.Cert.CurrentCertKeyContent()
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return nil
		}
		return pair.Leaf
	})
	return info, nil
}
