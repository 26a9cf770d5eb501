package local

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	installer "github.com/karmada-toolkit/karmada/pkg/init"
)

// install puts the control plane on the host cluster, or finishes or repairs it.
func (s *kindStarter) install(ctx context.Context) error {
	all, err := s.lib.ListNodes(s.f.kindName(hostCluster))
	if err != nil {
		return fmt.Errorf("listing the nodes of the host: %w", err)
	}
	hosts, err := nodeutils.InternalNodes(all)
	if err != nil {
		return fmt.Errorf("listing the nodes of the host: %w", err)
	}
	image, err := s.loadImage(ctx, hosts)
	if err != nil {
		return err
	}
	options, err := s.installOptions(ctx, hosts, image)
	if err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", s.f.kindKubeconfig(hostCluster))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the host: %w", err)
	}
	_, err = installer.Run(ctx, installer.Deps{Program: s.Program, Host: cfg, Progress: s.Progress, Now: s.Now}, options)
	if err != nil {
		return fmt.Errorf("installing the control plane: %w", err)
	}
	return nil
}

// loadImage brings the image of the control plane to the nodes of the host and
// returns its name.
func (s *kindStarter) loadImage(ctx context.Context, hosts []nodes.Node) (string, error) {
	const step = "image"
	s.Progress.Begin(step)
	defer s.remind(ctx, step, func() string { return "the image of the control plane to be loaded into the host" })()
	image, err := s.sideload(ctx, hosts)
	if err != nil {
		return "", err
	}
	s.Progress.Done(step, image)
	return image, nil
}

// installOptions say which control plane a federation on this machine has.
func (s *kindStarter) installOptions(ctx context.Context, hosts []nodes.Node, image string) (installer.Options, error) {
	o := installer.NewOptions()
	o.SetKarmadaImage(image)
	present, err := imagesOf(ctx, hosts[0])
	if err != nil {
		return o, err
	}
	// Nodes of kind hold Kubernetes' own images: nothing has to be downloaded.
	for repository, image := range map[string]*string{
		"/etcd":                    &o.Etcd.Image,
		"/kube-apiserver":          &o.APIServer.Image,
		"/kube-controller-manager": &o.KubeControllerManager.Image,
	} {
		if found, ok := withRepository(present, repository); ok {
			*image = found
		}
	}
	o.DataPath, o.PKIPath = s.f.installDir(), filepath.Join(s.f.installDir(), "pki")
	o.APIServer.NodePort = int32(s.f.Kind.Port)
	// The node's address may change when the machine restarts; this one does not.
	o.APIServer.AdvertiseAddress = loopback
	var names, addresses []string
	for _, node := range hosts {
		names = append(names, node.String())
		v4, v6, err := node.IP()
		if err != nil {
			return o, fmt.Errorf("reading the address of node %s: %w", node, err)
		}
		for _, ip := range []string{v4, v6} {
			if ip != "" {
				addresses = append(addresses, ip)
			}
		}
	}
	o.Certificates.ExternalDNS, o.Certificates.ExternalIP = strings.Join(names, ","), strings.Join(addresses, ",")
	// On one machine a cluster that answers again is well at once.
	o.ControllerManager.ExtraArgs = []string{"--cluster-success-threshold=1s", "--cluster-failure-threshold=10s"}
	o.OfferToken = false
	return o, nil
}
