package taint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// change is what a command line asks of the taints of some clusters.
type change struct {
	clusters []string
	add      []corev1.Taint
	// remove has an empty effect where all taints of the key go.
	remove    []corev1.Taint
	overwrite bool
}

// parse reads the arguments of the command.
func parse(args []string, overwrite bool) (change, error) {
	c := change{overwrite: overwrite}
	resources, specs, err := split(args)
	if err != nil {
		return c, err
	}
	switch {
	case len(resources) == 0:
		return c, errors.New("one or more resources must be specified as <resource> <name>")
	case resources[0] != "cluster" && resources[0] != "clusters":
		return c, fmt.Errorf("invalid resource type %s, only %q are supported", resources[0], []string{"cluster", "clusters"})
	case len(resources) == 1:
		return c, errors.New("at least one resource name must be specified")
	case len(specs) == 0:
		return c, errors.New("at least one taint update is required")
	}
	c.clusters = resources[1:]
	for _, spec := range specs {
		if err := c.parseSpec(spec); err != nil {
			return c, err
		}
	}
	return c, c.contradiction()
}

func split(args []string) (resources, specs []string, err error) {
	for _, arg := range args {
		isSpec := strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-")
		switch {
		case isSpec:
			specs = append(specs, arg)
		case len(specs) > 0:
			return nil, nil, fmt.Errorf("all resources must be specified before taint changes: %s", arg)
		default:
			resources = append(resources, arg)
		}
	}
	return resources, specs, nil
}

func (c *change) parseSpec(spec string) error {
	body, removal := strings.CutSuffix(spec, "-")
	taint, err := parseTaint(spec, body, removal)
	if err != nil {
		return err
	}
	list := &c.add
	if removal {
		list = &c.remove
	}
	for _, other := range *list {
		if other.Key == taint.Key && other.Effect == taint.Effect {
			return fmt.Errorf("duplicated taints with the same key and effect: %s", spec)
		}
	}
	*list = append(*list, taint)
	return nil
}

func parseTaint(spec, body string, removal bool) (corev1.Taint, error) {
	var taint corev1.Taint
	left, effect, hasEffect := strings.Cut(body, ":")
	if hasEffect && strings.Contains(effect, ":") || !hasEffect && !removal {
		return taint, fmt.Errorf("invalid taint spec: %s; write key=value:Effect, key:Effect, key:Effect- or key-", spec)
	}
	key, value, _ := strings.Cut(left, "=")
	if strings.Contains(value, "=") || (removal && !hasEffect && value != "") {
		return taint, fmt.Errorf("invalid taint spec: %s; write key=value:Effect, key:Effect, key:Effect- or key-", spec)
	}
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		return taint, fmt.Errorf("invalid taint spec: %s, %s", spec, strings.Join(errs, "; "))
	}
	if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
		return taint, fmt.Errorf("invalid taint spec: %s, %s", spec, strings.Join(errs, "; "))
	}
	taint = corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if hasEffect {
		return taint, validateEffect(taint.Effect)
	}
	return taint, nil
}

func validateEffect(effect corev1.TaintEffect) error {
	switch effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute:
		return nil
	default:
		return fmt.Errorf("invalid taint effect: %s, unsupported taint effect", effect)
	}
}

// contradiction refuses to add and to remove the same taint.
func (c *change) contradiction() error {
	conflicts := map[string]string{}
	for _, a := range c.add {
		for _, r := range c.remove {
			if a.Key == r.Key && (r.Effect == "" || a.Effect == r.Effect) {
				conflicts[a.Key] = string(a.Effect)
			}
		}
	}
	if len(conflicts) == 0 {
		return nil
	}
	text, err := json.Marshal(conflicts)
	if err != nil {
		return err
	}
	return fmt.Errorf("can not both modify and remove the following taint(s) in the same command: %s", text)
}

// apply returns the taints of a cluster after the change, and the word for it.
func (c *change) apply(cluster string, old []corev1.Taint) ([]corev1.Taint, string, error) {
	if !c.overwrite {
		if existing := c.existing(old); len(existing) > 0 {
			return nil, "", fmt.Errorf("cluster %s already has %s taint(s) with same effect(s) and --overwrite is false", cluster, strings.Join(existing, ","))
		}
	}
	taints := slices.Clone(c.add)
	for _, t := range old {
		if !has(c.add, t) {
			taints = append(taints, t)
		}
	}
	grown := len(taints) > len(old)
	for _, r := range c.remove {
		before := len(taints)
		taints = slices.DeleteFunc(taints, func(t corev1.Taint) bool {
			return t.Key == r.Key && (r.Effect == "" || t.Effect == r.Effect)
		})
		if len(taints) == before {
			return nil, "", fmt.Errorf("cluster %s: taint %q not found", cluster, specOf(r))
		}
	}
	switch {
	case c.overwrite || len(c.add) > 0 && len(c.remove) > 0:
		return taints, "modified", nil
	case grown:
		return taints, "tainted", nil
	default:
		return taints, "untainted", nil
	}
}

func (c *change) existing(old []corev1.Taint) []string {
	var keys []string
	for _, t := range c.add {
		if has(old, t) {
			keys = append(keys, t.Key)
		}
	}
	return keys
}

func has(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
}

func specOf(t corev1.Taint) string {
	if t.Effect == "" {
		return t.Key
	}
	return t.Key + ":" + string(t.Effect)
}
