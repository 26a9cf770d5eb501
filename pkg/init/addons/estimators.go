package addons

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// memberTimeout is how long a member may take to answer whether credentials suffice.
const memberTimeout = 5 * time.Second

// estimators returns the estimators of the clusters that are meant.
func (e *enabling) estimators(ctx context.Context, cfg *components.Config) ([]part, error) {
	cp, err := e.ControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := e.clusters(ctx, cp)
	if err != nil {
		return nil, err
	}
	var out []part
	var errs []error
	for _, cluster := range clusters {
		kubeconfig, err := e.memberKubeconfig(ctx, cp, &cluster)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		workload := components.EstimatorWorkload(cluster.Name)
		cfg.Kubeconfigs[workload] = kubeconfig
		e.setWorkload(cfg, components.Estimator, workload)
		if err := e.setServerCertificate(ctx, cfg, workload); err != nil {
			return nil, err
		}
		out = append(out, part{addon: components.Estimator, workload: workload, host: components.EstimatorHost(cfg, cluster.Name)})
	}
	return out, errors.Join(errs...)
}

// clusters returns the members whose estimators are meant.
func (e *enabling) clusters(ctx context.Context, cp client.Reader) ([]clusterv1alpha1.Cluster, error) {
	all := &clusterv1alpha1.ClusterList{}
	if err := cp.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the clusters of the control plane: %w", err)
	}
	var out []clusterv1alpha1.Cluster
	var pull []string
	missing := slices.Clone(e.Clusters)
	for _, c := range all.Items {
		switch {
		case !e.AllClusters && !slices.Contains(e.Clusters, c.Name):
		case e.AllClusters && c.Spec.SyncMode == clusterv1alpha1.Pull && e.MemberKubeconfig == nil:
			pull = append(pull, c.Name)
		default:
			out = append(out, c)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.Name })
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("clusters don't exist: %s; %q lists those that do", joined(missing), e.Program+" get clusters")
	}
	if len(pull) > 0 {
		e.note("clusters in Pull mode are left out (%s): run their estimators there, see docs/estimators.md", joined(pull))
	}
	if e.AllClusters {
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

// memberKubeconfig returns the kubeconfig of the estimator of a cluster: that of the user, or one with the credentials
// of the control plane. Credentials that do not suffice are an error.
func (e *enabling) memberKubeconfig(ctx context.Context, cp client.Reader, cluster *clusterv1alpha1.Cluster) ([]byte, error) {
	own := e.MemberKubeconfig == nil
	read := func() (*clientcmdapi.Config, error) {
		if own {
			return ownKubeconfig(ctx, cp, cluster)
		}
		return e.MemberKubeconfig(cluster.Name)
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
		e.note("the kubeconfig for cluster %q names %s, which is this machine: pods of the host cluster do not reach it", cluster.Name, cfg.Host)
	}
	lacks, err := missingRights(ctx, cfg)
	switch {
	case err != nil && own:
		// Pods may reach what this machine does not.
		e.note("cluster %q does not answer here, so that the rights of its estimator were not checked: %s", cluster.Name, rollout.FirstLine(err.Error()))
	case err != nil:
		return nil, fmt.Errorf("cluster %q does not answer with --member-kubeconfig: %w", cluster.Name, err)
	case len(lacks) > 0:
		return nil, fmt.Errorf("the credentials for cluster %q may not list %s: grant that, or name others with --member-kubeconfig", cluster.Name, joined(lacks))
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

// setServerCertificate loads the certificate of a server from its Secret, or makes it.
func (e *enabling) setServerCertificate(ctx context.Context, cfg *components.Config, workload string) error {
	secret, err := e.api.CoreV1().Secrets(e.Namespace).Get(ctx, components.AddonCertSecret(workload), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the certificate of %s: %w", workload, err)
	}
	if err == nil {
		cfg.Certificates[workload+".crt"], cfg.Certificates[workload+".key"] = secret.Data[components.AddonCert], secret.Data[components.AddonKey]
	}
	store := pki.Store{Storage: storage(cfg.Certificates), Now: e.Now}
	ca, err := store.CA("ca", pki.CAConfig{CommonName: "karmada"})
	if err != nil {
		return fmt.Errorf("reading the authority of the control plane: %w", err)
	}
	_, err = store.Leaf(workload, pki.LeafConfig{
		CommonName: workload, Hosts: credentials.ServiceNames(e.Namespace, e.Domain, workload), Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca)
	if err != nil {
		return fmt.Errorf("making the certificate of %s: %w", workload, err)
	}
	return nil
}

// storage is a pki.Storage in which empty entries do not exist.
type storage map[string][]byte

func (s storage) Read(name string) ([]byte, error) {
	if len(s[name]) == 0 {
		return nil, fs.ErrNotExist
	}
	return s[name], nil
}

func (s storage) Write(name string, data []byte, _ bool) error {
	s[name] = data
	return nil
}
