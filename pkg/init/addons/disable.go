package addons

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

// Removal is what is to be removed of addons.
type Removal struct {
	// Addons are the names of the addons, estimators with those of their clusters.
	Addons []string
	// Notes are for the user.
	Notes []string

	state  *phases.State
	phases []phases.Phase
}

// PlanRemoval returns what is to be removed. It reads the host cluster only.
func PlanRemoval(ctx context.Context, d Deps, s Selection) (*Removal, error) {
	names, err := s.selected("disable")
	if err != nil {
		return nil, err
	}
	host, err := connectHost(ctx, d.Host, s.Namespace)
	if err != nil {
		return nil, err
	}
	installed, err := installedEstimators(ctx, host.Client, s.Namespace)
	if err != nil {
		return nil, err
	}
	clusters := s.Clusters
	if s.AllClusters {
		clusters = installed
	}
	r := &Removal{
		state:  &phases.State{Host: host.Client, Connect: d.ControlPlane, Given: &phases.Inputs{Config: &components.Config{Namespace: s.Namespace}}},
		phases: phases.Addons(names, clusters),
	}
	for _, p := range r.phases {
		r.Addons = append(r.Addons, p.Workload)
	}
	if slices.Contains(s.Addons, All) && len(clusters) == 0 && len(installed) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the estimators of %s stay: remove them with --cluster or --all-clusters", strings.Join(installed, ", ")))
	}
	return r, nil
}

// Run removes the addons: first what the API server of the control plane calls, then the servers. What does not exist
// is no error.
func (r *Removal) Run(ctx context.Context) error {
	for _, p := range r.phases {
		if err := p.Remove(ctx, r.state); err != nil {
			return err
		}
	}
	return nil
}
