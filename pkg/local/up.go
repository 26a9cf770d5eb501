package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
	"github.com/karmada-toolkit/karmada/pkg/local/process"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

// UpRequest is the desired federation.
type UpRequest struct {
	// Root is the directory of the federations, Name the one to start.
	Root, Name string
	// Members is the number of member clusters; negative means as many as there
	// are, or two.
	Members int
	// Pull is the number of members in Pull mode, each with an agent; negative means
	// as before, or none. Existing members keep their mode.
	Pull int
	// Runtime is what the clusters are: RuntimeProcess or RuntimeKind; empty means as
	// before, or processes.
	Runtime string
	// Process is for RuntimeProcess only, Kind for RuntimeKind only.
	Process process.Request
	Kind    kindcluster.Request
	// Only are the parts of an existing federation that are started, with the control plane; empty means all.
	Only []string
	// Settings are changes to the flags and feature gates of the roles.
	Settings settings.Request
}

// defaults of a new federation.
const (
	defaultMembers = 2
	defaultNodes   = 1
)

// maxMembers prevents the start of hundreds of clusters by mistake.
const maxMembers = 100

// Up starts a federation, or its parts that do not run, and returns when every member is
// Ready. When it fails, processes and kind clusters that are ready are kept, processes that are
// not ready are stopped, and new settings are not stored.
func Up(ctx context.Context, d Deps, r UpRequest) (*Federation, error) {
	f, err := prepare(d, r)
	if err != nil {
		return nil, err
	}
	runtime := runtimeOf(d, f, r)
	if err := checkParts(f, runtime, r.Only); err != nil {
		return nil, err
	}
	if err := runtime.Prepare(ctx); err != nil {
		return nil, err
	}
	unlock, err := f.Dir().Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := start(ctx, runtime, f, r.Only); err != nil {
		return nil, runtime.Abort(ctx, err)
	}
	return f, federation.Keep(f)
}

// prepare loads the federation, or makes the record of a new one, with as many
// members as requested.
func prepare(d Deps, r UpRequest) (*Federation, error) {
	if err := validateRuntime(r.Runtime); err != nil {
		return nil, err
	}
	f, err := Load(r.Root, r.Name)
	if errors.Is(err, ErrNoFederation) && len(r.Only) == 0 {
		f, err = federation.New(r.Root, r.Name, r.Runtime, d.Now()), nil
		if r.Members < 0 {
			r.Members = defaultMembers
		}
		if f.Runtime == RuntimeProcess {
			f.NodeSpec.Count = defaultNodes
		}
	}
	if err != nil {
		return nil, err
	}
	if err := checkRuntime(f, r); err != nil {
		return nil, err
	}
	if r.Members > maxMembers {
		return nil, fmt.Errorf("%d members are too many for one machine; use at most %d", r.Members, maxMembers)
	}
	before, down := len(f.Members), f.Command(d, "down")
	if r.Members >= 0 {
		if err := f.Grow(r.Members, down); err != nil {
			return nil, err
		}
	}
	if r.Pull >= 0 {
		if err := f.ChoosePull(r.Pull, before, down); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// start starts what is not running, or only some parts: the clusters at the same time, and each join as
// soon as the member and the control plane are ready.
func start(ctx context.Context, runtime Runtime, f *Federation, only []string) error {
	if err := f.Save(); err != nil {
		return err
	}
	var mu sync.Mutex
	members, kubeconfigs := f.Members, []string(nil)
	if len(only) > 0 {
		members = membersOf(f, only)
		if path := f.Dir().Kubeconfig(); exists(path) {
			kubeconfigs = append(kubeconfigs, path) // it has the contexts of the other members
		}
	}
	run := func(ctx context.Context, cluster string) error {
		paths, err := runtime.Start(ctx, cluster)
		mu.Lock()
		defer mu.Unlock()
		kubeconfigs = append(kubeconfigs, paths...)
		return err
	}
	parent := ctx
	group, ctx := errgroup.WithContext(ctx)
	ready := make(chan struct{}) // closed when the control plane is
	group.Go(func() error {
		err := run(ctx, federation.ControlPlane)
		if err == nil {
			close(ready)
		}
		return err
	})
	for _, member := range members {
		group.Go(func() error {
			if err := run(ctx, member); err != nil {
				return err
			}
			select {
			case <-ready:
				return runtime.Join(ctx, member)
			case <-ctx.Done():
				return nil // the step that failed returns the reason
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if c, ok := runtime.(memberConnector); ok {
		if err := c.ConnectMembers(parent); err != nil {
			return err
		}
	}
	return f.Dir().WriteKubeconfig(kubeconfigs)
}
