package member

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

// controlPlaneEntry is the name of the control plane in an agent's kubeconfig.
const controlPlaneEntry = "karmada-apiserver"

// csrRetryInterval is the time between certificate requests while an earlier cluster
// of the name is being removed.
const csrRetryInterval = time.Second

// tokenAcceptTimeout is how long requests with a token are retried that the control
// plane rejects.
const tokenAcceptTimeout = 5 * time.Second

// EnrolRequest specifies the cluster that gets an identity in Pull mode.
type EnrolRequest struct {
	// Name of the cluster.
	Name string
	// ID of the cluster: the UID of its namespace kube-system.
	ID string
	// Namespace of the credentials in the control plane. Default karmada-cluster.
	Namespace string
	// Description is written to the spec of a new Cluster. A cluster that was
	// registered before is not changed.
	Description agentcert.Description
	// Token is a bootstrap token of the control plane.
	Token string
	// Lifetime of the certificate. Default what the control plane gives.
	Lifetime time.Duration
	// Timeout of each step. Default 5 min.
	Timeout time.Duration
}

// Identity is what the agent of a cluster is in the control plane.
type Identity struct {
	// Cluster whose agent it is.
	Cluster string
	// Kubeconfig of the agent, with its client certificate inside.
	Kubeconfig []byte
	// Config is the same for this process.
	Config *rest.Config
	// Client of the control plane, as the agent.
	Client client.Client
	// New reports whether the Cluster was created for it: it was not registered before.
	New bool
}

// Enrol does the control plane's half of a registration: with nothing but a
// bootstrap token it returns the identity of the cluster's agent. The Cluster
// exists then, in Pull mode and with its id, and the agent has its rights. A
// cluster that was registered before, with the same id, gets a further certificate.
//
// When the control plane refuses, as for a name that another cluster has, its
// reason is in the error and nothing was made.
func Enrol(ctx context.Context, s Server, r EnrolRequest, report Reporter) (*Identity, error) {
	if err := ValidatePullName(r.Name); err != nil {
		return nil, err
	}
	if r.ID == "" {
		return nil, fmt.Errorf("registering cluster %q: its id is not known", r.Name)
	}
	if r.Timeout <= 0 {
		r.Timeout = 5 * time.Minute
	}
	key, err := pki.NewKey(pki.ECDSA)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: agentcert.Subject(r.Name)}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	csr, err := sign(ctx, s, r, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), report)
	if err != nil {
		return nil, err
	}
	pair, err := pairOf(csr, key)
	if err != nil {
		return nil, err
	}
	id, err := newIdentity(s, r.Name, pair)
	if err != nil {
		return nil, err
	}
	if err := id.waitUsable(ctx, r, csr.Name, report); err != nil {
		return nil, err
	}
	return id, nil
}

// ValidatePullName returns an error if a name is not valid for a cluster in Pull mode.
func ValidatePullName(name string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	if why := names.ReservedForAgents(name); why != "" {
		return fmt.Errorf("the name %q is not possible in Pull mode: %s", name, why)
	}
	return nil
}

// sign requests a certificate and waits until it is issued.
func sign(ctx context.Context, s Server, r EnrolRequest, request []byte, report Reporter) (*certificatesv1.CertificateSigningRequest, error) {
	c, err := NewClient(&rest.Config{Host: s.URL, BearerToken: r.Token, TLSClientConfig: rest.TLSClientConfig{CAData: s.CABundle}})
	if err != nil {
		return nil, err
	}
	var csr *certificatesv1.CertificateSigningRequest
	what := func() string { return fmt.Sprintf("an earlier cluster %q to be gone", r.Name) }
	// Longer than one request may take, whose error says more.
	err = await(ctx, 2*r.Timeout, report, what, func(ctx context.Context) (bool, error) {
		csr, err = requestCertificate(ctx, c, s, r, request, report)
		var no *refusal
		if !errors.As(err, &no) || no.reason != agentcert.ReasonBeingRemoved {
			return err == nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(csrRetryInterval):
		}
		return false, nil
	})
	return csr, err
}

// requestCertificate creates one request and waits until it is signed or refused.
func requestCertificate(ctx context.Context, c client.Client, s Server, r EnrolRequest, request []byte, report Reporter) (*certificatesv1.CertificateSigningRequest, error) {
	csr := newRequest(r, request)
	if err := present(ctx, c, csr, r.Timeout, report); err != nil {
		return nil, tokenRefused(err, s.URL, r.Token)
	}
	what := func() string {
		return fmt.Sprintf("the control plane to approve and sign certificate request %s", csr.Name)
	}
	err := await(ctx, r.Timeout, report, what, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			if Unserved(err) {
				return false, nil
			}
			return false, fmt.Errorf("reading certificate request %s: %w", csr.Name, err)
		}
		return decided(csr)
	})
	if errors.Is(err, wait.ErrTimeout) {
		return nil, fmt.Errorf("certificate request %s is %s after %s: does the control plane run karmada-controller-manager with agentcsrapproving, and kube-controller-manager with csrsigning?",
			csr.Name, stateOf(csr), r.Timeout)
	}
	return csr, err
}

