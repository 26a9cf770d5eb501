package interpret

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter/lua"
)

// errNotEnabled is the failure of a rule that the customizations do not have.
var errNotEnabled = errors.New("rule is not enabled")

// result is one value that a rule returned.
type result struct {
	name  string
	value any
}

// execute runs one rule of the customizations, and of nothing else.
func (c *command) execute(names []string) error {
	if c.flags.operation == "" {
		return errors.New("operation is not set for executing")
	}
	r, err := findRule(c.flags.operation)
	if err != nil {
		return err
	}
	all, err := c.source.customizations(c.flags.filenames, names)
	if err != nil {
		return err
	}
	layer := interpreter.NewDeclarative(interpreter.NewLuaEngine(lua.DefaultLimits()))
	var plain []*configv1alpha1.ResourceInterpreterCustomization
	for _, one := range all {
		plain = append(plain, one.ResourceInterpreterCustomization)
	}
	layer.Load(plain)
	x := &execution{command: c, operation: r.operation, layer: layer, in: interpreter.New(interpreter.WithLayer(layer))}
	results, err := x.run()
	if err == nil {
		err = c.printResults(results)
	}
	if err != nil {
		c.env.Say("Execute %s error: %v", r.operation, err)
		return cmdutil.ErrExit
	}
	return nil
}

func (c *command) printResults(results []result) error {
	if output := *c.flags.print.OutputFormat; output == "json" || output == "yaml" {
		values := map[string]any{}
		for _, r := range results {
			values[r.name] = r.value
		}
		return c.env.PrintDocument(env.Output(output), values)
	}
	for i, r := range results {
		// The YAML is that of the JSON, so that quantities and times look as they do
		// in objects.
		text, err := json.Marshal(r.value)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", r.name, err)
		}
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("encoding %s: %w", r.name, err)
		}
		c.printf("---\n# [%d/%d] %s:\n%s", i+1, len(results), r.name, text)
	}
	return nil
}

// execution runs a rule on what the flags name.
type execution struct {
	*command
	operation configv1alpha1.InterpreterOperation
	layer     *interpreter.Declarative
	in        *interpreter.Interpreter
}

func (x *execution) run() ([]result, error) {
	if x.operation == configv1alpha1.InterpreterOperationRetain {
		return x.retain()
	}
	obj, err := x.object()
	if err != nil {
		return nil, err
	}
	if err := x.enabled(obj); err != nil {
		return nil, err
	}
	switch x.operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		replica, requires, err := x.in.GetReplicas(obj)
		return []result{{"replica", replica}, {"requires", requires}}, err
	case configv1alpha1.InterpreterOperationInterpretComponent:
		components, err := x.in.GetComponents(obj)
		return []result{{"components", components}}, err
	case configv1alpha1.InterpreterOperationReviseReplica:
		revised, err := x.in.ReviseReplica(obj, int64(x.flags.desiredReplica))
		return []result{{"revised", revised}}, err
	case configv1alpha1.InterpreterOperationInterpretStatus:
		status, err := x.in.ReflectStatus(obj)
		return []result{{"status", status}}, err
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return x.aggregate(obj)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		healthy, err := x.in.InterpretHealth(obj)
		return []result{{"healthy", healthy}}, err
	case configv1alpha1.InterpreterOperationInterpretDependency:
		dependencies, err := x.in.GetDependencies(obj)
		return []result{{"dependencies", dependencies}}, err
	}
	return nil, fmt.Errorf("operation %s is not supported", x.operation)
}

func (x *execution) retain() ([]result, error) {
	if x.flags.desiredFile == "" {
		return nil, errors.New("desired, desired-file options are not set")
	}
	if x.flags.observedFile == "" {
		return nil, errors.New("observed, observed-file options are not set")
	}
	desired, err := x.source.object(x.flags.desiredFile)
	if err != nil {
		return nil, err
	}
	observed, err := x.source.object(x.flags.observedFile)
	if err != nil {
		return nil, err
	}
	if err := x.enabled(desired); err != nil {
		return nil, err
	}
	retained, err := x.in.Retain(desired, observed)
	return []result{{"retained", retained}}, err
}

func (x *execution) aggregate(obj *unstructured.Unstructured) ([]result, error) {
	if x.flags.statusF == "" {
		aggregated, err := x.in.AggregateStatus(obj, nil)
		return []result{{"aggregatedStatus", aggregated}}, err
	}
	items, err := x.source.statuses(x.flags.statusF)
	if err != nil {
		return nil, err
	}
	aggregated, err := x.in.AggregateStatus(obj, items)
	return []result{{"aggregatedStatus", aggregated}}, err
}

// object returns the only input object of most rules.
func (x *execution) object() (*unstructured.Unstructured, error) {
	desired, observed := x.flags.desiredFile, x.flags.observedFile
	switch {
	case desired == "" && observed == "":
		return nil, errors.New("desired-file, observed-file options are not set")
	case desired != "" && observed != "":
		return nil, errors.New("you can not specify both desired-file and observed-file options")
	}
	return x.source.object(desired + observed)
}

// enabled reports whether the customizations have the rule for the kind.
func (x *execution) enabled(obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	if x.layer.Rules(gvk).Has(x.operation) {
		return nil
	}
	if kinds := x.layer.Kinds(); x.layer.Rules(gvk) == nil && len(kinds) > 0 {
		return fmt.Errorf("%w: the object is a %s, the customizations are for %s", errNotEnabled, name(gvk), names(kinds))
	}
	return errNotEnabled
}

func name(gvk schema.GroupVersionKind) string { return gvk.GroupVersion().String() + " " + gvk.Kind }
