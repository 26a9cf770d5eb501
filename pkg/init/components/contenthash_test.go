package components

import (
	"maps"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// issuer makes certificates for the tests of the hash.
type issuer struct{ *testing.T }

func (i issuer) ca(name string) pki.Pair {
	i.Helper()
	ca, err := pki.NewCA(pki.CAConfig{CommonName: name}, nil, time.Unix(1_900_000_000, 0))
	if err != nil {
		i.Fatal(err)
	}
	return ca
}

func (i issuer) leaf(ca pki.Pair) pki.Pair {
	i.Helper()
	leaf, err := pki.NewLeaf(pki.LeafConfig{CommonName: "leaf"}, ca, ca.Cert.NotBefore)
	if err != nil {
		i.Fatal(err)
	}
	return leaf
}

func (i issuer) key(p pki.Pair) []byte {
	i.Helper()
	out, err := p.KeyPEM()
	if err != nil {
		i.Fatal(err)
	}
	return out
}

func (i issuer) kubeconfig(server string, ca, client pki.Pair) []byte {
	i.Helper()
	config, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: "karmada", Server: server, CA: ca.CertPEM(), Client: client})
	if err != nil {
		i.Fatal(err)
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		i.Fatal(err)
	}
	return out
}

// chain returns a kubeconfig with an authority after the client certificate.
func (i issuer) chain(kubeconfig []byte, authority pki.Pair) []byte {
	i.Helper()
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		i.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificateData = append(user.ClientCertificateData, authority.CertPEM()...)
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		i.Fatal(err)
	}
	return out
}

func TestContentHash_ChangesWithWhatIsReadOnce(t *testing.T) {
	i := issuer{t}
	ca, next := i.ca("ca"), i.ca("next")
	leaf, renewed := i.leaf(ca), i.leaf(ca)
	files := map[string][]byte{
		"ca.crt": ca.CertPEM(), "ca.key": i.key(ca), "apiserver.crt": leaf.CertPEM(), "apiserver.key": i.key(leaf), "tls.crt": leaf.CertPEM(), "tls.key": i.key(leaf), etcdCA: ca.CertPEM(),
		"service-account.key": i.key(leaf), "damaged.crt": []byte("x"), "damaged.key": []byte("y"), AdmissionKubeconfigKey: i.kubeconfig("https://a", ca, leaf),
		kubeconfigKey: i.kubeconfig("https://a", ca, leaf), "member1-kubeconfig": i.kubeconfig("https://a", ca, leaf),
	}
	all := []string{Etcd, APIServer, KubeControllerManager, Scheduler, AllInOne, Estimator, MetricsAdapter}
	for name, tc := range map[string]struct {
		change map[string][]byte
		// restarted are the workloads whose hash changes.
		restarted []string
	}{
		"nothing":                               {nil, nil},
		"a renewed certificate":                 {map[string][]byte{"apiserver.crt": renewed.CertPEM(), "apiserver.key": i.key(renewed)}, nil},
		"the key alone":                         {map[string][]byte{"tls.key": i.key(renewed)}, nil},
		"another authority":                     {map[string][]byte{"ca.crt": next.CertPEM()}, []string{Etcd, APIServer, KubeControllerManager}},
		"a bundle":                              {map[string][]byte{"ca.crt": append(ca.CertPEM(), next.CertPEM()...)}, []string{Etcd, APIServer, KubeControllerManager}},
		"another authority of etcd":             {map[string][]byte{etcdCA: next.CertPEM()}, all},
		"the chain after a client":              {map[string][]byte{kubeconfigKey: i.chain(files[kubeconfigKey], next), AdmissionKubeconfigKey: i.chain(files[AdmissionKubeconfigKey], next)}, nil},
		"the key of an authority":               {map[string][]byte{"ca.key": i.key(next)}, all},
		"the key of service accounts":           {map[string][]byte{"service-account.key": i.key(renewed)}, all},
		"the key beside a damaged certificate":  {map[string][]byte{"damaged.key": []byte("z")}, all},
		"a damaged certificate":                 {map[string][]byte{"damaged.crt": []byte("z")}, all},
		"a certificate that becomes damaged":    {map[string][]byte{"apiserver.crt": []byte("z")}, all},
		"the client of the admission webhooks":  {map[string][]byte{AdmissionKubeconfigKey: i.kubeconfig("https://a", ca, renewed)}, all},
		"the kubeconfig of a member":            {map[string][]byte{"member1-kubeconfig": i.kubeconfig("https://a", ca, renewed)}, all},
		"the client in the kubeconfig":          {map[string][]byte{kubeconfigKey: i.kubeconfig("https://a", ca, renewed)}, []string{Etcd, APIServer, KubeControllerManager}},
		"the authority in the kubeconfig":       {map[string][]byte{kubeconfigKey: i.kubeconfig("https://a", next, leaf)}, []string{Etcd, APIServer, KubeControllerManager}},
		"the server in the kubeconfig":          {map[string][]byte{kubeconfigKey: i.kubeconfig("https://b", ca, leaf)}, all},
		"a kubeconfig that is none":             {map[string][]byte{kubeconfigKey: []byte("x")}, all},
		"a further file":                        {map[string][]byte{"new": nil}, all},
		"a further certificate that is no root": {map[string][]byte{"new.crt": leaf.CertPEM(), "new.key": nil}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			changed := maps.Clone(files)
			maps.Copy(changed, tc.change)
			want := map[string]bool{}
			for _, workload := range tc.restarted {
				want[workload] = true
			}
			for _, workload := range all {
				if got := ContentHash(workload, changed) != ContentHash(workload, files); got != want[workload] {
					t.Errorf("%s: changed %t", workload, got)
				}
			}
		})
	}
}
