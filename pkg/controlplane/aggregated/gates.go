package aggregated

import (
	"errors"
	"fmt"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

// gateFlag is the flag --feature-gates. It takes the gates of the control plane
// and those of Kubernetes API servers.
type gateFlag struct{ o *Options }

// String implements pflag.Value.
func (*gateFlag) String() string { return "" }

// Type implements pflag.Value.
func (*gateFlag) Type() string { return "mapStringBool" }

// Set implements pflag.Value.
func (f *gateFlag) Set(text string) error {
	known := utilfeature.DefaultFeatureGate.DeepCopy().GetAll()
	var kubernetes []string
	var errs []error
	for one := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(one), "=")
		if _, ok := known[featuregate.Feature(name)]; ok {
			kubernetes = append(kubernetes, one)
		} else if name != "" {
			errs = append(errs, f.o.Gates.Set(one))
		}
	}
	f.o.kubernetesGates = strings.Trim(strings.Join(append(kubernetes, f.o.kubernetesGates), ","), ",")
	return errors.Join(errs...)
}

// KnownFeatures returns the gates of the control plane, a line each.
func (f *gateFlag) KnownFeatures() []string { return f.o.Gates.Known() }

// checkKubernetesGates reports whether the gates of the server can be set so. They
// are the process's, and set when the server starts.
func checkKubernetesGates(text string) error {
	if err := utilfeature.DefaultFeatureGate.DeepCopy().Set(text); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	return nil
}

// resourceModeling reports whether clusters get resource models.
func (o *Options) resourceModeling() bool {
	return o.Gates.Enabled(gates.CustomizedClusterResourceModeling)
}
