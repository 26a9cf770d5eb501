package interpret

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	bundled "github.com/karmada-toolkit/karmada/plugins/interpreter"
)

// list prints the bundled customizations, or those of the kinds among the arguments,
// and what the customizations that other arguments and files name would override.
func (c *command) list(args []string) error {
	all, err := bundled.Customizations()
	if err != nil {
		return err
	}
	shown, names := selectKinds(all, args)
	given, err := c.source.customizations(c.flags.filenames, names)
	if len(names) > 0 && env.ConnectionFailure(err) != nil {
		return fmt.Errorf("no bundled customization is for the kind %q; %q lists those there are", strings.Join(names, ", "), c.env.Name+" interpret --list")
	}
	if err != nil {
		return err
	}
	if output := *c.flags.print.OutputFormat; output != "" {
		return c.printBundled(shown)
	}
	if err := c.printOperations(shown); err != nil || len(given) == 0 {
		return err
	}
	return c.printOverrides(given, all)
}

// selectKinds returns the customizations of the kinds that the arguments name, as
// KIND or KIND.GROUP in any case, or all if they name none; and the other arguments.
func selectKinds(all []*configv1alpha1.ResourceInterpreterCustomization, args []string) (selected []*configv1alpha1.ResourceInterpreterCustomization, others []string) {
	for _, arg := range args {
		found := false
		for _, one := range all {
			gvk := schema.FromAPIVersionAndKind(one.Spec.Target.APIVersion, one.Spec.Target.Kind)
			if !strings.EqualFold(arg, gvk.Kind) && !strings.EqualFold(arg, gvk.GroupKind().String()) {
				continue
			}
			found = true
			if !slices.Contains(selected, one) {
				selected = append(selected, one)
			}
		}
		if !found {
			others = append(others, arg)
		}
	}
	if len(selected) == 0 {
		return all, others
	}
	return selected, others
}

// printOperations prints which operations customizations have rules for.
func (c *command) printOperations(all []*configv1alpha1.ResourceInterpreterCustomization) error {
	w := printers.GetNewTabWriter(c.env.Out)
	_, _ = fmt.Fprintln(w, "TARGET-API-VERSION\tTARGET-KIND\tOPERATIONS")
	for _, one := range all {
		var operations []string
		for _, r := range rules() {
			if r.get(&one.Spec.Customizations) != "" {
				operations = append(operations, string(r.operation))
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", one.Spec.Target.APIVersion, one.Spec.Target.Kind, strings.Join(operations, ","))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// printBundled prints whole customizations in the format of --output.
func (c *command) printBundled(all []*configv1alpha1.ResourceInterpreterCustomization) error {
	printer, err := c.flags.print.ToPrinter()
	if err != nil {
		return err
	}
	list := &corev1.List{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("List"))
	for _, one := range all {
		one.SetGroupVersionKind(configv1alpha1.GroupVersion.WithKind(customizationKind))
		list.Items = append(list.Items, runtime.RawExtension{Object: one})
	}
	if *c.flags.print.OutputFormat == "json" {
		return printer.PrintObj(list, c.env.Out)
	}
	for _, one := range all {
		if err := printer.PrintObj(one, c.env.Out); err != nil {
			return fmt.Errorf("printing %s: %w", one.Name, err)
		}
	}
	return nil
}

// printOverrides prints which rule answers instead of which.
func (c *command) printOverrides(given []*loaded, all []*configv1alpha1.ResourceInterpreterCustomization) error {
	builtIn := interpreter.New()
	w := printers.GetNewTabWriter(c.env.Out)
	_, _ = fmt.Fprintln(w, "\nCUSTOMIZATION\tTARGET-API-VERSION\tTARGET-KIND\tOPERATION\tOVERRIDES")
	for _, one := range given {
		target := one.Spec.Target
		gvk := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
		for _, r := range rules() {
			if r.get(&one.Spec.Customizations) == "" {
				continue
			}
			overrides := "<none>"
			switch {
			case slices.ContainsFunc(all, func(b *configv1alpha1.ResourceInterpreterCustomization) bool {
				return b.Spec.Target == target && r.get(&b.Spec.Customizations) != ""
			}):
				overrides = "bundled customization"
			case builtIn.HookEnabled(gvk, r.operation):
				overrides = "built-in rule"
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", one.title(), target.APIVersion, target.Kind, r.operation, overrides)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func names(kinds []schema.GroupVersionKind) string {
	list := make([]string, len(kinds))
	for i, gvk := range kinds {
		list[i] = name(gvk)
	}
	return strings.Join(list, ", ")
}
