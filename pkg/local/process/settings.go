package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

const (
	// agentRole is the role of the agents of members in Pull mode, estimatorRole that of the estimators.
	agentRole     = "agent"
	estimatorRole = "scheduler-estimator"
	// gatesFlag is the flag of a role for its feature gates.
	gatesFlag = "feature-gates"
	// catalogueLimit is how long the server may take to list its flags.
	catalogueLimit = 20 * time.Second
)

// setting is a flag of a role that a user has set.
type setting struct{ role, flag, value string }

func (s setting) key() string { return s.role + "." + s.flag }

func (s setting) String() string { return s.key() + "=" + s.value }

// parseSetting reads ROLE.FLAG=VALUE, or ROLE.FLAG- for a flag that gets its default back.
func parseSetting(text string) (s setting, remove bool, err error) {
	name, value, given := strings.Cut(text, "=")
	if !given {
		name, remove = strings.CutSuffix(name, "-")
	}
	role, flag, dotted := strings.Cut(name, ".")
	flag = strings.TrimPrefix(flag, "--")
	if !dotted || role == "" || flag == "" || (!given && !remove) {
		return s, false, fmt.Errorf("--set %q: write ROLE.FLAG=VALUE, such as scheduler.kube-api-qps=100, or ROLE.FLAG- for the default", text)
	}
	return setting{role, flag, value}, remove, nil
}

// mergeSettings returns the settings in before with changes, sorted. A flag has one value.
func mergeSettings(before, changes []string) ([]string, error) {
	all := map[string]string{}
	var errs []error
	for _, text := range append(slices.Clone(before), changes...) {
		s, remove, err := parseSetting(text)
		switch {
		case err != nil:
			errs = append(errs, err)
		case remove:
			delete(all, s.key())
		default:
			all[s.key()] = s.value
		}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, key+"="+all[key])
	}
	return out, errors.Join(errs...)
}

// gate is a feature gate that a user has set.
type gate struct{ name, value string }

// parseGates reads NAME=true,NAME=false.
func parseGates(text string) ([]gate, error) {
	var out []gate
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if value != "true" && value != "false" {
			return nil, fmt.Errorf("--feature-gates %q: write NAME=true or NAME=false", part)
		}
		out = append(out, gate{name, value})
	}
	return out, nil
}

// roleFlags are the flags and feature gates of a role.
type roleFlags struct {
	Flags []string `json:"flags"`
	Gates []string `json:"gates,omitempty"`
}

// catalogue holds the flags of each role by its name. The flags that the roles of the control plane share are those of
// the role "karmada".
type catalogue map[string]roleFlags

// readCatalogue asks the server for its flags.
func readCatalogue(ctx context.Context, program string) (catalogue, error) {
	ctx, cancel := context.WithTimeout(ctx, catalogueLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "flags").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the flags of the roles with %q: %w; use the servers of this version", program+" flags", err)
	}
	c := catalogue{}
	if err := json.Unmarshal(out, &c); err != nil {
		return nil, fmt.Errorf("reading the flags of the roles: %w", err)
	}
	return c, nil
}

