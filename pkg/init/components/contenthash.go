package components

import (
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

// ContentHash returns the hash of the files of a pod that its process reads once, for ContentHashAnnotation. The files are those of
// SecretFiles. The workload is the component as init names it, which is the name of the container, also where the Deployment has another.
//
// Left out is what processes read again: certificates that are not of an authority, the keys beside them, and in the kubeconfig the
// client certificate. Those of Karmada read the authority in the kubeconfig again, too; kube-controller-manager reads all of it once.
func ContentHash(workload string, files map[string][]byte) string {
	data := map[string][]byte{}
	for name, content := range files {
		switch {
		case isLeaf(files, name):
		case name == kubeconfigKey && !OfKubernetes(workload):
			data[name] = withoutCertificates(content)
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

// withoutCertificates returns a kubeconfig without its certificates and keys, and what is none unchanged.
func withoutCertificates(kubeconfig []byte) []byte {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || len(config.Clusters) == 0 {
		return kubeconfig
	}
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData = nil
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData = nil, nil
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
