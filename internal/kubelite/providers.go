package kubelite

import (
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust"
)

// reloadProxyCertificateHook is the API server's hook that watches the files of the aggregator's client certificate.
const reloadProxyCertificateHook = "aggregator-reload-proxy-client-cert"

// The API server watches every file of a certificate or authority with an inotify instance of its own, of which a user
// has 128 by default. The files of a cluster do not change while it runs, so their content is fixed here instead.

// fixServingCertificate fixes the certificate that the API server serves with.
func fixServingCertificate(serving *genericapiserver.SecureServingInfo) error {
	certificate, key := serving.Cert.CurrentCertKeyContent()
	fixed, err := dynamiccertificates.NewStaticCertKeyContent(serving.Cert.Name(), certificate, key)
	if err != nil {
		return fmt.Errorf("reading the certificate of the API server: %w", err)
	}
	serving.Cert = fixed
	return nil
}

// fixClientAuthority fixes the authority of client certificates, before anything reads it.
func fixClientAuthority(opts options.CompletedOptions) error {
	provider, err := opts.Authentication.ClientCert.GetClientCAContentProvider()
	if err != nil {
		return fmt.Errorf("reading the authority of client certificates: %w", err)
	}
	opts.Authentication.ClientCert.CAContentProvider, err = fixedAuthority(provider)
	return err
}

// fixRequestHeaderAuthority fixes the authority of front proxies in what the authentication options have filled.
func fixRequestHeaderAuthority(opts options.CompletedOptions, config *genericapiserver.Config) error {
	provider, err := fixedAuthority(config.Authentication.RequestHeaderConfig.CAContentProvider)
	if err != nil {
		return err
	}
	config.Authentication.RequestHeaderConfig.CAContentProvider = provider
	config.SecureServing.ClientCA = dynamiccertificates.NewUnionCAContentProvider(opts.Authentication.ClientCert.CAContentProvider, provider)
	return nil
}

// fixPublishedAuthority fixes the authority of front proxies that the API server publishes for extension servers.
func fixPublishedAuthority(info *clusterauthenticationtrust.ClusterAuthenticationInfo) error {
	provider, err := fixedAuthority(info.RequestHeaderCA)
	if err != nil {
		return err
	}
	info.RequestHeaderCA = provider
	return nil
}

func fixedAuthority(provider dynamiccertificates.CAContentProvider) (dynamiccertificates.CAContentProvider, error) {
	fixed, err := dynamiccertificates.NewStaticCAContent(provider.Name(), provider.CurrentCABundleContent())
	if err != nil {
		return nil, fmt.Errorf("reading the authority %q: %w", provider.Name(), err)
	}
	return fixed, nil
}
