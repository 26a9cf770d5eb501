package role

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/memory"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// newManager returns the manager that roles are added to. own may be nil.
func (c *common) newManager(cfg *rest.Config, own Own) (manager.Manager, error) {
	o := c.managerOptions()
	if own != nil {
		if err := own.Manager(&o); err != nil {
			return nil, fmt.Errorf("preparing to run: %w", err)
		}
	}
	fence := c.fence(cfg, &o)
	if c.leaderElect && c.secondLock != "" {
		var err error
		o.LeaderElectionResourceLockInterface, err = bothLocks(o.LeaderElectionID, c.secondLock, func(name string, identity resourcelock.ResourceLockConfig) (resourcelock.Interface, error) {
			return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.LeaderElectionNamespace, name, identity, o.LeaderElectionConfig, c.renew)
		})
		if err != nil {
			return nil, fmt.Errorf("preparing the election of a leader: %w", err)
		}
	}
	inner, err := ctrl.NewManager(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("preparing to run: %w", err)
	}
	mgr := &fenced{Manager: inner, fence: fence}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr)); err != nil {
		return nil, fmt.Errorf("adding the readiness probe: %w", err)
	}
	return mgr, nil
}

// fence returns a fence for the writes of the leader, and has the clients of the
// configuration and of the election use it; nil without an election.
func (c *common) fence(cfg *rest.Config, o *manager.Options) *controllers.Fence {
	if !c.leaderElect {
		return nil
	}
	fence := controllers.NewFence(clock.RealClock{}, c.renew, c.leaseDuration)
	election := cfg
	if o.LeaderElectionConfig != nil {
		election = o.LeaderElectionConfig
	}
	o.LeaderElectionConfig = rest.CopyConfig(election)
	o.LeaderElectionConfig.Wrap(fence.Election(c.secondLock))
	cfg.Wrap(fence.Wrap)
	return fence
}

// bothLocks returns a lock whose holder has two Leases. It is taken when nobody has either of them. lock returns the lock of a Lease.
func bothLocks(first, second string, lock func(name string, identity resourcelock.ResourceLockConfig) (resourcelock.Interface, error)) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	primary, err := lock(first, identity)
	if err != nil {
		return nil, err
	}
	secondary, err := lock(second, identity)
	return &resourcelock.MultiLock{Primary: primary, Secondary: secondary}, err
}

// fenced is a manager whose leader writes only while it has the lease.
type fenced struct {
	manager.Manager
	fence *controllers.Fence
}

// Fence returns the fence for the clients of members; nil without an election.
func (f *fenced) Fence() *controllers.Fence { return f.fence }

func (c *common) managerOptions() manager.Options {
	pprof := ""
	if c.enablePprof {
		pprof = c.pprofAddress
	}
	shutdown := 5 * time.Second
	skipNames := true
	return manager.Options{
		NewClient:               newClient,
		Scheme:                  kube.NewScheme(),
		Cache:                   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Metrics:                 c.metricsOptions(),
		HealthProbeBindAddress:  c.healthAddress,
		PprofBindAddress:        pprof,
		LeaderElection:          c.leaderElect,
		LeaderElectionNamespace: c.leaderNamespace,
		LeaderElectionID:        c.leaderName,
		LeaseDuration:           &c.leaseDuration,
		RenewDeadline:           &c.renew,
		RetryPeriod:             &c.retry,
		GracefulShutdownTimeout: &shutdown,
		Controller:              config.Controller{SkipNameValidation: &skipNames},
		// The process ends when the manager does, so that the lease can be given up.
		LeaderElectionReleaseOnCancel: true,
	}
}

// workWrites is the number of Works that are written at a time, which keeps the processors of an API server busy, and workWritesMost the
// number where it waits for others.
const workWrites, workWritesMost = 8, 64

// newClient returns a client whose writes of Works take turns: those of a template for many clusters are thousands, which would delay all
// others in the API server. The Works of a template have the same name in all clusters.
func newClient(cfg *rest.Config, o client.Options) (client.Client, error) {
	c, err := client.NewWithWatch(cfg, o)
	if err != nil {
		return nil, err
	}
	return controllers.NewGate(clock.RealClock{}, workWrites, workWritesMost).Client(c, func(obj client.Object) string {
		if _, ok := obj.(*workv1alpha1.Work); !ok {
			return ""
		}
		return obj.GetName()
	}), nil
}

// metricsOptions returns the options of the metrics server.
func (c *common) metricsOptions() metricsserver.Options {
	o := metricsserver.Options{BindAddress: c.metricsAddress}
	if c.secureMetrics {
		o.SecureServing, o.CertDir = true, c.metricsCertDir
		o.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return o
}

// cachesSynced is ready when the caches hold what the API server has.
func cachesSynced(mgr manager.Manager) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), 100*time.Millisecond)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}

// servers is a manager whose runnables start at once instead of after the caches
// are filled: the caches may need what they serve.
type servers struct {
	manager.Manager
	runnables []manager.Runnable
}

// Add keeps a runnable for start.
func (s *servers) Add(r manager.Runnable) error {
	if e, ok := r.(manager.LeaderElectionRunnable); ok && !e.NeedLeaderElection() {
		s.runnables = append(s.runnables, r)
		return nil
	}
	return s.Manager.Add(r)
}

// errLost ends a process whose lease may belong to another one.
var errLost = errors.New("the lease of the leader was lost: the process was paused, or could not renew it; it has to be started again")

// run starts the servers, prepares the rest once the API server serves what it
// needs, and runs the manager until ctx ends or something fails.
func run(ctx context.Context, mgr manager.Manager, s *servers, prepare func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := mgr.AddReadyzCheck("running", func(*http.Request) error { return ctx.Err() }); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	var wg sync.WaitGroup
	for _, r := range s.runnables {
		wg.Go(func() {
			if err := r.Start(ctx); err != nil {
				cancel(err)
			}
		})
	}
	err := prepare(ctx)
	if err == nil {
		wg.Go(func() { memory.Trim(ctx) })
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		select {
		case err = <-ended:
		case <-controllers.FenceOf(mgr).Lost():
			return errLost // nothing is stopped in order: another process is the leader
		}
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	cancel(nil)
	wg.Wait()
	return err
}
