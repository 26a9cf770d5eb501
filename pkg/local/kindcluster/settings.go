package kindcluster

import (
	"context"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// part is a role of the control plane that is installed on the host.
type part struct {
	role string
	// defaults are its arguments in an installation.
	defaults []string
	options  *config.Component
}

// parts are the roles of the control plane with their options.
func parts(o *config.Configuration) []part {
	var none components.Config
	return []part{
		{"aggregated-apiserver", components.AggregatedDeployment(&none).Spec.Template.Spec.Containers[0].Command, &o.Aggregated},
		{"controller-manager", components.ControllerManagerDeployment(&none).Spec.Template.Spec.Containers[0].Command, &o.ControllerManager},
		{"scheduler", components.SchedulerDeployment(&none).Spec.Template.Spec.Containers[0].Command, &o.Scheduler},
		{"webhook", components.WebhookDeployment(&none).Spec.Template.Spec.Containers[0].Command, &o.Webhook},
	}
}

// applySettings writes the settings of the user into the record, after a check against the flags of the server beside this
// program.
func (r *Runtime) applySettings(ctx context.Context) error {
	if r.settings.Empty() {
		return nil
	}
	server, err := r.FindServer(federation.KarmadaServer)
	if err != nil {
		return err
	}
	f := r.record.f
	tried, err := r.settings.Merge(ctx, f.Settings, server, settings.Layout{Separate: true, Reserved: reserved()})
	if err != nil {
		return err
	}
	federation.Try(f, tried)
	return nil
}

// SettingNames returns the flags that can be set, as ROLE.FLAG, and the feature gates.
func (r *Runtime) SettingNames(ctx context.Context) (flags, gates []string, err error) {
	server, err := r.FindServer(federation.KarmadaServer)
	if err != nil {
		return nil, nil, err
	}
	return settings.Names(ctx, server, settings.Layout{Separate: true, Reserved: reserved()})
}

// reserved returns the flags by which the parts of a federation find each other.
func reserved() settings.Reserved {
	out := settings.Reserved{}
	changeable := []string{
		"v", "leader-elect", "cluster-status-update-frequency", "enable-scheduler-estimator", "controllers", "tls-min-version",
		"audit-log-path", "audit-log-maxage", "audit-log-maxbackup", "cluster-provider", "cluster-region", "cluster-zones",
	}
	var o config.Configuration
	for _, p := range parts(&o) {
		out.Add(p.role, p.defaults, changeable...)
	}
	out.Add(settings.AgentRole, member.AgentSpec{}.Command(), changeable...)
	return out
}
