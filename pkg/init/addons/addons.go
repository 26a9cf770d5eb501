// Package addons installs and removes optional parts of a control plane on a host cluster, and reads their state.
package addons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// All stands for all addons.
const All = "all"

// Names returns the names of the addons, sorted.
func Names() []string {
	return []string{components.Descheduler, components.MetricsAdapter, components.Estimator, components.Search}
}

// Deps are what the addons are installed with.
type Deps struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Host is how the host cluster is reached.
	Host *rest.Config
	// ControlPlane connects to the control plane. It is called only when that is needed.
	ControlPlane func(context.Context) (client.Client, error)
	// Progress receives the addons and what they wait for.
	Progress progress.Reporter
	// Now is the clock.
	Now func() time.Time
}

// Selection is what a command is about.
type Selection struct {
	// Namespace of the control plane in the host cluster.
	Namespace string
	// Addons are names of addons, or All.
	Addons []string
	// Clusters are the members whose estimators are meant. AllClusters means those of every member.
	Clusters    []string
	AllClusters bool
}

// Request is a Selection to install, and how.
type Request struct {
	Selection
	// Config has the settings of the pods, the domain of the host cluster, and how long pods and APIs may take to be ready.
	Config config.Configuration
	// MemberKubeconfig returns a kubeconfig for a member with one context and nothing in other files. Nil means the
	// credentials of the control plane for the member.
	MemberKubeconfig func(cluster string) (*clientcmdapi.Config, error)
}

// Validate reports whether the selection can be enabled or disabled, which is the verb.
func (s *Selection) Validate(verb string) error {
	_, err := s.selected(verb)
	return err
}

// selected returns the addons that are meant, in the order in which they are installed.
func (s *Selection) selected(verb string) ([]string, error) {
	var out []string
	for _, name := range s.Addons {
		switch {
		case name == All:
			out = append(out, Names()...)
		case slices.Contains(Names(), name):
			out = append(out, name)
		default:
			return nil, fmt.Errorf("addon %s is not be supported now; the addons are %s, and %s for all of them", name, strings.Join(Names(), ", "), All)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("addonNames must be not be null: name addons, such as %s, or %s", components.Descheduler, All)
	}
	all, estimator := slices.Contains(s.Addons, All), slices.Contains(s.Addons, components.Estimator)
	named := len(s.Clusters) > 0 || s.AllClusters
	switch {
	case len(s.Clusters) > 0 && s.AllClusters:
		return nil, errors.New("--cluster and --all-clusters cannot be used together: name clusters, or take all")
	case estimator && !named:
		return nil, fmt.Errorf("an estimator belongs to a cluster: to %s %s, name clusters with --cluster, or use --all-clusters", verb, components.Estimator)
	case named && !estimator && !all:
		return nil, fmt.Errorf("cluster is needed only when %s %s or %s %s", verb, components.Estimator, verb, All)
	case !named:
		out = slices.DeleteFunc(out, func(name string) bool { return name == components.Estimator })
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(order(a), order(b)) })
	return slices.Compact(out), checkNames(s.Clusters)
}

// order sorts estimators first: the descheduler uses them.
func order(addon string) string {
	if addon == components.Estimator {
		return ""
	}
	return addon
}

// checkNames refuses clusters whose estimator cannot have the name of a Service.
func checkNames(clusters []string) error {
	for _, cluster := range clusters {
		if name := components.EstimatorWorkload(cluster); len(validation.IsDNS1035Label(name)) > 0 {
			return fmt.Errorf("cluster %q cannot have an estimator: its Service would be %q, and the name of a Service has at most %d lower-case letters, digits and \"-\"", cluster, name, validation.DNS1035LabelMaxLength)
		}
	}
	return nil
}

// connectHost reads the installation in a namespace of the host cluster.
func connectHost(ctx context.Context, cfg *rest.Config, namespace string) (*hostcluster.Host, error) {
	h, err := hostcluster.Connect(ctx, cfg, namespace, nil)
	if err != nil {
		return nil, err
	}
	return h, hostcluster.RequireInstalled(ctx, h.Client, namespace)
}
