package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// member is how a cluster is reached in the name of users.
type member struct {
	name     string
	endpoint *url.URL
	// token is the impersonator's.
	token string
	// plain carries requests, upgrade those that change the protocol.
	plain, upgrade http.RoundTripper
	// guarded carries requests whose answers are decoded.
	guarded http.RoundTripper
	buffers *buffers
}

// Members finds the way to clusters.
type Members struct {
	secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	pool   *pool
	// buffers are shared by all requests.
	buffers buffers
}

// NewMembers returns the way to clusters. secret returns a Secret of the control plane; minTLSVersion is the lowest version of
// TLS, 0 for 1.2.
func NewMembers(secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error), minTLSVersion uint16) *Members {
	return &Members{secret: secret, pool: newPool(minTLSVersion)}
}

// End closes the connections.
func (m *Members) End() { m.pool.End() }

// Handler returns what carries the inner request to a cluster in the name of the requester. modify changes answers that are no
// upgrades: nil for none.
func (m *Members) Handler(ctx context.Context, c *clusterv1alpha1.Cluster, in Inner, requester user.Info, responder rest.Responder, modify func(*http.Response) error) (http.Handler, error) {
	found, err := m.of(ctx, c)
	if err != nil {
		return nil, err
	}
	return forward(found, in, requester, responder, modify), nil
}

// Get sends a GET to a cluster in the name of the requester, with the limits and checks of access.Guard for the answer, which may
// have any code.
func (m *Members) Get(ctx context.Context, c *clusterv1alpha1.Cluster, in Inner, header http.Header, requester user.Info) (*http.Response, error) {
	found, err := m.of(ctx, c)
	if err != nil {
		return nil, err
	}
	return found.get(ctx, found.guarded, in, header, requester)
}

// of returns the way to a cluster. Its error is ServiceUnavailable while the agent of
// a cluster in Pull mode has not reported.
func (m *Members) of(ctx context.Context, c *clusterv1alpha1.Cluster) (*member, error) {
	found, err := m.resolve(ctx, c)
	if err != nil && awaitsReport(c) {
		return nil, notReported(c.Name, err)
	}
	return found, err
}

// reasonNeverUpdated is the reason of condition Ready that the cluster controller
// writes when an agent has never reported.
const reasonNeverUpdated = "ClusterStatusNeverUpdated"

// awaitsReport reports whether a cluster is in Pull mode and its agent has never
// written its status.
func awaitsReport(c *clusterv1alpha1.Cluster) bool {
	if c.Spec.SyncMode != clusterv1alpha1.Pull {
		return false
	}
	ready := c.ReadyCondition()
	return ready == nil || ready.Reason == reasonNeverUpdated
}

// notReported is the API error for a cluster whose agent has not reported yet.
func notReported(cluster string, err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("cluster %s has not reported yet: %v", cluster, err),
		Details: &metav1.StatusDetails{
			Group: clusterv1alpha1.GroupName, Kind: "clusters", Name: cluster,
			Causes: []metav1.StatusCause{{Type: clusterv1alpha1.CauseClusterNotReported, Message: err.Error()}},
		},
	}}
}

func (m *Members) resolve(ctx context.Context, c *clusterv1alpha1.Cluster) (*member, error) {
	w := way{insecure: c.Spec.InsecureSkipTLSVerification, proxyURL: c.Spec.ProxyURL, headers: headerKey(c.Spec.ProxyHeader)}
	if ref := c.Spec.SecretRef; ref != nil {
		secret, err := m.secret(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		w.privateCA, w.ca = true, string(secret.Data[clusterv1alpha1.SecretCADataKey])
	}
	if c.Spec.APIEndpoint == "" {
		return nil, fmt.Errorf("API endpoint of cluster %s should not be empty", c.Name)
	}
	endpoint, err := url.Parse(c.Spec.APIEndpoint)
	if err != nil {
		return nil, fmt.Errorf("parsing the API endpoint of cluster %s: %w", c.Name, err)
	}
	w.endpoint = c.Spec.APIEndpoint
	token, err := m.impersonator(ctx, c)
	if err != nil {
		return nil, err
	}
	transports, err := m.pool.get(ctx, c, w)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to cluster %s: %w", c.Name, err)
	}
	return &member{name: c.Name, endpoint: endpoint, token: token, plain: transports.plain, upgrade: transports.upgrade, guarded: transports.guarded, buffers: &m.buffers}, nil
}

// impersonator returns the token that may act in the name of users. The errors
// are those that clients know, their spelling included.
func (m *Members) impersonator(ctx context.Context, c *clusterv1alpha1.Cluster) (string, error) {
	ref := c.Spec.ImpersonatorSecretRef
	if ref == nil {
		return "", fmt.Errorf("the impersonatorSecretRef of cluster %s is nil", c.Name)
	}
	secret, err := m.secret(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return "", err
	}
	if len(secret.Data) == 0 {
		// The control plane makes it empty, and not every agent fills it.
		return "", fmt.Errorf("the impersonatorSecretRef of cluster %s is nil, in effect: Secret %s/%s is empty, because the agent of the cluster does not report a token for users; run it with --report-secrets=KubeImpersonator, or fill in %q",
			c.Name, ref.Namespace, ref.Name, clusterv1alpha1.SecretTokenKey)
	}
	token, ok := secret.Data[clusterv1alpha1.SecretTokenKey]
	if !ok || len(token) == 0 {
		return "", fmt.Errorf("failed to get impresonateToken for cluster %s: the impresonate token of cluster %s is empty", c.Name, c.Name)
	}
	return string(token), nil
}
