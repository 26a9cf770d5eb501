package search

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/backend"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/search/cache"
	domain "github.com/karmada-toolkit/karmada/pkg/domain/search"
	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
	searchlisters "github.com/karmada-toolkit/karmada/pkg/generated/listers/search/v1alpha1"
)

const (
	// statusLease is the Lease of the replica that writes the status of registries.
	statusLease = "karmada-search"
	// statusInterval is the time between two looks at the caches.
	statusInterval = 2 * time.Second
	// settleTime is how long a process that became the writer waits for incomplete caches, so that a restart that changed
	// nothing writes nothing.
	settleTime = 30 * time.Second

	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// statuses writes the status of registries.
type statuses struct {
	caches     *cache.Caches
	stores     *backend.Stores
	config     *restclient.Config
	registries searchlisters.ResourceRegistryLister
	clusters   func(context.Context) ([]*clusterv1alpha1.Cluster, error)
	discovered *discovered
	clock      clock.WithTickerAndDelayedExecution

	// leading is held by the election that writes, which has the fields below.
	leading sync.Mutex
	client  versioned.Interface
	// written is when this process wrote a status last, by the UID of the registry.
	written map[types.UID]time.Time
	since   time.Time
}

// run writes while this replica is the one of all that does, until ctx ends. One that loses the Lease goes on serving.
func (s *statuses) run(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the name of the host: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	for ctx.Err() == nil {
		if err := s.elect(ctx, identity); err != nil {
			return err
		}
	}
	return nil
}

// elect writes from the time this replica gets the Lease to the time it may have lost it, or ctx ends. All writes, those to
// backend stores included, are refused when the Lease was not renewed in time.
func (s *statuses) elect(ctx context.Context, identity string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fence := controllers.NewFence(s.clock, renewDeadline, leaseDuration)
	elections, writes := restclient.CopyConfig(s.config), restclient.CopyConfig(s.config)
	elections.Wrap(fence.Election(""))
	writes.Wrap(fence.Wrap)
	leases, err := coordination.NewForConfig(elections)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	client, err := versioned.NewForConfig(writes)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: statusLease},
		Client:    leases, LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	lead := func(ctx context.Context) { s.lead(ctx, client, fence) }
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true, Name: statusLease,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: cancel},
	})
	if err != nil {
		return fmt.Errorf("preparing the election of the writer of statuses: %w", err)
	}
	go func() {
		select {
		case <-fence.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	elector.Run(ctx)
	return nil
}

// lead writes, and fills the backend stores, until ctx ends.
func (s *statuses) lead(ctx context.Context, client versioned.Interface, fence *controllers.Fence) {
	s.leading.Lock()
	defer s.leading.Unlock()
	var filling sync.WaitGroup
	filling.Go(func() { s.stores.Run(ctx, fence) })
	defer filling.Wait()
	ticker := s.clock.NewTicker(statusInterval)
	defer ticker.Stop()
	s.client, s.written, s.since = client, map[types.UID]time.Time{}, s.clock.Now()
	for {
		if err := s.write(ctx); err != nil && ctx.Err() == nil {
			ctrllog.FromContext(ctx).Info("Writing the status of registries failed, trying again", "err", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// write writes each status that changed.
func (s *statuses) write(ctx context.Context) error {
	registries, err := s.registries.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing registries: %w", err)
	}
	clusters, err := s.clusters(ctx)
	if err != nil {
		return err
	}
	observed := map[domain.Source]domain.Observation{}
	now := s.clock.Now()
	for _, o := range s.caches.States() {
		if o.Failure == "" && !s.discovered.has(ctx, o.Kind, now) {
			o.Failure = domain.FailureNotInControlPlane
		}
		observed[o.Source] = o
	}
	present := make(map[types.UID]bool, len(registries))
	var first error
	for _, r := range registries {
		present[r.UID] = true
		if r.DeletionTimestamp != nil {
			continue
		}
		if err := s.writeOne(ctx, r, domain.RegistryStatus(r, clusters, observed, s.stores.Failure(r), now), now); err != nil && first == nil {
			first = err
		}
	}
	maps.DeleteFunc(s.written, func(uid types.UID, _ time.Time) bool { return !present[uid] })
	return first
}

func (s *statuses) writeOne(ctx context.Context, r *searchv1alpha1.ResourceRegistry, status searchv1alpha1.ResourceRegistryStatus, now time.Time) error {
	if !domain.WriteStatus(&r.Status, &status, now.Sub(s.written[r.UID])) {
		return nil
	}
	if now.Sub(s.since) < settleTime && len(r.Status.Conditions) > 0 && domain.Listing(&status) {
		return nil
	}
	out := r.DeepCopy()
	out.Status = status
	_, err := s.client.SearchV1alpha1().ResourceRegistries().UpdateStatus(ctx, out, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the informer has another version soon
	case err != nil:
		return fmt.Errorf("writing the status of ResourceRegistry %s: %w", r.Name, err)
	}
	s.written[r.UID] = now
	return nil
}
