package components

import (
	"encoding/pem"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// ContentHashAnnotation is the annotation of pods with the ContentHash of the files that they have from Secrets: it replaces them when
// those change that their process reads once.
const ContentHashAnnotation = "karmada.io/content-hash"

// Ends of the names of files.
const (
	certificateEnd = ".crt"
	keyEnd         = ".key"
)

// etcdCA is the file with the authority of etcd.
const etcdCA = "etcd-ca.crt"

// ContentHash returns the hash of the files of a pod that its process reads once, for ContentHashAnnotation. The files are those of
// SecretFiles. The workload is the component as init names it, which is the name of the container, also where the Deployment has another.
//
// Left out is what processes read again: certificates that are not of an authority, the keys beside them, and in kubeconfigs the
// certificates. Those of Karmada read all authorities again but that of etcd; kube-controller-manager reads its kubeconfig once, and
// karmada-apiserver that for webhooks: of those the chain after the client certificate does not count, by which others know it.
func ContentHash(workload string, files map[string][]byte) string {
	data := map[string][]byte{}
	for name, content := range files {
		switch {
		case isLeaf(files, name), !OfKubernetes(workload) && isAuthority(content) && name != etcdCA:
		case name == kubeconfigKey && !OfKubernetes(workload):
			data[name] = withCertificates(content, func([]byte) []byte { return nil })
		case name == kubeconfigKey, name == AdmissionKubeconfigKey:
			data[name] = withCertificates(content, firstBlock)
		default:
			data[name] = content
		}
	}
	return hash(data, keysOf(data))
}

// isLeaf reports whether a file is a certificate that is not of an authority, or the key beside one.
func isLeaf(files map[string][]byte, name string) bool {
	base, ok := strings.CutSuffix(name, certificateEnd)
	if !ok {
		if base, ok = strings.CutSuffix(name, keyEnd); !ok {
			return false
		}
	}
	certificate, err := pki.ParseCert(files[base+certificateEnd])
	return err == nil && !certificate.IsCA
}

// isAuthority reports whether a file is the certificate of an authority, or a bundle of them.
func isAuthority(content []byte) bool {
	certificate, err := pki.ParseCert(content)
	return err == nil && certificate.IsCA
}

// firstBlock returns the first block of PEM.
func firstBlock(content []byte) []byte {
	block, _ := pem.Decode(content)
	if block == nil {
		return content
	}
	return pem.EncodeToMemory(block)
}

// withCertificates returns a kubeconfig with what becomes of its client certificates. Without them it has no keys and authorities either.
func withCertificates(kubeconfig []byte, change func([]byte) []byte) []byte {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || len(config.AuthInfos) == 0 {
		return kubeconfig
	}
	for _, user := range config.AuthInfos {
		if user.ClientCertificateData = change(user.ClientCertificateData); user.ClientCertificateData != nil {
			continue
		}
		user.ClientKeyData = nil
		for _, cluster := range config.Clusters {
			cluster.CertificateAuthorityData = nil
		}
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return kubeconfig
	}
	return out
}

// SecretFiles returns the files that pods with some volumes have from Secrets: the keys that each volume selects. secret returns the data
// of a Secret by its name, nil if there is none.
func SecretFiles(volumes []corev1.Volume, secret func(name string) map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for _, v := range volumes {
		if v.Secret == nil {
			continue
		}
		data := secret(v.Secret.SecretName)
		keys := keysOf(data)
		if len(v.Secret.Items) > 0 {
			keys = nil
		}
		for _, item := range v.Secret.Items {
			keys = append(keys, item.Key)
		}
		for _, key := range keys {
			out[key] = data[key]
		}
	}
	return out
}
