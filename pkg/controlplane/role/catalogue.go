package role

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/gates"
)

// sharedFlags is where the catalogue has the flags that the roles of a control plane in one process share.
const sharedFlags = "karmada"

// roleFlags are the flags and feature gates of a role.
type roleFlags struct {
	Flags []string `json:"flags"`
	Gates []string `json:"gates,omitempty"`
	// KubernetesGates are accepted, too.
	KubernetesGates []string `json:"kubernetesGates,omitempty"`
}

// processRoles are the roles that "local up" runs beside those of a control plane in one process, podRoles those that it
// runs in pods.
func processRoles() []string { return []string{"agent", "scheduler-estimator"} }
func podRoles() []string {
	return []string{"agent", "aggregated-apiserver", "webhook", "controller-manager", "scheduler"}
}

// catalogue returns the flags of each role that "local up" runs, by its name. Unless the roles run separately, those of a
// control plane have the flags that they have in "all-in-one", without the role in front. The others have those that they
// have alone.
func catalogue(roles []Role, separate bool) map[string]roleFlags {
	out := map[string]roleFlags{}
	visitFlags(roles, separate, func(role, name string, f *pflag.Flag) {
		r := out[role]
		r.Flags = append(r.Flags, name)
		if g, ok := f.Value.(*gates.Gates); ok {
			r.Gates, r.KubernetesGates = g.Names()
		}
		out[role] = r
	})
	return out
}

// invalidValues returns why values of flags cannot be parsed, by the setting ROLE.FLAG=VALUE. Flags that do not exist are
// left out.
func invalidValues(roles []Role, separate bool, settings []string) map[string]string {
	flags := map[string]*pflag.Flag{}
	visitFlags(roles, separate, func(role, name string, f *pflag.Flag) { flags[role+"."+name] = f })
	out := map[string]string{}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		f := flags[key]
		if f == nil {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			out[setting] = fmt.Sprintf("invalid value %q of type %s: %v", value, f.Value.Type(), err)
		}
	}
	return out
}

// visitFlags calls visit with each flag of catalogue, its role and its name in that role.
func visitFlags(roles []Role, separate bool, visit func(role, name string, f *pflag.Flag)) {
	add := func(role, name string, f *pflag.Flag) {
		if !f.Hidden && name != "help" {
			visit(role, name, f)
		}
	}
	alone := podRoles()
	if !separate {
		alone = processRoles()
		allInOne(roles).Flags().VisitAll(func(f *pflag.Flag) {
			if role, name, found := strings.Cut(f.Name, "."); found && slices.Contains(allInOneRoles(), role) {
				add(role, name, f)
				return
			}
			add(sharedFlags, f.Name, f)
		})
	}
	for _, r := range roles {
		if slices.Contains(alone, r.Name) {
			single(r).Flags().VisitAll(func(f *pflag.Flag) { add(r.Name, f.Name, f) })
		}
	}
}

// flagsCommand returns the command that lists the flags for "local up".
func flagsCommand(roles []Role) *cobra.Command {
	var separate bool
	var check []string
	cmd := &cobra.Command{
		Use:    "flags",
		Short:  "Print the flags and feature gates of the roles of a local federation as JSON",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(check) > 0 {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(invalidValues(roles, separate, check))
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(catalogue(roles, separate))
		},
	}
	cmd.Flags().BoolVar(&separate, "separate", false, "List the flags that the roles have as programs of their own, not in one process.")
	cmd.Flags().StringArrayVar(&check, "check", nil, "Instead print why the values of these flags, ROLE.FLAG=VALUE, cannot be parsed.")
	return cmd
}
