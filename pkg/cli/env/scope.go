package env

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Scope is the set of clusters that a command works on.
type Scope string

// The scopes.
const (
	// Karmada is the control plane.
	Karmada Scope = "karmada"
	// Members are the member clusters.
	Members Scope = "members"
	// All are the control plane and the members.
	All Scope = "all"
)

// Set parses a scope; it makes Scope a flag.
func (s *Scope) Set(value string) error {
	switch Scope(value) {
	case "":
	case Karmada, Members, All:
		*s = Scope(value)
	default:
		return fmt.Errorf("not support OperationScope: %s", value)
	}
	return nil
}

// String returns the scope.
func (s *Scope) String() string { return string(*s) }

// Type names the type of the flag in help texts.
func (s *Scope) Type() string { return "operationScope" }

// AddScopeFlag adds --operation-scope, with the scopes that the command knows.
func AddScopeFlag(cmd *cobra.Command, s *Scope, usage string, allowed ...string) {
	cmd.Flags().VarP(s, "operation-scope", "s", usage)
	complete(cmd, "operation-scope", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// Require refuses scopes that the command does not know.
func (s *Scope) Require(allowed ...Scope) error {
	if slices.Contains(allowed, *s) {
		return nil
	}
	return fmt.Errorf("not support operation scope: %s; use one of %v", *s, allowed)
}

// ScopeVariable is the environment variable with the scope of commands that can show
// several clusters, for command lines without --operation-scope.
const ScopeVariable = "KARMADACTL_OPERATION_SCOPE"

// ScopeFromEnvironment returns the scope of ScopeVariable, or "" if it is not set.
func ScopeFromEnvironment() (Scope, error) {
	var s Scope
	if err := s.Set(os.Getenv(ScopeVariable)); err != nil {
		return "", fmt.Errorf("environment variable %s: %w", ScopeVariable, err)
	}
	return s, nil
}

var _ pflag.Value = new(Scope)
