package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
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
	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// kindLimit bounds how long a kind cluster may take to answer after its nodes were
// started again.
const kindLimit = 3 * time.Minute

// kindStarter is one start of a federation of kind clusters.
type kindStarter struct {
	Deps
	f      *Federation
	engine engine
	lib    kindLibrary
	// reporting returns the library with somebody who listens to what it says.
	reporting func(log.Logger) kindLibrary
	// image is the archive of the control plane's image that the user named.
	image string

	// mu guards the state of the federation and its file.
	mu sync.Mutex
}

// upKind starts a federation of kind clusters. What is complete when it fails is
// kept for the next start.
func upKind(ctx context.Context, d Deps, f *Federation, r UpRequest) error {
	s := &kindStarter{Deps: d, f: f, image: r.Kind.Image}
	var err error
	if s.engine, err = findEngine(ctx, d.Getenv); err != nil {
		return err
	}
	s.reporting = func(l log.Logger) kindLibrary {
		return cluster.NewProvider(s.engine.option, cluster.ProviderWithLogger(l))
	}
	s.lib = s.reporting(log.NoopLogger{})
	if err := s.prepare(r); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("%w\nwhat is complete is kept: run \"%[2]s local up\" again to go on, or \"%[2]s local down\" to remove it", err, d.Program)
	}
	return nil
}

// prepare checks what can be checked before anything is made.
func (s *kindStarter) prepare(r UpRequest) error {
	if s.f.Kind == nil {
		s.f.Kind = &kindState{}
	}
	k := s.f.Kind
	if k.Complete == nil {
		k.Complete = map[string]bool{}
	}
	if r.Kind.NodeImage != "" {
		k.NodeImage = r.Kind.NodeImage
	}
	if r.Kind.Config != "" {
		data, err := os.ReadFile(r.Kind.Config)
		if err != nil {
			return fmt.Errorf("reading the kind configuration: %w", err)
		}
		k.Config = string(data)
	}
	if _, err := k.template(); err != nil {
		return err
	}
	if s.image != "" {
		if _, err := archiveTag(s.image); err != nil {
			return err
		}
	}
	return s.checkNames()
}

// checkNames refuses clusters of others that have the names of ours.
func (s *kindStarter) checkNames() error {
	existing, err := s.lib.List()
	if err != nil {
		return fmt.Errorf("listing kind clusters: %w", err)
	}
	for _, short := range s.f.kindClusters() {
		name := s.f.kindName(short)
		if _, ours := s.f.Kind.Complete[short]; !ours && slices.Contains(existing, name) {
			return fmt.Errorf("there is a kind cluster %q that federation %q did not make; choose another name with --name, or remove it with \"kind delete cluster --name %s\"", name, s.f.Name, name)
		}
	}
	return nil
}

