package controllermanager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

// checkControllers returns an error for names that --controllers does not know.
func (o *Options) checkControllers() error {
	known := ControllerNames()
	for _, entry := range o.Controllers {
		if name := strings.TrimPrefix(entry, "-"); entry != "*" && !slices.Contains(known, name) {
			return fmt.Errorf("--controllers: unknown controller %q; known are *, %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// withoutEffect returns the settings without effect in this version: flags and
// feature gates.
func (o *Options) withoutEffect() []string {
	var out []string
	for _, f := range o.Gates.Changed(gates.ControllerManagerWithoutEffect()...) {
		out = append(out, fmt.Sprintf("--feature-gates=%s=%v", f, o.Gates.Enabled(f)))
	}
	given, standard := o.accepted, NewOptions().accepted
	for _, f := range []struct {
		name            string
		value, standard any
	}{
		{"resync-period", given.resyncPeriod, standard.resyncPeriod},
		{"cluster-api-kubeconfig", given.clusterAPIKubeconfig, standard.clusterAPIKubeconfig},
		{"cluster-api-context", given.apiContext, standard.apiContext},
	} {
		if f.value != f.standard {
			out = append(out, fmt.Sprintf("--%s=%v", f.name, f.value))
		}
	}
	return out
}

// warn logs the settings without effect.
func (o *Options) warn(log logr.Logger) {
	for _, setting := range o.withoutEffect() {
		log.Info("Setting has no effect in this version", "setting", setting)
	}
}
