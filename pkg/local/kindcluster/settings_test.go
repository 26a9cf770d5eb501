package kindcluster

import (
	"slices"
	"testing"

	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
)

func TestReserved_KeepsThePartsConnected(t *testing.T) {
	got := reserved()
	for _, flag := range []string{"scheduler.kubeconfig", "webhook.cert-dir", "aggregated-apiserver.etcd-servers", "controller-manager.health-probe-bind-address", settings.AgentRole + ".karmada-kubeconfig"} {
		if !got[flag] {
			t.Errorf("%s can be set", flag)
		}
	}
	for _, flag := range []string{"scheduler.v", "controller-manager.cluster-failure-threshold", "controller-manager.feature-gates", settings.AgentRole + ".controllers"} {
		if got[flag] {
			t.Errorf("%s cannot be set", flag)
		}
	}
}

// Every role of the control plane that an installation has can get settings.
func TestParts_AreTheComponentsOfAnInstallation(t *testing.T) {
	var o config.Configuration
	for _, p := range parts(&o) {
		p.options.ExtraArgs = append(p.options.ExtraArgs, config.ArgsOf("--v=4")...)
	}
	for role, args := range map[string]config.Args{
		"aggregated-apiserver": o.Aggregated.ExtraArgs, "controller-manager": o.ControllerManager.ExtraArgs, "scheduler": o.Scheduler.ExtraArgs, "webhook": o.Webhook.ExtraArgs,
	} {
		if !slices.Equal(args, config.ArgsOf("--v=4")) {
			t.Errorf("%s has the arguments %v", role, args)
		}
	}
}
