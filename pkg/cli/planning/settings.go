package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

// The feature gates that decide about a plan. Package gates would link metrics of servers. All are alpha.
const (
	preemption = "PropagationPolicyPreemption"
	components = "MultiplePodTemplatesScheduling"
	quotas     = "ResourceQuotaEstimate"
	affinity   = "WorkloadAffinity"
)

var known = []string{preemption, components, quotas, affinity}

// others are the gates that decide about nothing that a plan shows.
var others = []string{
	"AllBeta", "ControllerPriorityQueue", "CustomizedClusterResourceModeling", "Failover", "FederatedQuotaEnforcement", "GracefulEviction", "MultiClusterService",
	"PriorityBasedScheduling", "PropagateDeps", "SchedulingOvercommitProtection", "StatefulFailoverInjection",
}

// allAlpha turns all alpha gates on that are not given.
const allAlpha = "AllAlpha"

// Settings are the flags of karmada-controller-manager that decide about a plan. The zero value has its defaults.
type Settings struct {
	// Evict reports whether NoExecute taints evict.
	Evict bool
	// Skipped are patterns of the namespaces from which nothing is propagated; nil is the default.
	Skipped []string
	// Gates are the feature gates that differ from their default.
	Gates map[string]bool
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.Evict, "enable-no-execute-taint-eviction", false, "NoExecute taints evict, as with this flag of karmada-controller-manager.")
	cmd.Flags().StringSliceVar(&s.Skipped, "skipped-propagating-namespaces", []string{plan.DefaultSkipped}, "Namespaces of which nothing is propagated, as with this flag of karmada-controller-manager.")
	cmd.Flags().Var(cliflag.NewMapStringBool(&s.Gates), "feature-gates", "Feature gates of karmada-controller-manager, as NAME=true,NAME=false. These decide about a plan: "+strings.Join(known, ", ")+".")
}

// Validate returns an error if a feature gate does not exist.
func (s *Settings) Validate() error {
	for name := range s.Gates {
		if name != allAlpha && !slices.Contains(known, name) && !slices.Contains(others, name) {
			return fmt.Errorf("--feature-gates: there is no gate %q; those that decide about a plan are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// apply applies the settings to a world. The error is that a pattern is no regular expression.
func (s *Settings) apply(w *plan.World) error {
	if s.Skipped != nil {
		if err := w.Skip(s.Skipped); err != nil {
			return fmt.Errorf("--skipped-propagating-namespaces: %w", err)
		}
	}
	gate := func(name string) bool {
		on, given := s.Gates[name]
		return on || !given && s.Gates[allAlpha]
	}
	w.Evict, w.Preempt = s.Evict, gate(preemption)
	w.Features.Components, w.Features.Quotas, w.Features.Affinity = gate(components), gate(quotas), gate(affinity)
	return nil
}
