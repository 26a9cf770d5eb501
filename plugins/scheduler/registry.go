// Package scheduler has the scheduler plugins that are built in.
package scheduler

import "github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"

// Registry returns the built-in plugins; those of workload affinity only when
// that feature is on. Out-of-tree plugins are added with Register.
func Registry(withWorkloadAffinity bool) framework.Registry {
	list := []framework.Plugin{
		apiEnablement{}, clusterAffinity{}, clusterEviction{}, clusterLocality{}, spreadConstraint{}, taintToleration{},
	}
	if withWorkloadAffinity {
		list = append(list, workloadAffinity{}, workloadAntiAffinity{})
	}
	r := framework.Registry{}
	for _, p := range list {
		r[p.Name()] = func() (framework.Plugin, error) { return p, nil }
	}
	return r
}
