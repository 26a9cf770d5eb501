// Package role starts the roles of the control plane: one program that is, by
// its first argument or by the name it is called with, the scheduler, the
// webhook, or any other part.
package role

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/version"
)

// Role is a part of the control plane.
type Role struct {
	// Name is the first argument, and what follows "karmada-" in the name of a
	// symbolic link.
	Name string
	// Doc is one line of help.
	Doc string
	// LockName is the Lease by which replicas elect a leader. Empty means that
	// every replica works.
	LockName string
	// SecondLock is another Lease in the same namespace that a leader holds as well, so that none of those that hold either of them
	// works beside it. Empty means that there is none.
	SecondLock string
	// LockNamespace is the namespace of the Lease. Default karmada-system.
	LockNamespace string
	// Elects reports whether replicas elect a leader although the name of the Lease is
	// known only after the flags are parsed.
	Elects bool
	// HealthAddress and MetricsAddress are the defaults of the addresses.
	HealthAddress, MetricsAddress string
	// GCPercent is how much the heap grows before memory is collected. 0 means 100.
	GCPercent int
	// Serves reports whether the start of other roles depends on requests to this role,
	// so that it must not wait for caches.
	Serves bool
	// Kinds are those that the role observes from its start, which it waits for to be
	// served. Nil means those of a whole control plane. It may list each of them.
	Kinds func() []schema.GroupVersionKind
	// New returns the role with its defaults.
	New func() Instance
}

// Instance is a role with its settings.
type Instance interface {
	// AddFlags adds the flags of the role.
	AddFlags(fs *pflag.FlagSet)
	// Validate reports settings that cannot work.
	Validate() error
	// Setup adds the role to the manager.
	Setup(ctx context.Context, mgr manager.Manager) error
}

// Own is what the options of a role have too when the role does not see all of
// the control plane, as an agent, and so starts in its own way: it brings the way
// to reach the control plane and the settings of its manager, and waits itself for
// what it needs.
type Own interface {
	// Credentials returns those by which the control plane is reached.
	Credentials(userAgent string) (*kube.Credentials, error)
	// Manager changes the settings of the manager.
	Manager(o *manager.Options) error
}

// options is what the packages of the roles have in common.
type options interface {
	AddFlags(fs *pflag.FlagSet)
	Validate() error
}

// instance joins the options of a role with its setup.
type instance[O options] struct {
	options O
	setup   func(context.Context, manager.Manager, O) error
}

func newInstance[O options](o func() O, setup func(context.Context, manager.Manager, O) error) func() Instance {
	return func() Instance { return &instance[O]{options: o(), setup: setup} }
}

// AddFlags implements Instance.
func (i *instance[O]) AddFlags(fs *pflag.FlagSet) { i.options.AddFlags(fs) }

// Validate implements Instance.
func (i *instance[O]) Validate() error { return i.options.Validate() }

// own returns the options if the role starts in its own way, or nil.
func (i *instance[O]) own() Own {
	own, _ := any(i.options).(Own)
	return own
}

// ownOf returns the options of a role that starts in its own way, or nil.
func ownOf(i Instance) Own {
	if has, ok := i.(interface{ own() Own }); ok {
		return has.own()
	}
	return nil
}

// Setup implements Instance.
func (i *instance[O]) Setup(ctx context.Context, mgr manager.Manager) error {
	return i.setup(ctx, mgr, i.options)
}

// registerBuildInfo adds the gauge karmada_build_info, which is 1 and has the build in its labels.
func registerBuildInfo(r prometheus.Registerer) {
	info := version.Get()
	metrics.Register(r, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "karmada_build_info",
		Help: "The build of the program: versions of git and Go, platform. Always 1.",
		ConstLabels: prometheus.Labels{
			"git_version": info.GitVersion, "git_commit": info.GitCommit, "git_short_commit": info.GitShortCommit,
			"git_tree_state": info.GitTreeState, "build_date": info.BuildDate,
			"go_version": info.GoVersion, "compiler": info.Compiler, "platform": info.Platform,
		},
	}, func() float64 { return 1 }))
}