// run brings up the clusters at the same time, the control plane as soon as its
// host is there, and each join as soon as both sides are.
func (s *kindStarter) run(ctx context.Context) error {
	if err := s.save(func(*kindState) {}); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	control := newHandover()
	group.Go(func() error {
		defer control.fail()
		if err := s.cluster(ctx, hostCluster); err != nil {
			return err
		}
		if err := s.install(ctx); err != nil {
			return err
		}
		control.done(ready.Info{Kubeconfig: s.f.controlKubeconfig()})
		return nil
	})
	for _, member := range s.f.Members {
		group.Go(func() error {
			if err := s.cluster(ctx, member); err != nil {
				return err
			}
			cp, ok := control.wait(ctx)
			if !ok {
				return nil // its own step says why
			}
			if s.f.pulls(member) {
				return s.register(ctx, member, cp.Kubeconfig)
			}
			return s.join(ctx, joining{
				name: member, control: cp.Kubeconfig, kubeconfig: s.f.kindKubeconfig(member),
				endpoint: s.f.kindEndpoint(member),
				look:     fmt.Sprintf("look at the pods with \"kubectl --kubeconfig %s get pods -n %s\"", s.f.kindKubeconfig(hostCluster), clusterv1alpha1.NamespaceKarmadaSystem),
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.writeKubeconfig()
}

// save changes what the federation remembers.
func (s *kindStarter) save(change func(*kindState)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.f.Kind)
	return s.f.save()
}

// cluster makes sure that a kind cluster exists, runs and answers.
func (s *kindStarter) cluster(ctx context.Context, short string) error {
	s.Progress.Begin(short)
	said := newSayings()
	defer s.remind(ctx, short, said.last)()
	if err := s.bringUp(ctx, short, said); err != nil {
		return fmt.Errorf("starting %s (kind cluster %q): %w", short, s.f.kindName(short), cause(ctx, err))
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", s.f.kindKubeconfig(short))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", short, err)
	}
	s.Progress.Done(short, "kind cluster "+s.f.kindName(short)+" at "+cfg.Host)
	return nil
}

func (s *kindStarter) bringUp(ctx context.Context, short string, said *sayings) error {
	s.mu.Lock()
	complete, begun := s.f.Kind.Complete[short]
	s.mu.Unlock()
	found, err := s.lib.ListNodes(s.f.kindName(short))
	if err != nil {
		return fmt.Errorf("listing its nodes: %w", err)
	}
	if complete && len(found) > 0 {
		return s.revive(ctx, short, found, said)
	}
	if begun && len(found) > 0 {
		// An earlier start was cut off: what there is of it cannot be finished.
		said.set("what is left of an earlier start to go")
		if err := s.f.deleteCluster(s.Deps, s.lib, short, short); err != nil {
			return err
		}
	}
	return s.create(ctx, short, said)
}

// create makes a kind cluster.
func (s *kindStarter) create(ctx context.Context, short string, said *sayings) error {
	if err := s.save(func(k *kindState) { k.Complete[short] = false }); err != nil {
		return err
	}
	config, err := s.f.Kind.template()
	if err != nil {
		return err
	}
	if short == hostCluster {
		if err := s.publish(config); err != nil {
			return err
		}
	}
	options := []cluster.CreateOption{
		cluster.CreateWithV1Alpha4Config(config),
		cluster.CreateWithNodeImage(s.f.Kind.NodeImage),
		cluster.CreateWithKubeconfigPath(s.f.kindKubeconfig(short)),
		cluster.CreateWithWaitForReady(0),
	}
	lib := s.reporting(kindLogger{said})
	if err := s.interruptible(ctx, short, func() error { return lib.Create(s.f.kindName(short), options...) }); err != nil {
		// The library removed what it had made.
		return errors.Join(inotify.Explain(said.explain(err)), s.save(func(k *kindState) { delete(k.Complete, short) }))
	}
	if err := s.f.saveKindKubeconfig(s.lib, short); err != nil {
		return err
	}
	return s.save(func(k *kindState) { k.Complete[short] = true })
}

// interruptible runs the library's creation of a cluster, which cannot be told to
// stop: when the context ends, the nodes are taken away under it.
func (s *kindStarter) interruptible(ctx context.Context, short string, create func() error) error {
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
		_ = s.lib.Delete(s.f.kindName(short), s.f.kindKubeconfig(short))
		select {
		case <-done: //nolint:errcheck // it failed, or it is removed
			_ = s.lib.Delete(s.f.kindName(short), s.f.kindKubeconfig(short))
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// revive starts the nodes that do not run and waits until the cluster answers.
func (s *kindStarter) revive(ctx context.Context, short string, found []nodes.Node, said *sayings) error {
	for _, node := range found {
		state, err := s.engine.inspect(ctx, node.String())
		if err != nil {
			return err
		}
		if state.running {
			continue
		}
		said.set("node " + node.String() + " to start")
		if _, err := s.engine.run(ctx, "start", node.String()); err != nil {
			return err
		}
	}
	// The engine may have given it another port.
	if err := s.f.saveKindKubeconfig(s.lib, short); err != nil {
		return err
	}
	said.set("the API server to answer")
	ctx, cancel := context.WithTimeoutCause(ctx, kindLimit, fmt.Errorf("its API server does not answer after %s; look at it with \"%s logs %s\"", kindLimit, s.engine.name, found[0]))
	defer cancel()
	cfg, err := clientcmd.BuildConfigFromFlags("", s.f.kindKubeconfig(short))
	if err != nil {
		return err
	}
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	if err := pollOK(ctx, http, cfg.Host+"/readyz"); err != nil || short != hostCluster {
		return err
	}
	said.set("the DNS of the host to come back")
	host, err := s.engine.inspect(ctx, found[0].String())
	if err != nil {
		return err
	}
	return s.names(ctx, host.since)
}

// names waits until somebody answers for names in the host: after a restart its pods
// need a moment, and the control plane needs names. What is known of pods from before
// the node started does not count.
func (s *kindStarter) names(ctx context.Context, started time.Time) error {
	_, c, err := connect(s.f.kindKubeconfig(hostCluster))
	if err != nil {
		return err
	}
	return poll(ctx, func() error {
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
	})
}

// writeKubeconfig writes the kubeconfig with all contexts.
func (s *kindStarter) writeKubeconfig() error {
	all := clientcmdapi.NewConfig()
	paths := []string{s.f.controlKubeconfig()}
	for _, short := range s.f.kindClusters() {
		paths = append(paths, s.f.kindKubeconfig(short))
	}
	for _, path := range paths {
		one, err := clientcmd.LoadFromFile(path)
		if err != nil {
			return fmt.Errorf("reading kubeconfig %s: %w", path, err)
		}
		pki.MergeKubeconfig(all, one)
	}
	all.CurrentContext = controlPlane
	return pki.WriteKubeconfig(s.f.Kubeconfig(), all)
}
