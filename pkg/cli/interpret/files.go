package interpret

import (
	"fmt"
	"strings"

	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// check reports for every rule whether the control plane would accept it. Scripts are
// compiled, not run.
func (c *command) check(names []string) error {
	all, err := c.source.customizations(c.flags.filenames, names)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no %s in %v", customizationKind, c.flags.filenames)
	}
	bad := false
	for i, one := range all {
		var before []configv1alpha1.ResourceInterpreterCustomization
		for _, other := range all[:i] {
			before = append(before, *other.ResourceInterpreterCustomization)
		}
		c.printf("-----------------------------------\nSOURCE: %s\nTARGET: %s %s\nRULERS:\n",
			one.title(), one.Spec.Target.APIVersion, one.Spec.Target.Kind)
		for _, r := range rules() {
			verdict := "UNSET"
			if r.get(&one.Spec.Customizations) != "" {
				verdict = "PASS"
				if err := checkRule(r, one.ResourceInterpreterCustomization, before); err != nil {
					verdict, bad = "ERROR: "+strings.TrimSpace(err.Error()), true
				}
			}
			c.printf("    %-25s%s\n", r.operation+":", verdict)
		}
	}
	if bad {
		return cmdutil.ErrExit
	}
	return nil
}

// checkRule judges one rule beside the customizations that come before it.
func checkRule(r rule, c *configv1alpha1.ResourceInterpreterCustomization, before []configv1alpha1.ResourceInterpreterCustomization) error {
	script := r.get(&c.Spec.Customizations)
	if err := lua.Check(script); err != nil {
		return err
	}
	only := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: c.ObjectMeta}
	only.Spec.Target = c.Spec.Target
	r.set(&only.Spec.Customizations, script)
	return validation.ValidateCustomization(only, before, lua.Check)
}
