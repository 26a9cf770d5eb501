package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/inotify"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
)

const (
	// clusterTimeout bounds how long a kind cluster may take to answer after its nodes
	// were started again.
	clusterTimeout = 3 * time.Minute
	// pollInterval is the time between two checks of a cluster.
	pollInterval = 20 * time.Millisecond
)

// library is the part of the kind library that federations use.
type library interface {
	Create(name string, options ...cluster.CreateOption) error
	Delete(name, kubeconfig string) error
	List() ([]string, error)
	KubeConfig(name string, internal bool) (string, error)
	ListNodes(name string) ([]nodes.Node, error)
}

// clusters makes, starts and removes the kind clusters of a federation.
type clusters struct {
	federation.Deps
	record *record
	engine engine
	lib    library
	// logging returns the library with a logger.
	logging func(log.Logger) library
}

// checkNames returns an error if kind clusters of others have the names of this
// federation.
func (c *clusters) checkNames() error {
	existing, err := c.lib.List()
	if err != nil {
		return fmt.Errorf("listing kind clusters: %w", err)
	}
	made := c.record.made()
	for _, short := range c.record.clusters() {
		name := c.record.kindName(short)
		if !slices.Contains(made, short) && slices.Contains(existing, name) {
			return fmt.Errorf("there is a kind cluster %q that federation %q did not make; choose another name with --name, or remove it with \"kind delete cluster --name %s\"", name, c.record.f.Name, name)
		}
	}
	return nil
}

// start makes sure that a kind cluster exists, runs and answers.
func (c *clusters) start(ctx context.Context, short string) (err error) {
	defer progress.Begin(ctx, c.Progress, short, &err)()
	l := newLibraryLog()
	defer wait.Publish(ctx, func() { c.Progress.Waiting(short, l.step()) })()
	if err := c.ensure(ctx, short, l); err != nil {
		return fmt.Errorf("starting %s (kind cluster %q): %w", short, c.record.kindName(short), federation.Cause(ctx, err))
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.record.kubeconfig(short))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", short, err)
	}
	c.Progress.Done(short, "kind cluster "+c.record.kindName(short)+" at "+cfg.Host)
	return nil
}

func (c *clusters) ensure(ctx context.Context, short string, l *libraryLog) error {
	complete, begun := c.record.state(short)
	found, err := c.lib.ListNodes(c.record.kindName(short))
	if err != nil {
		return fmt.Errorf("listing its nodes: %w", err)
	}
	if complete && len(found) > 0 {
		return c.restart(ctx, short, found, l)
	}
	if begun && len(found) > 0 {
		// An earlier start was interrupted: its cluster cannot be completed.
		l.setStep("what is left of an earlier start to go")
		if err := c.delete(ctx, short, short); err != nil {
			return err
		}
	}
	return c.create(ctx, short, l)
}

// create makes a kind cluster. Another program may take the port of the host in the meantime: then there is a second
// attempt with another port.
func (c *clusters) create(ctx context.Context, short string, l *libraryLog) error {
	err := c.attempt(ctx, short, l)
	if err != nil && ctx.Err() == nil && short == hostCluster && !isFree(c.record.f.Kind.Port) {
		l.setStep("another port of this machine")
		err = c.attempt(ctx, short, l)
	}
	return err
}

func (c *clusters) attempt(ctx context.Context, short string, l *libraryLog) error {
	if err := c.record.update(func(k *federation.Kind) { k.Complete[short] = false }); err != nil {
		return err
	}
	config, err := template(c.record.f.Kind.Config)
	if err != nil {
		return err
	}
	if short != hostCluster {
		if err := c.record.update(func(k *federation.Kind) { separate(config, k, short, c.record.f.Members) }); err != nil {
			return err
		}
	}
	if short == hostCluster {
		port, err := publish(config)
		if err != nil {
			return err
		}
		if err := c.record.update(func(k *federation.Kind) { k.Port = port }); err != nil {
			return err
		}
	}
	options := []cluster.CreateOption{
		cluster.CreateWithV1Alpha4Config(config),
		cluster.CreateWithNodeImage(c.record.f.Kind.NodeImage),
		cluster.CreateWithKubeconfigPath(c.record.kubeconfig(short)),
		cluster.CreateWithWaitForReady(0),
	}
	lib := c.logging(libraryLogger{l})
	if err := c.interruptible(ctx, short, func() error { return lib.Create(c.record.kindName(short), options...) }); err != nil {
		// The library removed what it had made.
		return errors.Join(inotify.Explain(l.explain(err)), c.record.update(func(k *federation.Kind) { delete(k.Complete, short) }))
	}
	if err := saveKubeconfig(c.lib, c.record, short); err != nil {
		return err
	}
	return c.record.update(func(k *federation.Kind) { k.Complete[short] = true })
}

