package kindcluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

// installation is the control plane on the host.
type installation struct {
	federation.Deps
	record *record
	lib    library
	images *images
}

// run installs the control plane on the host cluster, or finishes or repairs it.
func (r *installation) run(ctx context.Context) error {
	hosts, err := internalNodes(r.lib, r.record.kindName(hostCluster))
	if err != nil {
		return err
	}
	image, err := r.loadImage(ctx, hosts)
	if err != nil {
		return err
	}
	options, err := r.options(ctx, hosts, image)
	if err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", r.record.kubeconfig(hostCluster))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the host: %w", err)
	}
	err = options.Complete(nil, r.Program, nil)
	if err == nil {
		_, err = installer.Run(ctx, installer.Deps{Program: r.Program, Host: cfg, Progress: r.Progress, Now: r.Now}, &options)
	}
	if err != nil {
		return fmt.Errorf("installing the control plane: %w", err)
	}
	return nil
}

// loadImage loads the image of the control plane into the nodes of the host and
// returns its name.
func (r *installation) loadImage(ctx context.Context, hosts []nodes.Node) (_ string, err error) {
	const step = "image"
	defer progress.Begin(ctx, r.Progress, step, &err)()
	defer wait.Publish(ctx, func() { r.Progress.Waiting(step, "the image of the control plane to be loaded into the host") })()
	image, err := r.images.load(ctx, hosts)
	if err != nil {
		return "", err
	}
	r.Progress.Done(step, image)
	return image, nil
}

// options are the options of the control plane of a federation on this machine.
func (r *installation) options(ctx context.Context, hosts []nodes.Node, image string) (config.Configuration, error) {
	o := config.New()
	for _, p := range parts(&o) {
		p.options.Image = image
	}
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
	o.DataPath, o.PKIPath = r.record.f.Dir().ControlPlane(), r.record.f.Dir().ControlPlane("pki")
	o.APIServer.NodePort = int32(r.record.f.Kind.Port)
	// The node's address may change when the machine restarts; this one does not.
	o.APIServer.AdvertiseAddress = federation.Loopback
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
	o.Certificates.ExternalDNS, o.Certificates.ExternalIP = names, addresses
	// On one machine a cluster that answers again is healthy at once.
	o.ControllerManager.ExtraArgs = config.ArgsOf("--cluster-success-threshold=1s", "--cluster-failure-threshold=10s", "--flap-window=5m")
	for _, p := range parts(&o) {
		p.options.ExtraArgs = append(p.options.ExtraArgs, config.ArgsOf(settings.Args(r.record.f.Settings, p.role, "")...)...)
	}
	o.OfferToken = false
	return o, nil
}
