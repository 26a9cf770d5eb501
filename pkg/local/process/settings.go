package process

import (
	"context"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

// reserved returns the flags by which the processes of a federation find each other.
func reserved(f *federation.Federation) settings.Reserved {
	out := settings.Reserved{}
	overridable := []string{"cluster-success-threshold", "cluster-failure-threshold", "flap-window", "controllers"}
	out.Add(federation.Roles, roleArgs(f, ready.Info{}, true), overridable...)
	out.Add(settings.AgentRole, agentArgs(f, federation.MemberPrefix, "", ready.Info{}), overridable...)
	out.Add(settings.EstimatorRole, estimatorArgs(f, federation.MemberPrefix, ready.Info{}), overridable...)
	return out
}

// SettingNames returns the flags that can be set, as ROLE.FLAG, and the feature gates.
func (r *Runtime) SettingNames(ctx context.Context) (flags, gates []string, err error) {
	karmada, err := r.FindServer(federation.KarmadaServer)
	if err != nil {
		return nil, nil, err
	}
	return settings.Names(ctx, karmada, settings.Layout{Reserved: reserved(r.f)})
}

// roleSettings are the arguments of the control plane's process for the settings of a federation: a flag of one role has
// the name of the role in front.
func roleSettings(of federation.Settings) []string {
	var out []string
	for _, role := range settings.Roles(of) {
		switch role {
		case settings.AgentRole, settings.EstimatorRole:
		case federation.Roles:
			out = append(out, settings.Args(of, role, "")...)
		default:
			out = append(out, settings.Args(of, role, role+".")...)
		}
	}
	return out
}
