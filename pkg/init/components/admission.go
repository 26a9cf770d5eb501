package components

import (
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// WebhookClient is the certificate by which the webhook server recognizes the API
	// server.
	WebhookClient = "apiserver-webhook-client"

	// AdmissionConfigFlag is the API server's flag that names the file.
	AdmissionConfigFlag = "--admission-control-config-file"
	// AdmissionConfigKey is the file name of the AdmissionConfiguration.
	AdmissionConfigKey = "admission.yaml"
	// AdmissionKubeconfigKey is the file name of the kubeconfig that it names.
	AdmissionKubeconfigKey = "webhooks.kubeconfig"

	admissionSecret = "karmada-apiserver-admission"
	admissionDir    = "/etc/karmada/admission"
)

// AdmissionConfiguration returns the file for the API server's flag
// --admission-control-config-file by which it identifies itself to the servers of
// admission webhooks with the users of a kubeconfig.
func AdmissionConfiguration(kubeconfig string) []byte {
	const plugin = `- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %q
`
	var text strings.Builder
	text.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n")
	for _, name := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		fmt.Fprintf(&text, plugin, name, kubeconfig)
	}
	return []byte(text.String())
}

// AdmissionKubeconfig returns the kubeconfig of the AdmissionConfiguration: the
// client certificate and key, PEM, for the webhook server at host, which is
// HOST:PORT, HOST for port 443, or "*" for every server. Servers of other webhooks
// are presented none.
func AdmissionKubeconfig(host string, certificate, key []byte) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.AuthInfos[host] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig for webhooks at %s: %w", host, err)
	}
	return out, nil
}
