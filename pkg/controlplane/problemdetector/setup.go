package problemdetector

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// Setup adds the role to the manager, whose cluster is the member.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	if !o.enabled() {
		mgr.GetLogger().Info("No detector is enabled", "detectors", o.Detectors)
		return nil
	}
	host := o.HostName
	if host == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("looking up the name of the host: %w; set --host-name", err)
		}
		host = name
	}
	credentials, err := kube.NewCredentials(kube.CredentialsOptions{Load: o.planeConfig, Clock: clock.RealClock{}})
	if err != nil {
		return err
	}
	cfg := credentials.Config
	cfg.UserAgent = mgr.GetConfig().UserAgent
	metrics.Certificate("client", "cluster-problem-detector", credentials.Leaf)
	if err := mgr.Add(controllers.Everywhere(credentials.Run)); err != nil {
		return fmt.Errorf("adding the credentials of the control plane: %w", err)
	}
	if !byAddress(cfg.Host) {
		mgr.GetLogger().Info("The control plane is reached by a name: a failure of the cluster's DNS cannot be reported unless the name is resolved without it", "server", cfg.Host)
	}
	plane, err := client.New(cfg, client.Options{Scheme: kube.NewScheme(), Mapper: mapper()})
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	n := &node{
		name: host, reader: mgr.GetAPIReader(), client: mgr.GetClient(), lookup: lookup, clock: clock.RealClock{},
		flips:  flips{success: o.SuccessThreshold, failure: o.FailureThreshold},
		events: events.ForManager(mgr, Detector, events.Transitions), pod: pod(os.Getenv("POD_NAMESPACE"), os.Getenv("POD_NAME")),
	}
	r := newReporter(o, mgr.GetAPIReader(), plane, clock.RealClock{})
	for _, l := range []*loop{
		{name: "node", period: o.Period, clock: n.clock, do: n.report},
		{name: "cluster", period: o.Period, clock: r.clock, leader: true, do: r.report},
	} {
		if err := mgr.Add(l); err != nil {
			return fmt.Errorf("adding the reports of the %s: %w", l.name, err)
		}
	}
	return nil
}

// lookup resolves the name that every pod can.
func lookup(ctx context.Context) error {
	_, err := net.DefaultResolver.LookupHost(ctx, "kubernetes.default")
	return err
}

// pod returns the pod of the process, on which events are recorded, or nil if it is unknown.
func pod(namespace, name string) *corev1.ObjectReference {
	if namespace == "" || name == "" {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}
}

// loop calls a function again and again.
type loop struct {
	name   string
	period time.Duration
	clock  clock.WithTicker
	// leader is true for what only the elected node does.
	leader bool
	do     func(context.Context) error
}

var _ manager.LeaderElectionRunnable = &loop{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l *loop) NeedLeaderElection() bool { return l.leader }

// Start implements manager.Runnable.
func (l *loop) Start(ctx context.Context) error {
	ticker := l.clock.NewTicker(l.period)
	defer ticker.Stop()
	for {
		l.call(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// call calls the function for one period at most.
func (l *loop) call(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.period)
	defer cancel()
	if err := l.do(ctx); err != nil {
		log.FromContext(ctx).Error(err, "Reporting name resolution", "of", l.name)
	}
}
