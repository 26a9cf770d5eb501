package addons

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// memberTimeout is how long a member may take to answer whether credentials suffice.
const memberTimeout = 5 * time.Second

// members are those whose estimators are meant.
type members struct {
	selection    *Selection
	program      string
	controlPlane client.Reader
	// kubeconfig returns a kubeconfig of the user for a member. Nil means the credentials of the control plane.
	kubeconfig func(cluster string) (*clientcmdapi.Config, error)
	outcome    *phases.Outcome
}

// clusters returns the members.
func (m *members) clusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	all := &clusterv1alpha1.ClusterList{}
	if err := m.controlPlane.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the clusters of the control plane: %w", err)
	}
	var out []clusterv1alpha1.Cluster
	var pull []string
	missing := slices.Clone(m.selection.Clusters)
	for _, c := range all.Items {
		switch {
		case !m.selection.AllClusters && !slices.Contains(m.selection.Clusters, c.Name):
		case m.selection.AllClusters && c.Spec.SyncMode == clusterv1alpha1.Pull && m.kubeconfig == nil:
			pull = append(pull, c.Name)
		default:
			out = append(out, c)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.Name })
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("clusters don't exist: %s; %q lists those that do", strings.Join(missing, ", "), m.program+" get clusters")
	}
	if len(pull) > 0 {
		m.outcome.Note("clusters in Pull mode are left out (%s): run their estimators there, see docs/estimators.md", strings.Join(pull, ", "))
	}
	if m.selection.AllClusters {
		return out, checkNames(namesOf(out))
	}
	return out, nil
}

func namesOf(clusters []clusterv1alpha1.Cluster) []string {
	var out []string
	for _, c := range clusters {
		out = append(out, c.Name)
	}
	return out
}

// estimatorKubeconfig returns the kubeconfig of the estimator of a cluster: that of the user, or one with the
// credentials of the control plane. Credentials that do not suffice are an error.
func (m *members) estimatorKubeconfig(ctx context.Context, cluster *clusterv1alpha1.Cluster) ([]byte, error) {
	own := m.kubeconfig == nil
	read := func() (*clientcmdapi.Config, error) {
		if own {
			return ownKubeconfig(ctx, m.controlPlane, cluster)
		}
		return m.kubeconfig(cluster.Name)
	}
	raw, err := read()
	if err != nil {
		return nil, err
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig for cluster %q: %w", cluster.Name, err)
	}
	if loopback(cfg.Host) {
		m.outcome.Note("the kubeconfig for cluster %q names %s, which is this machine: pods of the host cluster do not reach it", cluster.Name, cfg.Host)
	}
	lacks, err := missingRights(ctx, cfg)
	switch {
	case err != nil && own:
		// Pods may reach what this machine does not.
		m.outcome.Note("cluster %q does not answer here, so that the rights of its estimator were not checked: %s", cluster.Name, rollout.FirstLine(err.Error()))
	case err != nil:
		return nil, fmt.Errorf("cluster %q does not answer with --member-kubeconfig: %w", cluster.Name, err)
	case len(lacks) > 0:
		return nil, fmt.Errorf("the credentials for cluster %q may not list %s: grant that, or name others with --member-kubeconfig", cluster.Name, strings.Join(lacks, ", "))
	}
	out, err := clientcmd.Write(*raw)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig for cluster %q: %w", cluster.Name, err)
	}
	return out, nil
}

// ownKubeconfig returns a kubeconfig with the credentials of the control plane for a cluster.
func ownKubeconfig(ctx context.Context, cp client.Reader, cluster *clusterv1alpha1.Cluster) (*clientcmdapi.Config, error) {
	const next = "give a kubeconfig with --member-kubeconfig, or run the estimator there, see docs/estimators.md"
	switch {
	case cluster.Spec.SyncMode == clusterv1alpha1.Pull:
		return nil, fmt.Errorf("cluster %q is in Pull mode, so the control plane has no credentials for it: %s", cluster.Name, next)
	case len(cluster.Spec.ProxyHeader) > 0:
		return nil, fmt.Errorf("cluster %q is reached by a proxy with headers, which a kubeconfig cannot have: %s", cluster.Name, next)
	}
	creds, err := access.ReadCredentials(ctx, cluster, func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		return secret, cp.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	})
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, next)
	}
	out, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: cluster.Name, Server: cluster.Spec.APIEndpoint, CA: creds.CA, Token: creds.Token})
	if err != nil {
		return nil, fmt.Errorf("making a kubeconfig for cluster %q: %w", cluster.Name, err)
	}
	entry := out.Clusters[cluster.Name]
	entry.InsecureSkipTLSVerify, entry.ProxyURL = cluster.Spec.InsecureSkipTLSVerification, cluster.Spec.ProxyURL
	return out, nil
}

// loopback reports whether a URL leads to the machine of its user.
func loopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// missingRights returns what an estimator with the credentials could not list.
func missingRights(ctx context.Context, cfg *rest.Config) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	api, err := kubernetes.NewForConfig(access.Guard(cfg))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range components.EstimatorRules() {
		for _, resource := range r.Resources {
			if resource == "resourcequotas" { // needed with a feature gate only
				continue
			}
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: r.APIGroups[0], Resource: resource},
			}}
			answer, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			if !answer.Status.Allowed {
				out = append(out, strings.TrimSuffix(resource+"."+r.APIGroups[0], "."))
			}
		}
	}
	return out, nil
}