// present creates a request with a token. An API server observes a token, and the
// permissions of its groups, some time after they were created: the request is retried
// for tokenAcceptTimeout. While the API server restarts it is retried until the limit.
func present(ctx context.Context, c client.Client, csr *certificatesv1.CertificateSigningRequest, limit time.Duration, report Reporter) error {
	retryCtx, cancel := context.WithTimeout(ctx, tokenAcceptTimeout)
	defer cancel()
	what := func() string { return "the control plane to accept the token" }
	lost := false // an answer, so that the request may exist
	return await(ctx, limit, report, what, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, csr)
		if lost && apierrors.IsAlreadyExists(err) {
			return true, nil
		}
		lost = lost || Unserved(err)
		if Unserved(err) || (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)) && retryCtx.Err() == nil {
			return false, nil
		}
		return err == nil, err
	})
}

func newRequest(r EnrolRequest, request []byte) *certificatesv1.CertificateSigningRequest {
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name + "-" + utilrand.String(5), Labels: systemLabels(),
			Annotations: map[string]string{agentcert.ProofAnnotation: agentcert.Proof(r.ID, request)},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: agentcert.Usages(),
		},
	}
	if r.Namespace != "" {
		csr.Annotations[agentcert.NamespaceAnnotation] = r.Namespace
	}
	if text := r.Description.String(); text != "" {
		csr.Annotations[agentcert.DescriptionAnnotation] = text
	}
	if r.Lifetime > 0 {
		csr.Spec.ExpirationSeconds = new(int32(r.Lifetime / time.Second))
	}
	return csr
}

// tokenRefused adds the cause to an error of the first request with a token.
func tokenRefused(err error, server, token string) error {
	switch id, _ := cutToken(token); {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not accept token %s: it has expired or was deleted, was used for a cluster that is gone, or is not for authentication; make another with \"token create\": %w", server, id, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s does not let token %s request a certificate: its groups do not include %s: %w", server, id, names.BootstrapGroup, err)
	}
	return fmt.Errorf("requesting a certificate from %s: %w", server, err)
}

// refusal is the denial of a certificate request.
type refusal struct{ reason, message string }

// Error implements error.
func (r *refusal) Error() string { return "the control plane refused: " + r.message }

// decided reports whether a request is signed. It returns an error if it is denied or
// failed.
func decided(csr *certificatesv1.CertificateSigningRequest) (bool, error) {
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return false, &refusal{reason: c.Reason, message: c.Message}
		case certificatesv1.CertificateFailed:
			return false, fmt.Errorf("the control plane could not sign certificate request %s: %s", csr.Name, c.Message)
		}
	}
	return len(csr.Status.Certificate) > 0, nil
}

func stateOf(csr *certificatesv1.CertificateSigningRequest) string {
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved {
			return "approved but not signed"
		}
	}
	return "not approved"
}

// newIdentity builds the kubeconfig of an agent.
func newIdentity(s Server, cluster string, pair pki.Pair) (*Identity, error) {
	config, err := pki.NewKubeconfig(pki.KubeconfigEntry{
		Context: cluster + "@" + controlPlaneEntry, Cluster: controlPlaneEntry, User: cluster,
		Server: s.URL, CA: s.CABundle, Client: pair,
	})
	if err != nil {
		return nil, fmt.Errorf("making the kubeconfig of the agent: %w", err)
	}
	id := &Identity{Cluster: cluster}
	if id.Kubeconfig, err = clientcmd.Write(*config); err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of the agent: %w", err)
	}
	if id.Config, err = clientcmd.RESTConfigFromKubeConfig(id.Kubeconfig); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the agent: %w", err)
	}
	if id.Client, err = NewClient(id.Config); err != nil {
		return nil, err
	}
	return id, nil
}

// waitUsable waits for the permissions of the agent and then writes the id of the
// cluster to the control plane.
func (i *Identity) waitUsable(ctx context.Context, r EnrolRequest, request string, report Reporter) error {
	cluster := &clusterv1alpha1.Cluster{}
	var last error
	what := func() string { return fmt.Sprintf("the rights of the agent of cluster %q (%v)", r.Name, last) }
	err := await(ctx, r.Timeout, report, what, func(ctx context.Context) (bool, error) {
		last = i.Client.Get(ctx, client.ObjectKey{Name: r.Name}, cluster)
		if apierrors.IsForbidden(last) || apierrors.IsNotFound(last) || Unserved(last) {
			return false, nil
		}
		return last == nil, last
	})
	if err != nil {
		return fmt.Errorf("reading cluster %q as its agent: %w", r.Name, err)
	}
	i.New = cluster.Annotations[agentcert.RequestAnnotation] == request
	if cluster.Spec.ID == r.ID {
		return nil
	}
	if cluster.Spec.ID != "" {
		return fmt.Errorf("the name %q is taken by another cluster", r.Name)
	}
	if err := patch.Change(ctx, i.Client, cluster, func() { cluster.Spec.ID = r.ID }); err != nil {
		if apierrors.IsInvalid(err) {
			err = fmt.Errorf("this cluster is a member already, under another name: %w", err)
		}
		return errors.Join(fmt.Errorf("writing the id of cluster %q to the control plane: %w", r.Name, err), i.Forget(ctx))
	}
	return nil
}

// Forget deletes the Cluster if the registration created it. It does not wait until
// the deletion is finished.
func (i *Identity) Forget(ctx context.Context) error {
	if !i.New {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: i.Cluster}}
	if err := i.Client.Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking back the registration of cluster %q: %w", i.Cluster, err)
	}
	return nil
}
