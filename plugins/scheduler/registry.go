// Package scheduler lists the scheduler plugins that are built in.
package scheduler

import (
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/apienablement"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/clusteraffinity"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/clustereviction"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/clusterlocality"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/spreadconstraint"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/tainttoleration"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/workloadaffinity"
	"github.com/karmada-toolkit/karmada/plugins/scheduler/workloadantiaffinity"
)

// Registry returns the built-in plugins; those of workload affinity only when
// that feature is on. Out-of-tree plugins are added with Register.
func Registry(workloadAffinity bool) framework.Registry {
	r := framework.Registry{
		apienablement.Name:    func() (framework.Plugin, error) { return apienablement.New(), nil },
		clusteraffinity.Name:  func() (framework.Plugin, error) { return clusteraffinity.New(), nil },
		clustereviction.Name:  func() (framework.Plugin, error) { return clustereviction.New(), nil },
		clusterlocality.Name:  func() (framework.Plugin, error) { return clusterlocality.New(), nil },
		spreadconstraint.Name: func() (framework.Plugin, error) { return spreadconstraint.New(), nil },
		tainttoleration.Name:  func() (framework.Plugin, error) { return tainttoleration.New(), nil },
	}
	if workloadAffinity {
		r[workloadaffinity.Name] = func() (framework.Plugin, error) { return workloadaffinity.New(), nil }
		r[workloadantiaffinity.Name] = func() (framework.Plugin, error) { return workloadantiaffinity.New(), nil }
	}
	return r
}
