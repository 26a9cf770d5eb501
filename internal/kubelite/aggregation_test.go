package kubelite_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// extensionServer is an API server behind the aggregation layer: it trusts only the authority that the cluster
// publishes for this, and answers with the name of the user that it received.
func extensionServer(t *testing.T, client kubernetes.Interface) (port int, caPEM []byte) {
	t.Helper()
	config, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	frontProxy := x509.NewCertPool()
	if !frontProxy.AppendCertsFromPEM([]byte(config.Data["requestheader-client-ca-file"])) {
		t.Fatalf("no authority published: %v", config.Data)
	}
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "extension"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := pki.NewLeaf(pki.LeafConfig{CommonName: "extension", Hosts: []string{"extension.default.svc"}}, ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	discovery := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.dev/v1","resources":[]}`)
	}
	mux.HandleFunc("/apis/example.dev/v1", discovery)
	mux.HandleFunc("/apis/example.dev/v1/whoami", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("X-Remote-User"), " ", r.Header.Values("X-Remote-Group"))
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{leaf.TLS()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: frontProxy, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port, ca.CertPEM()
}

func TestAggregation_ThroughAnExternalName(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.ControlPlane())
	client := clientOf(t, c)
	port, ca := extensionServer(t, client)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "extension"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	registrations, err := aggregator.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	registration := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.example.dev"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "example.dev", Version: "v1", GroupPriorityMinimum: 2000, VersionPriority: 10, CABundle: ca,
			Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "extension", Port: new(int32(port))},
		},
	}
	if _, err := registrations.ApiregistrationV1().APIServices().Create(t.Context(), registration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		answer, err := client.CoreV1().RESTClient().Get().AbsPath("/apis/example.dev/v1/whoami").DoRaw(ctx)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(answer), "system:admin ") || !strings.Contains(string(answer), "system:masters") {
			return fmt.Errorf("the extension saw %q", answer)
		}
		return nil
	})
}

// certificateRequest makes a request, approved, and returns it with its key.
func certificateRequest(t *testing.T, client kubernetes.Interface, name string, request x509.CertificateRequest, spec certificatesv1.CertificateSigningRequestSpec) crypto.Signer {
	t.Helper()
	key, err := pki.NewKey(pki.ECDSA)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &request, key)
	if err != nil {
		t.Fatal(err)
	}
	spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	requests := client.CertificatesV1().CertificateSigningRequests()
	object := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if object, err = requests.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	if _, err := requests.UpdateApproval(t.Context(), name, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return key
}

// answered waits until a request has a certificate or has failed.
func answered(t *testing.T, client kubernetes.Interface, name string) certificatesv1.CertificateSigningRequestStatus {
	t.Helper()
	var status certificatesv1.CertificateSigningRequestStatus
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		request, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status = request.Status
		if len(status.Certificate) == 0 && len(status.Conditions) < 2 {
			return errors.New("not answered yet")
		}
		return nil
	})
	return status
}

func TestSigning_ClientCertificate(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.ControlPlane())
	client := clientOf(t, c)
	key := certificateRequest(t, client, "jane", x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}}, certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	})
	config := rest.AnonymousClientConfig(c.Config)
	config.CertData = answered(t, client, "jane").Certificate
	var err error
	if config.KeyData, err = pki.EncodeKey(key); err != nil {
		t.Fatal(err)
	}
	jane, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = jane.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), `User "jane" cannot list`) {
		t.Errorf("got %v, want a refusal that names jane", err)
	}
}

func TestSigning_EverySigner(t *testing.T) {
	t.Parallel()
	client := clientOf(t, testenv.Start(t, testenv.Member("m1", 0)))
	node := pkix.Name{CommonName: "system:node:m1-node-0", Organization: []string{"system:nodes"}}
	clientAuth := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	serverAuth := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	hour := new(int32(3600))
	tests := []struct {
		name    string
		request x509.CertificateRequest
		spec    certificatesv1.CertificateSigningRequestSpec
		refused string
	}{
		{
			"kubelet-client", x509.CertificateRequest{Subject: node},
			certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Usages: clientAuth, ExpirationSeconds: hour}, "",
		},
		{
			"kubelet-serving", x509.CertificateRequest{Subject: node, DNSNames: []string{"m1-node-0"}},
			certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Usages: serverAuth, ExpirationSeconds: hour}, "",
		},
		{
			"kubelet-serving-without-name", x509.CertificateRequest{Subject: node},
			certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Usages: serverAuth}, "DNS or IP subjectAltName is required",
		},
		{
			"client-that-serves", x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}},
			certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: serverAuth}, "invalid usage for client certificate: server auth",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			certificateRequest(t, client, tt.name, tt.request, tt.spec)
			status := answered(t, client, tt.name)
			if tt.refused != "" {
				failed := status.Conditions[len(status.Conditions)-1]
				if failed.Type != certificatesv1.CertificateFailed || failed.Reason != "SignerValidationFailure" || !strings.Contains(failed.Message, tt.refused) {
					t.Errorf("got condition %+v, want a failure with %q", failed, tt.refused)
				}
				return
			}
			block, _ := pem.Decode(status.Certificate)
			if block == nil {
				t.Fatalf("no certificate: %+v", status)
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if got := certificate.NotAfter.Sub(certificate.NotBefore); certificate.Subject.CommonName != node.CommonName || got != time.Hour+5*time.Minute {
				t.Errorf("the certificate is for %s and %s, want %s, and one hour from five minutes ago", certificate.Subject, got, node)
			}
		})
	}
}

func TestBootstrapToken_SignsClusterInfoAndLogsIn(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.ControlPlane())
	client := clientOf(t, c)
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: map[string]string{"kubeconfig": "apiVersion: v1\nkind: Config\n"}}
	if _, err := client.CoreV1().ConfigMaps("kube-public").Create(t.Context(), info, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
		},
	}
	if _, err := client.CoreV1().Secrets("kube-system").Create(t.Context(), token, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		signed, err := client.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		if err == nil && signed.Data["jws-kubeconfig-abcdef"] == "" {
			err = errors.New("cluster-info is not signed yet")
		}
		return err
	})
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = "abcdef.0123456789abcdef"
	newcomer, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = newcomer.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), `User "system:bootstrap:abcdef" cannot list`) {
		t.Errorf("got %v, want a refusal that names the token", err)
	}
}
