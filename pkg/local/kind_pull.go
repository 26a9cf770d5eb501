package local

import (
	"context"
	"fmt"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/karmada-toolkit/karmada/internal/apply"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// register makes sure that a kind cluster in Pull mode belongs to the federation:
// its agent is the Deployment that "register" makes.
func (s *kindStarter) register(ctx context.Context, name, control string) error {
	step := "register " + name
	s.Progress.Begin(step)
	cfg, cp, err := connect(control)
	if err != nil {
		return err
	}
	_, m, err := connect(s.f.kindKubeconfig(name))
	if err != nil {
		return err
	}
	there, err := s.hasAgent(ctx, name, cp, m)
	if err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	if !there {
		identity, err := s.identity(ctx, step, name, cfg, cp, m)
		if err != nil {
			return fmt.Errorf("registering %s: %w", name, err)
		}
		if err := s.deployAgent(ctx, name, m, identity.Kubeconfig); err != nil {
			return fmt.Errorf("registering %s: %w", name, err)
		}
	}
	deps := member.Deps{Program: s.Program, ControlPlane: cp, Report: s.reporter(step)}
	look := fmt.Sprintf("look at the agent with \"kubectl --kubeconfig %s logs -n %s deploy/%s\"", s.f.kindKubeconfig(name), clusterv1alpha1.NamespaceKarmadaSystem, member.AgentName)
	if err := settle(ctx, deps, cfg, name, look); err != nil {
		return fmt.Errorf("registering %s: %w", name, err)
	}
	s.Progress.Done(step, "Ready, in Pull mode")
	return nil
}

// hasAgent says whether a member is registered and has its agent.
func (s *kindStarter) hasAgent(ctx context.Context, name string, cp, m client.Client) (bool, error) {
	for _, at := range []struct {
		client client.Client
		obj    client.Object
	}{
		{cp, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}},
		{m, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: member.AgentName}}},
	} {
		err := at.client.Get(ctx, client.ObjectKeyFromObject(at.obj), at.obj)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading %T %s: %w", at.obj, at.obj.GetName(), err)
		}
		if err != nil {
			return false, nil //nolint:nilerr // it was not found
		}
	}
	return true, nil
}

// deployAgent brings the image to the member and makes the agent.
func (s *kindStarter) deployAgent(ctx context.Context, name string, m client.Client, kubeconfig []byte) error {
	all, err := s.lib.ListNodes(s.f.kindName(name))
	if err != nil {
		return fmt.Errorf("listing its nodes: %w", err)
	}
	nodes, err := nodeutils.InternalNodes(all)
	if err != nil {
		return fmt.Errorf("listing its nodes: %w", err)
	}
	image, err := s.sideload(ctx, nodes)
	if err != nil {
		return err
	}
	if kubeconfig, err = s.fromInside(kubeconfig); err != nil {
		return err
	}
	spec := member.AgentSpec{
		Cluster: name, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster,
		Endpoint: s.f.kindEndpoint(name), Image: image, Replicas: 1, Rotate: true, Kubeconfig: kubeconfig,
	}
	applier := &apply.Applier{Client: m, Manager: fieldManager}
	if _, err := applier.Apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: spec.Namespace}}); err != nil {
		return err
	}
	_, err = applier.Apply(ctx, spec.Objects()...)
	return err
}

// fromInside returns a kubeconfig of the control plane for pods of other kind
// clusters: they reach it by the name of the host's node.
func (s *kindStarter) fromInside(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the agent: %w", err)
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + net.JoinHostPort(s.f.kindName(hostCluster)+"-control-plane", strconv.Itoa(s.f.Kind.Port))
	}
	return clientcmd.Write(*config)
}