// interruptible runs the library's creation of a cluster, which has no context: when
// the context ends, the nodes are removed meanwhile.
func (c *clusters) interruptible(ctx context.Context, short string, create func() error) error {
	done := make(chan error, 1)
	go func() { done <- create() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		_ = c.lib.Delete(c.record.kindName(short), c.record.kubeconfig(short))
		select {
		case <-done: //nolint:errcheck // it failed, or it is removed
			_ = c.lib.Delete(c.record.kindName(short), c.record.kubeconfig(short))
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// restart starts the nodes that do not run and waits until the cluster answers.
func (c *clusters) restart(ctx context.Context, short string, found []nodes.Node, l *libraryLog) error {
	for _, node := range found {
		state, err := c.engine.inspect(ctx, node.String())
		if err != nil {
			return err
		}
		if state.running {
			continue
		}
		l.setStep("node " + node.String() + " to start")
		if _, err := c.engine.run(ctx, "start", node.String()); err != nil {
			return err
		}
	}
	// The engine may have given it another port.
	if err := saveKubeconfig(c.lib, c.record, short); err != nil {
		return err
	}
	l.setStep("the API server to answer")
	ctx, cancel := context.WithTimeoutCause(ctx, clusterTimeout, fmt.Errorf("its API server does not answer after %s; read its log with \"%s logs %s\"", clusterTimeout, c.engine.name, found[0]))
	defer cancel()
	cfg, api, err := membership.Connect(c.record.kubeconfig(short))
	if err != nil {
		return err
	}
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	poll := wait.Options{Interval: pollInterval}
	err = wait.Until(ctx, poll, func(ctx context.Context) error { return kube.CheckOK(ctx, http, cfg.Host+"/readyz") })
	if err != nil {
		return federation.Cause(ctx, err)
	}
	if short != hostCluster {
		return nil
	}
	l.setStep("the DNS of the host to come back")
	host, err := c.engine.inspect(ctx, found[0].String())
	if err != nil {
		return err
	}
	return wait.Until(ctx, poll, func(ctx context.Context) error { return checkDNS(ctx, api, host.since) })
}

// checkDNS returns an error unless the DNS of the host is ready: after a restart its
// pods take a while, and the control plane needs names. What is known of pods from
// before the node started does not count.
func checkDNS(ctx context.Context, c client.Client, started time.Time) error {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"k8s-app": "kube-dns"}); err != nil {
		return err
	}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.ContainerStatuses {
			if c.Ready && c.State.Running != nil && c.State.Running.StartedAt.After(started) {
				return nil
			}
		}
	}
	return errors.New("no pod of the DNS is ready")
}

// saveKubeconfig writes the kubeconfig of a kind cluster, with the name of the
// cluster in the federation as its context.
func saveKubeconfig(lib library, r *record, cluster string) error {
	name := r.kindName(cluster)
	text, err := lib.KubeConfig(name, false)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of kind cluster %q: %w", name, err)
	}
	cfg, err := clientcmd.Load([]byte(text))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of kind cluster %q: %w", name, err)
	}
	return pki.WriteKubeconfig(r.kubeconfig(cluster), renameContext(cfg, cluster))
}

// renameContext gives the current context of a kubeconfig another name, and its
// cluster and user as well.
func renameContext(cfg *clientcmdapi.Config, name string) *clientcmdapi.Config {
	out := clientcmdapi.NewConfig()
	current, ok := cfg.Contexts[cfg.CurrentContext]
	if !ok {
		return out
	}
	renamed := current.DeepCopy()
	renamed.Cluster, renamed.AuthInfo = name, name
	out.Contexts[name] = renamed
	if c, ok := cfg.Clusters[current.Cluster]; ok {
		out.Clusters[name] = c
	}
	if u, ok := cfg.AuthInfos[current.AuthInfo]; ok {
		out.AuthInfos[name] = u
	}
	out.CurrentContext = name
	return out
}
