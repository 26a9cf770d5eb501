package components

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// Names of Secrets.
//
//nolint:gosec // names, not credentials
const (
	certSecret        = "karmada-cert"
	etcdCertSecret    = "etcd-cert"
	webhookCertSecret = "karmada-webhook-cert"
	// RenewalSecret has the state of a change of authorities.
	RenewalSecret = "karmada-certs-renewal"
)

// CertSecret is the Secret with all certificates and keys of a control plane.
const CertSecret = certSecret

const (
	// InstanceLabel has the name of the Helm release, or of the Karmada.
	InstanceLabel = "app.kubernetes.io/instance"
	// ManagedByLabel names what manages an object.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByOperator is its value for what an operator manages.
	ManagedByOperator = "karmada-operator"
)

// RenewAfterAnnotation on the CertSecret of a Helm release is when an upgrade renews some certificates, in seconds since 1970.
const RenewAfterAnnotation = "karmada.io/renew-after"

// EarlyRenewal makes an upgrade renew what ends within 90 days; a control plane renews 30 days before the end.
const EarlyRenewal = 60 * 24 * time.Hour

// RenewAfter returns RenewAfterAnnotation for the content of a CertSecret.
func RenewAfter(data map[string][]byte) string {
	var first time.Time
	for name, content := range data {
		if cert, err := pki.ParseCert(content); err == nil && !cert.IsCA && strings.HasSuffix(name, certificateEnd) {
			if due := pki.RenewAfter(cert).Add(-EarlyRenewal); first.IsZero() || due.Before(first) {
				first = due
			}
		}
	}
	return strconv.FormatInt(first.Unix(), 10)
}

// Names of certificates that are not named for the components that use them.
const (
	// ServiceAccountKey signs the tokens of service accounts.
	ServiceAccountKey = "service-account"
	// SigningCA is the file with the first certificate of ca.crt, which may be a bundle: kube-controller-manager signs with one.
	SigningCA = "signing-ca.crt"
	// Admin is the certificate of the administrator.
	Admin = "admin"
	// EstimatorClient is how the scheduler is known to estimators.
	EstimatorClient = "scheduler-estimator-client"
	// EstimatorClientName is the common name of that certificate.
	EstimatorClientName = "karmada-scheduler-estimator-client"
)

// KubeconfigUsers are the components that have a kubeconfig in a Secret
// <name>-config, those that are installed later among them.
func (c *Config) KubeconfigUsers() []string {
	if c.Compact {
		return append(kubeconfigUsers(), AllInOne)
	}
	return kubeconfigUsers()
}

func kubeconfigUsers() []string {
	return []string{
		AggregatedAPIServer, ControllerManager, KubeControllerManager, Scheduler,
		Descheduler, MetricsAdapter, Search, Webhook,
	}
}

// HostNamespace is the namespace of the control plane in the host cluster.
func HostNamespace(c *Config) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Labels: names.SystemLabels()}}
}

// Secrets returns the credentials of the control plane. Pods mount only the keys
// that they need.
func Secrets(c *Config) ([]client.Object, error) {
	var out []client.Object
	admission, err := c.admission()
	if err != nil {
		return nil, err
	}
	for _, name := range c.KubeconfigUsers() {
		out = append(out, c.secret(name+"-config", map[string][]byte{kubeconfigKey: c.Kubeconfigs[name]}))
	}
	return append(out,
		c.secret(etcdCertSecret, c.Certificates.etcd()),
		c.secret(certSecret, c.Certificates),
		c.secret(webhookCertSecret, c.Certificates.webhook()),
		c.secret(admissionSecret, admission),
	), nil
}

func (c *Config) secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: c.meta(name, SecretDefaults), Type: corev1.SecretTypeOpaque, Data: data}
}

// Certificates are the keys of the Secret karmada-cert: NAME.crt and NAME.key.
type Certificates map[string][]byte

// CABundle has the authority of the servers of the control plane first, and beside it another one while it is replaced.
func (c Certificates) CABundle() []byte { return c["ca.crt"] }

// etcd returns the data of the Secret of etcd.
func (c Certificates) etcd() map[string][]byte {
	out := map[string][]byte{}
	for _, key := range []string{"etcd-ca.crt", "etcd-ca.key", "etcd-server.crt", "etcd-server.key"} {
		out[key] = c[key]
	}
	return out
}

// webhook returns the data of the Secret of the webhook server.
func (c Certificates) webhook() map[string][]byte {
	return map[string][]byte{
		corev1.TLSCertKey:       c[Webhook+".crt"],
		corev1.TLSPrivateKeyKey: c[Webhook+".key"],
	}
}

// addon returns the certificates of a server that is installed as an addon: a pair of its own, and the authority of
// its clients.
func (c Certificates) addon(workload string) map[string][]byte {
	return map[string][]byte{AddonCA: c.CABundle(), AddonCert: c[workload+".crt"], AddonKey: c[workload+".key"]}
}

// admission returns how the API server identifies itself to the webhook server.
func (c *Config) admission() (map[string][]byte, error) {
	host := fmt.Sprintf("%s.%s.svc", c.Name(Webhook), c.Namespace)
	kubeconfig, err := AdmissionKubeconfig(host, c.Certificates[WebhookClient+".crt"], c.Certificates[WebhookClient+".key"])
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		AdmissionConfigKey:     AdmissionConfiguration(admissionDir + "/" + AdmissionKubeconfigKey),
		AdmissionKubeconfigKey: kubeconfig,
	}, nil
}
