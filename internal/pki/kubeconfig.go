package pki

import (
	"fmt"
	"maps"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeconfigEntry is one cluster, user and context of a kubeconfig, all under names derived from Context.
type KubeconfigEntry struct {
	// Context is the name of the context and, unless the next two name others, of its cluster and user.
	Context string
	Cluster string
	User    string
	Server  string
	CA      []byte
	// Client is the identity, a client certificate, inlined.
	Client Pair
	// Token is the identity if there is no client certificate.
	Token string
	// Namespace is the default namespace of the context.
	Namespace string
}

// NewKubeconfig returns a kubeconfig with one context, which is the current one.
func NewKubeconfig(e KubeconfigEntry) (*clientcmdapi.Config, error) {
	auth := &clientcmdapi.AuthInfo{Token: e.Token}
	if e.Client.Cert != nil {
		keyPEM, err := e.Client.KeyPEM()
		if err != nil {
			return nil, err
		}
		auth = &clientcmdapi.AuthInfo{ClientCertificateData: e.Client.CertPEM(), ClientKeyData: keyPEM}
	}
	cluster, user := or(e.Cluster, e.Context), or(e.User, e.Context)
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters[cluster] = &clientcmdapi.Cluster{Server: e.Server, CertificateAuthorityData: e.CA}
	cfg.AuthInfos[user] = auth
	cfg.Contexts[e.Context] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user, Namespace: e.Namespace}
	cfg.CurrentContext = e.Context
	return cfg, nil
}

// MergeKubeconfig puts the clusters, users and contexts of from into into, replacing those of the same name. The
// current context is set only if there is none.
func MergeKubeconfig(into, from *clientcmdapi.Config) {
	maps.Copy(into.Clusters, from.Clusters)
	maps.Copy(into.AuthInfos, from.AuthInfos)
	maps.Copy(into.Contexts, from.Contexts)
	if into.CurrentContext == "" {
		into.CurrentContext = from.CurrentContext
	}
}

// WriteKubeconfig writes a kubeconfig file atomically, readable by its owner only.
func WriteKubeconfig(path string, cfg *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*cfg)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig: %w", err)
	}
	if err := WriteFile(path, data, secretMode); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
