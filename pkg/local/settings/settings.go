// Package settings checks and merges the flags and feature gates of roles that a user sets on a federation.
package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

const (
	// AgentRole is the role of the agents of members in Pull mode.
	AgentRole = "agent"
	// EstimatorRole is the role of the estimators.
	EstimatorRole = "scheduler-estimator"
	// GatesFlag is the flag of a role for its feature gates.
	GatesFlag = "feature-gates"
	// catalogueLimit is how long the server may take to list its flags.
	catalogueLimit = 20 * time.Second
)

// Request is what a user sets.
type Request struct {
	// Set are changes to the flags of the roles: ROLE.FLAG=VALUE sets one, ROLE.FLAG- resets it to its default.
	Set []string
	// FeatureGates replace those of the roles: NAME=true,NAME=false. Nil means as before.
	FeatureGates *string
	// Services sets the feature gate of Services that span clusters. Nil means as before.
	Services *bool
}

// servicesGate is the feature gate of Services that span clusters.
const servicesGate = "MultiClusterService"

// Empty reports whether nothing is set.
func (r Request) Empty() bool { return len(r.Set) == 0 && r.FeatureGates == nil && r.Services == nil }

// Layout is how a runtime runs the roles.
type Layout struct {
	// Separate reports whether each role is a program of its own, with all its flags. Otherwise the roles of the control
	// plane are one process, and share flags.
	Separate bool
	// Reserved are the flags that the runtime sets itself.
	Reserved Reserved
}

// Reserved are flags, as ROLE.FLAG.
type Reserved map[string]bool

// Add reserves the flags among the arguments of a role, except those that the runtime only has other defaults for. A flag
// with the name of another role in front is one of that role.
func (r Reserved) Add(role string, args []string, except ...string) {
	for _, arg := range args {
		name, found := strings.CutPrefix(arg, "--")
		if !found {
			continue
		}
		name, _, _ = strings.Cut(name, "=")
		of, flag, dotted := strings.Cut(name, ".")
		if !dotted {
			of, flag = role, name
		}
		if flag != GatesFlag && !slices.Contains(except, flag) {
			r[of+"."+flag] = true
		}
	}
}

// Merge returns settings with the changes of a request, after a check against the flags that the server has.
func (r Request) Merge(ctx context.Context, before federation.Settings, server string, layout Layout) (federation.Settings, error) {
	if r.Empty() {
		return before, nil
	}
	c, err := readCatalogue(ctx, server, layout.Separate)
	if err != nil {
		return before, err
	}
	merged, err := r.merge(before, c, layout)
	if err != nil {
		return before, err
	}
	if err := checkValues(ctx, server, layout.Separate, merged.Flags); err != nil {
		return before, err
	}
	return merged, nil
}

// Hint returns what undoes settings after a start that failed, to be added to its error. They are those that the start
// had; up is the command that starts the federation.
func (r Request) Hint(of federation.Settings, up string) string {
	var out string
	if !r.Empty() {
		out += fmt.Sprintf("\nthe new settings are not stored: %q starts with those of before", up)
	}
	var resets []string
	for _, text := range of.Flags {
		if s, _, err := parseSetting(text); err == nil && !r.changes(s.key()) {
			resets = append(resets, "--set "+s.key()+"-")
		}
	}
	if len(resets) > 0 {
		out += fmt.Sprintf("\nif a flag that was set earlier is the cause, give it its default back with %q", up+" "+strings.Join(resets, " "))
	}
	return out
}

// changes reports whether a request changes a flag, named ROLE.FLAG.
func (r Request) changes(key string) bool {
	return slices.ContainsFunc(r.Set, func(text string) bool {
		s, _, err := parseSetting(text)
		return err == nil && s.key() == key
	})
}

func (r Request) merge(before federation.Settings, c catalogue, layout Layout) (federation.Settings, error) {
	changes := r.Set
	if layout.Separate {
		var err error
		if changes, err = c.expand(changes); err != nil {
			return before, err
		}
	}
	flags, err := mergeSettings(before.Flags, changes)
	if err != nil {
		return before, err
	}
	featureGates := before.FeatureGates
	if r.FeatureGates != nil {
		featureGates = *r.FeatureGates
	}
	if r.Services != nil {
		featureGates = withGate(featureGates, servicesGate, *r.Services)
	}
	if err := c.check(flags, featureGates, layout.Reserved); err != nil {
		return before, err
	}
	return federation.Settings{Flags: flags, FeatureGates: featureGates, RoleGates: c.gatesOf(featureGates)}, nil
}

// Args returns the arguments for the settings of a role, each with a prefix before the name of the flag.
func Args(of federation.Settings, role, prefix string) []string {
	var out []string
	if gates := of.RoleGates[role]; gates != "" {
		out = append(out, "--"+prefix+GatesFlag+"="+gates)
	}
	for _, text := range of.Flags {
		if s, _, err := parseSetting(text); err == nil && s.role == role {
			out = append(out, "--"+prefix+s.flag+"="+s.value)
		}
	}
	return out
}

