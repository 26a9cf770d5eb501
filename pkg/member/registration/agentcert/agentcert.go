// Package agentcert defines the client certificates of agents: how an agent requests one,
// and which requests the control plane accepts as one.
package agentcert

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const (
	// ProofAnnotation on a certificate request shows that its author knows the id
	// of the cluster without telling it. See Proof.
	ProofAnnotation = "cluster.karmada.io/id-proof"
	// NamespaceAnnotation on a certificate request and on the Cluster that is made
	// for it is the namespace of the cluster's credentials in the control plane.
	NamespaceAnnotation = "cluster.karmada.io/credentials-namespace"
	// RequestAnnotation on a Cluster is the certificate request that it was made
	// for.
	RequestAnnotation = "cluster.karmada.io/certificate-request"
	// DescriptionAnnotation on a certificate request describes the cluster that is to
	// be registered. See Description.
	DescriptionAnnotation = "cluster.karmada.io/description"
	// TokenAnnotation on a Cluster is the id of the bootstrap token that it was
	// registered with.
	TokenAnnotation = "cluster.karmada.io/bootstrap-token-id"
)

// ReasonBeingRemoved refuses a request for the time that an earlier cluster of the
// name takes to go.
const ReasonBeingRemoved = "BeingRemoved"

// Description are the fields of a cluster by which policies choose it. They come
// with the certificate request; afterwards only the control plane changes them.
type Description struct {
	// Provider and Region are label values; both may be empty.
	Provider string `json:"provider,omitempty"`
	Region   string `json:"region,omitempty"`
	// Zones are label values.
	Zones []string `json:"zones,omitempty"`
}

// String returns the value of DescriptionAnnotation, empty when there is nothing to
// say.
func (d Description) String() string {
	data, err := json.Marshal(d)
	if err != nil || string(data) == "{}" {
		return ""
	}
	return string(data)
}

// Described returns the description in a certificate request, the zero value when
// there is none.
func Described(csr *certificatesv1.CertificateSigningRequest) (Description, error) {
	var d Description
	text := csr.Annotations[DescriptionAnnotation]
	if text == "" {
		return d, nil
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Description{}, fmt.Errorf("reading the annotation %s: %w", DescriptionAnnotation, err)
	}
	return d, nil
}

// CredentialsNamespace returns the namespace, in the control plane, of the credentials
// of a cluster, given its certificate request, its Cluster or its role.
func CredentialsNamespace(obj metav1.Object) string {
	return cmp.Or(obj.GetAnnotations()[NamespaceAnnotation], clusterv1alpha1.NamespaceKarmadaCluster)
}

// Subject is the subject of the certificate of a cluster's agent.
func Subject(cluster string) pkix.Name {
	return pkix.Name{CommonName: names.AgentUser(cluster), Organization: []string{names.AgentGroup}}
}

// Usages are the usages of the certificate of an agent.
func Usages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
}

// Proof shows, bound to one certificate request, that its author knows the id of a
// cluster: requests can be read by others, and what they read is of no use to them.
func Proof(id string, request []byte) string {
	mac := hmac.New(sha256.New, []byte(id))
	mac.Write(request)
	return hex.EncodeToString(mac.Sum(nil))
}

// Proven reports whether a request shows that its author knows the id.
func Proven(id string, csr *certificatesv1.CertificateSigningRequest) bool {
	proof := csr.Annotations[ProofAnnotation]
	return id != "" && proof != "" && hmac.Equal([]byte(proof), []byte(Proof(id, csr.Spec.Request)))
}

// Requested returns the cluster whose agent certificate is requested, and whether the
// request is exactly that of an agent.
func Requested(spec *certificatesv1.CertificateSigningRequestSpec) (cluster string, ok bool) {
	if spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || !usages(spec.Usages) {
		return "", false
	}
	block, rest := pem.Decode(spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) != 0 {
		return "", false
	}
	if again, _ := pem.Decode(rest); again != nil {
		return "", false
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil {
		return "", false
	}
	cluster, ok = names.ClusterOfAgentUser(request.Subject.CommonName)
	if !ok || !exactly(request, Subject(cluster)) {
		return "", false
	}
	return cluster, true
}

// exactly reports whether a request has this subject and no other name.
func exactly(r *x509.CertificateRequest, want pkix.Name) bool {
	// What is in the subject beside common name and organization is in Names.
	return len(r.Subject.Names) == len(want.Organization)+1 &&
		r.Subject.CommonName == want.CommonName && slices.Equal(r.Subject.Organization, want.Organization) &&
		len(r.DNSNames)+len(r.EmailAddresses)+len(r.IPAddresses)+len(r.URIs) == 0
}

// usages reports whether usages are those of an agent; key encipherment may be
// missing.
func usages(have []certificatesv1.KeyUsage) bool {
	seen := map[certificatesv1.KeyUsage]bool{}
	for _, usage := range have {
		if seen[usage] || !slices.Contains(Usages(), usage) {
			return false
		}
		seen[usage] = true
	}
	return seen[certificatesv1.UsageDigitalSignature] && seen[certificatesv1.UsageClientAuth]
}