// check returns why settings cannot be used: roles, flags or gates that do not exist, and flags in reserved, which
// connect the processes with each other.
func (c catalogue) check(settings []string, featureGates string, reserved map[string]bool) error {
	var errs []error
	for _, text := range settings {
		s, _, err := parseSetting(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		role, ok := c[s.role]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("--set %s: there is no role %q; use one of %s", s, s.role, strings.Join(slices.Sorted(maps.Keys(c)), ", ")))
		case !slices.Contains(role.Flags, s.flag) && processOf(s.role) == federation.Roles && s.role != federation.Roles && slices.Contains(c[federation.Roles].Flags, s.flag):
			errs = append(errs, fmt.Errorf("--set %s: the roles of the control plane share this flag; use --set %s.%s=%s", s, federation.Roles, s.flag, s.value))
		case !slices.Contains(role.Flags, s.flag):
			errs = append(errs, fmt.Errorf("--set %s: role %q has no flag %q; it has %s", s, s.role, s.flag, strings.Join(role.Flags, ", ")))
		case reserved[s.key()]:
			errs = append(errs, fmt.Errorf("--set %s: \"local up\" sets this flag itself, the parts of the federation find each other by it", s))
		}
	}
	gates, err := parseGates(featureGates)
	errs = append(errs, err)
	known := map[string]bool{}
	for _, role := range c {
		for _, name := range role.Gates {
			known[name] = true
		}
	}
	for _, g := range gates {
		if !known[g.name] {
			errs = append(errs, fmt.Errorf("--feature-gates: there is no gate %q; use %s", g.name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
	}
	return errors.Join(errs...)
}

// gatesOf returns the gates that each role has, as the value of its flag.
func (c catalogue) gatesOf(featureGates string) map[string]string {
	gates, _ := parseGates(featureGates) // checked before
	out := map[string]string{}
	for name, role := range c {
		var known []string
		for _, g := range gates {
			if slices.Contains(role.Gates, g.name) {
				known = append(known, g.name+"="+g.value)
			}
		}
		if len(known) > 0 {
			out[name] = strings.Join(known, ",")
		}
	}
	return out
}

// processOf returns the role that a process runs which has the settings of a role: agents and estimators have their own.
func processOf(role string) string {
	if role == agentRole || role == estimatorRole {
		return role
	}
	return federation.Roles
}

// settingArgs are the arguments for the settings of a federation of a process: that of the control plane's roles, of an
// agent, or of an estimator.
func settingArgs(of federation.Settings, process string) []string {
	var out []string
	for _, role := range slices.Sorted(maps.Keys(of.RoleGates)) {
		if processOf(role) == process {
			out = append(out, settingArg(setting{role, gatesFlag, of.RoleGates[role]}))
		}
	}
	for _, text := range of.Flags {
		if s, _, err := parseSetting(text); err == nil && processOf(s.role) == process {
			out = append(out, settingArg(s))
		}
	}
	return out
}

// settingArg is the argument for a flag. In the control plane's process a flag has the name of its role in front.
func settingArg(s setting) string {
	if s.role == processOf(s.role) {
		return "--" + s.flag + "=" + s.value
	}
	return "--" + s.String()
}

// overridable are the flags that "local up" only has other defaults for.
func overridable() []string {
	return []string{"cluster-success-threshold", "cluster-failure-threshold", "controllers", gatesFlag}
}

// reservedFlags returns the flags, as ROLE.FLAG, among the arguments of the control plane's process, of agents and of
// estimators that users cannot set.
func reservedFlags(roles, agent, estimator []string) map[string]bool {
	out := map[string]bool{}
	add := func(args []string, role string) {
		for _, arg := range args {
			name, found := strings.CutPrefix(arg, "--")
			if !found {
				continue
			}
			name, _, _ = strings.Cut(name, "=")
			prefix, flag, dotted := strings.Cut(name, ".")
			if !dotted {
				prefix, flag = role, name
			}
			if !slices.Contains(overridable(), flag) {
				out[prefix+"."+flag] = true
			}
		}
	}
	add(roles, federation.Roles)
	add(agent, agentRole)
	add(estimator, estimatorRole)
	return out
}

// merge returns settings with the changes of a request, after a check against those of the server. reserved are the
// flags that users cannot set.
func (r Request) merge(ctx context.Context, before federation.Settings, program string, reserved map[string]bool) (federation.Settings, error) {
	if len(r.Set) == 0 && r.FeatureGates == nil {
		return before, nil
	}
	flags, err := mergeSettings(before.Flags, r.Set)
	if err != nil {
		return before, err
	}
	featureGates := before.FeatureGates
	if r.FeatureGates != nil {
		featureGates = *r.FeatureGates
	}
	c, err := readCatalogue(ctx, program)
	if err != nil {
		return before, err
	}
	if err := c.check(flags, featureGates, reserved); err != nil {
		return before, err
	}
	return federation.Settings{Flags: flags, FeatureGates: featureGates, RoleGates: c.gatesOf(featureGates)}, nil
}

// nodeArgs are the arguments of a member's process about its nodes.
func nodeArgs(n federation.NodeSpec) []string {
	args := []string{"--nodes", fmt.Sprint(n.Count)}
	if n.CPU != "" {
		args = append(args, "--node-cpu", n.CPU)
	}
	if n.Memory != "" {
		args = append(args, "--node-memory", n.Memory)
	}
	if n.Pods > 0 {
		args = append(args, "--node-pods", fmt.Sprint(n.Pods))
	}
	return args
}

// resize returns the nodes in before with the changes of a request.
func (r Request) resize(before federation.NodeSpec) (federation.NodeSpec, error) {
	n := r.Nodes
	for flag, value := range map[string]string{"node-cpu": n.CPU, "node-memory": n.Memory} {
		if value == "" {
			continue
		}
		if q, err := resource.ParseQuantity(value); err != nil || q.Sign() <= 0 {
			return before, fmt.Errorf("--%s %q: use a quantity, such as 16 for processors or 128Gi for memory", flag, value)
		}
	}
	if n.Count < 0 {
		n.Count = before.Count
	}
	n.CPU, n.Memory, n.Pods = cmp.Or(n.CPU, before.CPU), cmp.Or(n.Memory, before.Memory), cmp.Or(n.Pods, before.Pods)
	return n, nil
}
