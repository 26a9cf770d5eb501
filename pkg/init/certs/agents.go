package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// Agent is the agent of a cluster in Pull mode, and what is known of its certificate.
type Agent struct {
	Cluster string
	// Status is what the agent reports, or what its last request for a certificate shows: then it has no authorities.
	agentcert.Status
}

// listAgents returns the agents of a control plane.
func listAgents(ctx context.Context, c client.Client) ([]Agent, error) {
	clusters := &clusterv1alpha1.ClusterList{}
	if err := c.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("listing the clusters: %w", err)
	}
	leases := &coordinationv1.LeaseList{}
	if err := c.List(ctx, leases, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster)); err != nil {
		return nil, fmt.Errorf("listing the Leases of the clusters: %w", err)
	}
	requested, err := requestedCertificates(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []Agent
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		if cluster.Spec.SyncMode != clusterv1alpha1.Pull {
			continue
		}
		a := Agent{Cluster: cluster.Name}
		if j := slices.IndexFunc(leases.Items, func(l coordinationv1.Lease) bool { return l.Name == cluster.Name }); j >= 0 {
			a.Status, _ = agentcert.StatusIn(&leases.Items[j]) // what cannot be read was not reported
		}
		if last := requested[cluster.Name]; last != nil && a.NotAfter.IsZero() {
			a.Status = agentcert.StatusOf(last, nil)
		}
		out = append(out, a)
	}
	return out, nil
}

// requestedCertificates returns the certificate of each agent that ends last, of those that were requested lately.
func requestedCertificates(ctx context.Context, c client.Client) (map[string]*x509.Certificate, error) {
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the certificate requests: %w", err)
	}
	out := map[string]*x509.Certificate{}
	for i := range list.Items {
		request := &list.Items[i]
		cluster, ok := agentcert.Requested(&request.Spec)
		if !ok || len(request.Status.Certificate) == 0 {
			continue
		}
		certificate, err := pki.ParseCert(request.Status.Certificate)
		if err == nil && (out[cluster] == nil || certificate.NotAfter.After(out[cluster].NotAfter)) {
			out[cluster] = certificate
		}
	}
	return out, nil
}

// user returns the user that the agent is.
func (a *Agent) user() string { return names.AgentUser(a.Cluster) }

// waiting returns the clusters whose agents do not use one of the new authorities. An agent needs the authority of the control plane alone;
// it trusts and says no others.
func waiting(agents []Agent, changes []change) []string {
	var out []string
	for _, a := range agents {
		if !slices.ContainsFunc(changes, func(c change) bool { return a.Uses(c.new.Cert) }) {
			out = append(out, a.Cluster)
		}
	}
	return out
}
