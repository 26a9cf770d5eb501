// Package kindcluster runs each cluster of a local federation as a kind cluster, and
// the control plane in one of them as "init" installs it.
package kindcluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/limit"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

// Request is how the kind clusters of a federation are made.
type Request struct {
	// NodeImage is the image of the nodes of new clusters; empty means as before, or
	// kind's default.
	NodeImage string
	// Config is the path of a kind configuration that new clusters are made from;
	// their names are set. Empty means as before, or kind's defaults.
	Config string
	// Image is the path of an archive of the image of the control plane, as "make
	// image" writes it. Empty means the image of this version that the container
	// engine has.
	Image string
}

// Runtime runs a federation of kind clusters.
type Runtime struct {
	federation.Deps
	request  Request
	settings settings.Request
	record   *record
	engine   engine
	clusters *clusters
	images   *images
}

// New returns the runtime of a federation. The request counts for a start only.
func New(d federation.Deps, f *federation.Federation, request Request, set settings.Request) *Runtime {
	return &Runtime{Deps: d, request: request, settings: set, record: newRecord(f)}
}

// connect finds the container engine.
func (r *Runtime) connect(ctx context.Context) error {
	e, err := findEngine(ctx, r.Getenv)
	if err != nil {
		return err
	}
	logging := func(l log.Logger) library { return cluster.NewProvider(e.option, cluster.ProviderWithLogger(l)) }
	r.engine = e
	r.clusters = &clusters{Deps: r.Deps, record: r.record, engine: e, lib: logging(log.NoopLogger{}), logging: logging}
	r.images = &images{record: r.record, engine: e, archive: r.request.Image, version: r.Version}
	return nil
}

// Prepare checks what can be checked before anything is created, and applies the
// request to the record.
func (r *Runtime) Prepare(ctx context.Context) error {
	if err := r.connect(ctx); err != nil {
		return err
	}
	k := r.record.f.Kind
	if r.request.NodeImage != "" {
		k.NodeImage = r.request.NodeImage
	}
	if r.request.Config != "" {
		data, err := limit.Within(ctx, r.request.Config, func() ([]byte, error) { return limit.ReadManifest(r.request.Config, nil) })
		if err != nil {
			return fmt.Errorf("reading the kind configuration: %w", err)
		}
		k.Config = string(data)
	}
	if _, err := template(k.Config); err != nil {
		return err
	}
	if r.request.Image != "" {
		if _, err := archiveTag(r.request.Image); err != nil {
			return err
		}
	}
	if err := r.applySettings(ctx); err != nil {
		return err
	}
	if err := r.clusters.checkNames(); err != nil {
		return err
	}
	return r.checkImages(ctx)
}

// Start makes sure that a member, or the host with the control plane, runs and is
// ready.
func (r *Runtime) Start(ctx context.Context, name string) (kubeconfigs []string, err error) {
	if name != federation.ControlPlane {
		return []string{r.record.kubeconfig(name)}, r.clusters.start(ctx, name)
	}
	if err := r.clusters.start(ctx, hostCluster); err != nil {
		return nil, err
	}
	control := &installation{Deps: r.Deps, record: r.record, lib: r.clusters.lib, images: r.images}
	if err := control.run(ctx); err != nil {
		return nil, err
	}
	return []string{r.record.controlKubeconfig(), r.record.kubeconfig(hostCluster)}, nil
}

// Join makes sure that a member belongs to the federation and is Ready.
func (r *Runtime) Join(ctx context.Context, name string) error {
	m := membership.Member{
		Name: name, ControlPlane: r.record.controlKubeconfig(), Kubeconfig: r.record.kubeconfig(name), Endpoint: r.record.endpoint(name),
		Known:  r.record.f.Dir().HasContext(name),
		Remove: r.Program + " unjoin " + name,
		Hint:   fmt.Sprintf("list the pods with \"kubectl --kubeconfig %s get pods -n %s\"", r.record.kubeconfig(hostCluster), clusterv1alpha1.NamespaceKarmadaSystem),
	}
	if !r.record.f.Pulls(name) {
		return membership.Join(ctx, r.Deps, m)
	}
	return r.register(ctx, m)
}

// Abort keeps the clusters that are complete for the next start.
func (r *Runtime) Abort(_ context.Context, err error) error {
	return fmt.Errorf("%w\nwhat is complete is kept: run %q again to go on, or %q to remove it%s", err,
		r.record.f.Command(r.Deps, "up"), r.record.f.Command(r.Deps, "down"), r.settings.Hint(r.record.f.Settings, r.record.f.Command(r.Deps, "up")))
}

// Stop removes the clusters that the federation made.
func (r *Runtime) Stop(ctx context.Context) (removed bool, err error) {
	if err := r.connect(ctx); err != nil {
		return false, err
	}
	return true, r.clusters.deleteAll(ctx)
}

// Status returns the state of the clusters. Without a container engine they count as
// missing.
func (r *Runtime) Status(ctx context.Context) (federation.Status, error) {
	out := federation.Status{ControlPlane: r.record.controlKubeconfig(), Hosted: true}
	err := r.connect(ctx)
	for _, name := range r.record.clusters() {
		part := federation.Part{Name: name, State: federation.StateMissing}
		if err == nil {
			part = r.part(ctx, part)
		}
		out.Parts = append(out.Parts, part)
	}
	return out, err
}

// part returns the state of a cluster by that of its first node.
func (r *Runtime) part(ctx context.Context, part federation.Part) federation.Part {
	state, err := r.engine.inspect(ctx, r.record.nodeName(part.Name))
	if err != nil {
		return part
	}
	part.State = federation.StateStopped
	if state.running {
		part.State, part.Since = federation.StateRunning, state.since
		if cfg, err := clientcmd.BuildConfigFromFlags("", r.record.kubeconfig(part.Name)); err == nil {
			part.Server = cfg.Host
		}
	}
	return part
}
