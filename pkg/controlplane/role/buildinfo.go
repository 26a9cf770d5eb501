package role

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/version"
)

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