// Roles returns the roles that have settings, sorted.
func Roles(of federation.Settings) []string {
	all := map[string]bool{}
	for role := range of.RoleGates {
		all[role] = true
	}
	for _, text := range of.Flags {
		if s, _, err := parseSetting(text); err == nil {
			all[s.role] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

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

// withGate returns feature gates with another value of one of them.
func withGate(text, name string, value bool) string {
	parts := slices.DeleteFunc(strings.Split(text, ","), func(part string) bool {
		of, _, _ := strings.Cut(strings.TrimSpace(part), "=")
		return of == name || of == ""
	})
	return strings.Join(append(parts, fmt.Sprintf("%s=%t", name, value)), ",")
}

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
	// KubernetesGates are accepted, too.
	KubernetesGates []string `json:"kubernetesGates,omitempty"`
}

// accepts reports whether a role has a gate.
func (r *roleFlags) accepts(gate string) bool {
	return slices.Contains(r.Gates, gate) || slices.Contains(r.KubernetesGates, gate)
}

// catalogue holds the flags of each role by its name. The flags that the roles of the control plane share are those of
// the role "karmada".
type catalogue map[string]roleFlags

// readCatalogue reads the flags of the roles from the server: those of roles that run separately, or of a control plane in
// one process.
func readCatalogue(ctx context.Context, program string, separate bool) (catalogue, error) {
	ctx, cancel := context.WithTimeout(ctx, catalogueLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "flags", fmt.Sprintf("--separate=%t", separate)).Output() //nolint:gosec // the program was looked up by name
	if err != nil {
		return nil, fmt.Errorf("listing the flags of the roles with %q: %w; use the servers of this version", program+" flags", err)
	}
	c := catalogue{}
	if err := json.Unmarshal(out, &c); err != nil {
		return nil, fmt.Errorf("reading the flags of the roles: %w", err)
	}
	return c, nil
}

// Names returns the flags that can be set, as ROLE.FLAG, sorted, and the feature gates of the control plane.
func Names(ctx context.Context, server string, layout Layout) (flags, gates []string, err error) {
	c, err := readCatalogue(ctx, server, layout.Separate)
	if err != nil {
		return nil, nil, err
	}
	flags, gates = c.names(layout.Reserved)
	return flags, gates, nil
}

func (c catalogue) names(reserved Reserved) (flags, gates []string) {
	for role, has := range c {
		for _, flag := range has.Flags {
			if key := role + "." + flag; !reserved[key] {
				flags = append(flags, key)
			}
		}
		gates = append(gates, has.Gates...)
	}
	slices.Sort(flags)
	slices.Sort(gates)
	return flags, slices.Compact(gates)
}

// checkValues makes the server parse the values of flags, each as the type that the flag has.
func checkValues(ctx context.Context, program string, separate bool, flags []string) error {
	if len(flags) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, catalogueLimit)
	defer cancel()
	args := []string{"flags", fmt.Sprintf("--separate=%t", separate)}
	for _, text := range flags {
		args = append(args, "--check="+text)
	}
	out, err := exec.CommandContext(ctx, program, args...).Output() //nolint:gosec // the program was looked up by name
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("checking the values of flags with %q: %w; use the servers of this version", program+" flags", err)
	}
	problems := map[string]string{} // by ROLE.FLAG=VALUE
	if err := json.Unmarshal(out, &problems); err != nil {
		return fmt.Errorf("checking the values of flags: %w", err)
	}
	var errs []error
	for _, text := range slices.Sorted(maps.Keys(problems)) {
		name, _, _ := strings.Cut(text, "=")
		errs = append(errs, fmt.Errorf("--set %s: %s; \"--set %s-\" gives the flag its default back", text, problems[text], name))
	}
	return errors.Join(errs...)
}

// expand replaces the changes of flags that all roles of the control plane have by one for each role that has the flag.
func (c catalogue) expand(changes []string) ([]string, error) {
	var out []string
	for _, text := range changes {
		s, _, err := parseSetting(text)
		if err != nil || s.role != federation.Roles {
			out = append(out, text) // errors are reported later, all at once
			continue
		}
		before := len(out)
		for _, role := range slices.Sorted(maps.Keys(c)) {
			if role != AgentRole && slices.Contains(c[role].Flags, s.flag) {
				out = append(out, role+strings.TrimPrefix(text, federation.Roles))
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("--set %s: no role of the control plane has a flag %q", text, s.flag)
		}
	}
	return out, nil
}

// check returns why settings cannot be used: roles, flags or gates that do not exist, and flags in reserved, which
// connect the parts of the federation with each other.
func (c catalogue) check(settings []string, featureGates string, reserved Reserved) error {
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
		case !slices.Contains(role.Flags, s.flag) && s.role != AgentRole && s.role != EstimatorRole && slices.Contains(c[federation.Roles].Flags, s.flag):
			errs = append(errs, fmt.Errorf("--set %s: the roles of the control plane share this flag; use --set %s.%s=%s", s, federation.Roles, s.flag, s.value))
		case !slices.Contains(role.Flags, s.flag):
			errs = append(errs, fmt.Errorf("--set %s: role %q has no flag %q; it has %s", s, s.role, s.flag, strings.Join(role.Flags, ", ")))
		case reserved[s.key()]:
			errs = append(errs, fmt.Errorf("--set %s: \"local up\" sets this flag itself, the parts of the federation find each other by it", s))
		}
	}
	gates, err := parseGates(featureGates)
	errs = append(errs, err)
	for _, g := range gates {
		if !slices.ContainsFunc(slices.Collect(maps.Values(c)), func(r roleFlags) bool { return r.accepts(g.name) }) {
			_, known := c.names(nil)
			errs = append(errs, fmt.Errorf("--feature-gates: there is no gate %q; use %s", g.name, strings.Join(known, ", ")))
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
			if role.accepts(g.name) {
				known = append(known, g.name+"="+g.value)
			}
		}
		if len(known) > 0 {
			out[name] = strings.Join(known, ",")
		}
	}
	return out
}
