// Package metricsadapter is the role that serves the metrics of all members in the control plane: the usage of pods and
// nodes (metrics.k8s.io) and the metrics of objects (custom.metrics.k8s.io). Each request is sent to the members at
// once. A member that does not answer is named in a warning of the response.
package metricsadapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/extension"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/metricsapi"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/generated/openapi"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Kinds returns the kinds that the role watches.
func Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{clusterv1alpha1.GroupVersion.WithKind("Cluster")}
}

// Setup adds the role to the manager. It listens at once, so that a port in use is an
// error here. With port 0 it adds nothing.
func Setup(ctx context.Context, mgr manager.Manager, o *Options) error {
	if o.SecureServing.BindPort == 0 && o.SecureServing.Listener == nil {
		return nil
	}
	serving, err := o.Serving("metrics-adapter")
	if err != nil {
		return err
	}
	reader := mgr.GetAPIReader()
	if o.WatchedSecrets {
		reader = mgr.GetClient()
	}
	members := newMembers(ctx, clock.RealClock{}, access.NewPool(access.Options{
		Clusters: mgr.GetClient(), Secrets: controllers.Secrets(reader, mgr.GetAPIReader()), QPS: o.ClusterAPIQPS.QPS(), Burst: o.ClusterAPIBurst,
		UserAgent: mgr.GetConfig().UserAgent,
	}), mgr.GetClient())
	if err := members.setup(mgr); err != nil {
		return err
	}
	s := &server{options: o, controlPlane: mgr.GetConfig(), serving: serving, members: members}
	if err := mgr.Add(s); err != nil {
		return fmt.Errorf("adding the metrics adapter: %w", err)
	}
	return nil
}

// server is the API server of the role.
type server struct {
	options      *Options
	controlPlane *rest.Config
	serving      *genericapiserver.SecureServingInfo
	members      *members
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// serves.
func (*server) NeedLeaderElection() bool { return false }

const serverName = "karmada-metrics-adapter"

// Start implements manager.Runnable: it serves until ctx ends.
func (s *server) Start(ctx context.Context) error {
	r := &requester{members: s.members, timeout: s.options.MemberTimeout}
	group, err := metricsapi.NewGroup(&usage{r})
	if err != nil {
		return err
	}
	config, err := s.options.Config(ctx, s.controlPlane, s.serving, extension.API{
		Title: serverName, Schemes: []*runtime.Scheme{apiserver.Scheme, group.Scheme}, Codecs: apiserver.Codecs,
		Definitions: openapi.GetOpenAPIDefinitions, ShutdownTimeout: s.options.ShutdownTimeout,
	})
	if err != nil {
		return err
	}
	adapter := apiserver.Config{GenericConfig: config}
	complete := adapter.Complete(nil)
	served, err := complete.New(serverName, &custom{requester: r, ctx: ctx}, external{})
	if err != nil {
		return fmt.Errorf("preparing the metrics adapter: %w", err)
	}
	return extension.Serve(ctx, served.GenericAPIServer, s.options.ShutdownTimeout, group)
}

// Options are the settings of the role.
type Options struct {
	// Options are the settings that it shares with other servers.
	extension.Options
	// WatchedSecrets is set if the manager watches Secrets for other roles. The role alone reads each one once in some
	// minutes, and needs no right to list them.
	WatchedSecrets bool
	// ClusterAPIQPS and ClusterAPIBurst limit the requests to each member.
	ClusterAPIQPS   limit.Limit
	ClusterAPIBurst int
	// MemberTimeout bounds the wait for each member in a request. Default: 5s.
	MemberTimeout time.Duration
	// ShutdownTimeout bounds the wait for connections at the end.
	ShutdownTimeout time.Duration
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Options:         extension.NewOptions(),
		ClusterAPIQPS:   limit.New(40),
		ClusterAPIBurst: 60,
		MemberTimeout:   5 * time.Second,
		ShutdownTimeout: 2 * time.Second,
	}
}

// AddFlags adds the flags of the role.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.Var(&o.ClusterAPIQPS, "cluster-api-qps", "Requests per second to each member cluster, when the flag is given; otherwise only the member's API priority and fairness limits them.")
	fs.IntVar(&o.ClusterAPIBurst, "cluster-api-burst", o.ClusterAPIBurst, "Requests in a burst to each member cluster; it matters only together with --cluster-api-qps.")
	fs.DurationVar(&o.MemberTimeout, "member-timeout", o.MemberTimeout, "How long each member may take in a request to all clusters.")
}

// Validate returns an error for settings that cannot work.
func (o *Options) Validate() error {
	errs := limit.Checks{o.Options.Validate()}
	errs.Require(o.MemberTimeout > 0, "--member-timeout must be positive, got %s", o.MemberTimeout)
	errs.Require(o.ClusterAPIBurst >= 0, "--cluster-api-burst must not be negative, got %d", o.ClusterAPIBurst)
	return errors.Join(errs...)
}
