package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// register makes sure that a kind cluster in Pull mode belongs to the federation:
// its agent is the Deployment that "register" makes.
func (r *Runtime) register(ctx context.Context, m membership.Member) error {
	m.Hint = fmt.Sprintf("read the log of the agent with \"kubectl --kubeconfig %s logs -n %s deploy/%s\"", m.Kubeconfig, clusterv1alpha1.NamespaceKarmadaSystem, member.AgentName)
	return membership.Register(ctx, r.Deps, m, func(ctx context.Context, step string, c membership.Clients) (context.Context, context.CancelFunc, error) {
		there, err := hasAgent(ctx, m.Name, c)
		switch {
		case err != nil:
		case there:
			err = r.configureAgent(ctx, step, c.Member)
		default:
			err = r.deployAgent(ctx, step, m, c)
		}
		return ctx, func() {}, err
	})
}

// hasAgent reports whether a member is registered and has its agent.
func hasAgent(ctx context.Context, name string, c membership.Clients) (bool, error) {
	for _, at := range []struct {
		client client.Client
		obj    client.Object
	}{
		{c.ControlPlane, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}},
		{c.Member, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: member.AgentName}}},
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

// deployAgent registers the member, loads the image into its nodes and makes the
// agent.
func (r *Runtime) deployAgent(ctx context.Context, step string, m membership.Member, c membership.Clients) error {
	identity, err := membership.Enrol(ctx, r.Deps, step, m.Name, c)
	if err != nil {
		return err
	}
	nodes, err := internalNodes(r.clusters.lib, r.record.kindName(m.Name))
	if err != nil {
		return err
	}
	image, err := r.images.load(ctx, nodes)
	if err != nil {
		return err
	}
	kubeconfig, err := fromInside("https://"+net.JoinHostPort(r.record.nodeName(hostCluster), strconv.Itoa(r.record.f.Kind.Port)), identity.Kubeconfig)
	if err != nil {
		return err
	}
	spec := member.AgentSpec{
		Cluster: m.Name, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, ClusterNamespace: clusterv1alpha1.NamespaceKarmadaCluster,
		Endpoint: m.Endpoint, Image: image, Replicas: 1, Rotate: true, Kubeconfig: kubeconfig,
		Args: agentArgs(r.record.f),
	}
	applier := &apply.Applier{Client: c.Member, Manager: membership.FieldManager}
	if _, err := applier.Apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: spec.Namespace}}); err != nil {
		return err
	}
	_, err = applier.Apply(ctx, spec.Objects()...)
	return err
}

// agentArgs are the arguments for the settings of agents.
func agentArgs(f *federation.Federation) []string {
	return settings.Args(f.Settings, settings.AgentRole, "")
}

// configureAgent makes sure that the agent of a member has the settings of agents.
func (r *Runtime) configureAgent(ctx context.Context, step string, c client.Client) error {
	key := client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: member.AgentName}
	agent := &appsv1.Deployment{}
	if err := c.Get(ctx, key, agent); err != nil {
		return fmt.Errorf("reading the agent: %w", err)
	}
	base, container := agent.DeepCopy(), &agent.Spec.Template.Spec.Containers[0]
	if slices.Equal(container.Args, agentArgs(r.record.f)) {
		return nil
	}
	container.Args = agentArgs(r.record.f)
	if err := c.Patch(ctx, agent, client.StrategicMergeFrom(base)); err != nil {
		return fmt.Errorf("writing the arguments of the agent: %w", err)
	}
	err := wait.Until(ctx, wait.Options{
		Interval: time.Second, Timeout: membership.Timeout,
		Publish: func(error) { r.Progress.Waiting(step, "its agent to start with other arguments") },
	}, func(ctx context.Context) error {
		if err := c.Get(ctx, key, agent); err != nil {
			return err
		}
		if s := agent.Status; s.ObservedGeneration < agent.Generation || s.UpdatedReplicas != s.Replicas || s.AvailableReplicas < *agent.Spec.Replicas {
			return errors.New("its pods are not replaced")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("starting the agent with %q: %w", container.Args, err)
	}
	return nil
}

// fromInside returns a kubeconfig of the control plane for pods of other kind
// clusters: they reach it at server.
func fromInside(server string, kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the agent: %w", err)
	}
	for _, c := range config.Clusters {
		c.Server = server
	}
	return clientcmd.Write(*config)
}
