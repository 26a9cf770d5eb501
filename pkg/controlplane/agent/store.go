package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// kubeconfigSecret is the Secret in the member, and its key, that the agent's
// kubeconfig is mounted from.
const kubeconfigSecret = "karmada-kubeconfig" //nolint:gosec // a name

// kubeconfigStore is where the agent's kubeconfig is kept.
type kubeconfigStore interface {
	// user is the name that the user has in the kubeconfig.
	user() string
	// write puts contents into the kubeconfig.
	write(ctx context.Context, c contents) error
}

// contents replace a client certificate and its key, or the authorities, in a kubeconfig. Those that are nil are kept.
type contents struct{ certificate, key, authorities []byte }

// openStore returns the Secret in the member if there is one, else the file.
func openStore(ctx context.Context, p *plane, core corev1client.SecretsGetter, namespace, cluster string) (kubeconfigStore, error) {
	name := cluster
	if raw, err := clientcmd.LoadFromFile(p.path); err == nil {
		if user, _, err := userOf(raw, p.context); err == nil {
			name = user
		}
	}
	secrets := core.Secrets(namespace)
	_, err := secrets.Get(ctx, kubeconfigSecret, metav1.GetOptions{})
	switch {
	case err == nil:
		return &secretStore{secrets: secrets, context: p.context, name: name}, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading secret %s/%s of the member: %w", namespace, kubeconfigSecret, err)
	}
	return &fileStore{path: p.path, context: p.context, name: name}, nil
}

// userOf returns the user of a context.
func userOf(config *clientcmdapi.Config, kubecontext string) (string, *clientcmdapi.AuthInfo, error) {
	kubecontext = cmp.Or(kubecontext, config.CurrentContext)
	c := config.Contexts[kubecontext]
	if c == nil {
		return "", nil, fmt.Errorf("the kubeconfig of the control plane has no context %q", kubecontext)
	}
	info := config.AuthInfos[c.AuthInfo]
	if info == nil {
		return "", nil, fmt.Errorf("the kubeconfig of the control plane has no user %q", c.AuthInfo)
	}
	return c.AuthInfo, info, nil
}

// replaced returns a kubeconfig with other contents.
func replaced(data []byte, kubecontext string, c contents) ([]byte, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	_, info, err := userOf(config, kubecontext)
	if err != nil {
		return nil, err
	}
	if c.certificate != nil {
		info.ClientCertificate, info.ClientKey = "", ""
		info.ClientCertificateData, info.ClientKeyData = c.certificate, c.key
	}
	if c.authorities != nil {
		cluster := config.Clusters[config.Contexts[cmp.Or(kubecontext, config.CurrentContext)].Cluster]
		if cluster == nil || len(cluster.CertificateAuthorityData) == 0 {
			return nil, errors.New("the kubeconfig of the control plane has no authorities of its own; those of its file stay in use")
		}
		cluster.CertificateAuthorityData = c.authorities
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of the control plane: %w", err)
	}
	return out, nil
}

// secretStore is a Secret that the kubeconfig is mounted from.
type secretStore struct {
	secrets       corev1client.SecretInterface
	context, name string
}

func (s *secretStore) user() string { return s.name }

func (s *secretStore) write(ctx context.Context, c contents) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		secret, err := s.secrets.Get(ctx, kubeconfigSecret, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading secret %s of the member: %w", kubeconfigSecret, err)
		}
		data, err := replaced(secret.Data[kubeconfigSecret], s.context, c)
		if err != nil {
			return err
		}
		secret.Data[kubeconfigSecret] = data
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

// fileStore is a file that is the agent's own.
type fileStore struct{ path, context, name string }

func (s *fileStore) user() string { return s.name }

func (s *fileStore) write(_ context.Context, c contents) error {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	if data, err = replaced(data, s.context, c); err != nil {
		return err
	}
	if err := pki.WriteFile(s.path, data, 0o600); err != nil {
		return fmt.Errorf("storing the kubeconfig of the control plane: %w", err)
	}
	return nil
}
