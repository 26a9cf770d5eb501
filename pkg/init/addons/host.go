package addons

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// hostSide is the host cluster with the installation in it.
type hostSide struct {
	api    kubernetes.Interface
	client client.Client
	facts  *hostcluster.Facts
}

// connectHost reads the installation in a namespace of the host cluster.
func connectHost(ctx context.Context, cfg *rest.Config, namespace string) (*hostSide, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	h := &hostSide{}
	var err error
	if h.api, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if h.client, err = client.New(cfg, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if h.facts, err = hostcluster.Gather(ctx, h.api, namespace); err != nil {
		return nil, err
	}
	if err := hostcluster.RefuseControlPlane(cfg.Host, h.api.Discovery()); err != nil {
		return nil, err
	}
	if h.facts.Namespace == nil {
		return nil, fmt.Errorf("there is no namespace %s in the host cluster: name that of the control plane with --namespace", namespace)
	}
	return h, nil
}
