package locate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/metadata"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// Elsewhere is what a command does about an object that is not in the control plane but in members.
type Elsewhere int

const (
	// Use has the command work on the member.
	Use Elsewhere = iota
	// Refuse returns an error that names the members: objects there are changed through their templates. If the control plane has
	// others that the command names, it works on these and names the members at the end.
	Refuse
)

// Fallback wraps a command that names objects of the control plane: an object that only members have is found there.
func Fallback(e *env.Env, access *env.Access, cmd *cobra.Command, then Elsewhere) *cobra.Command {
	next, run, runE := cmd.PreRunE, cmd.Run, cmd.RunE
	note := ""
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if targets := named(cmd, args); len(targets) > 0 && access.Target.Cluster == "" && !access.Target.ScopeGiven() {
			if note, err = fall(cmd, e, access, targets, then); err != nil {
				return err
			}
		}
		if next != nil {
			return next(cmd, args)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		defer func() { // kubectl's commands may panic
			if note != "" {
				e.Say("note: %s", note)
			}
		}()
		if runE != nil {
			return runE(cmd, args)
		}
		run(cmd, args)
		return nil
	}
	return cmd
}

// categoryAll are the types that "all" means.
func categoryAll() []string {
	return []string{"pods", "services", "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch"}
}

// named returns the objects that a command line names, or the types of which it means all objects that selectors choose.
// It returns none for files, and for command lines that are incomplete.
func named(cmd *cobra.Command, args []string) []Target {
	value := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			return f.Value.String()
		}
		return ""
	}
	if cmd.Flags().Changed("filename") || cmd.Flags().Changed("kustomize") {
		return nil
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.Contains(arg, "=") || strings.HasSuffix(arg, "-") })
	if len(args) == 0 {
		return nil
	}
	common := Target{Selector: value("selector"), fields: value("field-selector"), everywhere: value("all-namespaces") == "true"}
	chosen := common.Selector != "" || common.fields != "" || value("all") == "true" || cmd.Name() == "describe"
	var targets []Target
	for _, arg := range typesAndNames(args, chosen) {
		t := common
		t.Arg = arg
		targets = append(targets, t)
	}
	return targets
}

// typesAndNames returns what the arguments name, each as TYPE/NAME, and as TYPE/ where all objects of a type that are chosen
// otherwise are meant.
func typesAndNames(args []string, chosen bool) []string {
	if strings.Contains(args[0], "/") {
		return args
	}
	types := strings.Split(args[0], ",")
	if args[0] == "all" {
		types = categoryAll()
	}
	var out []string
	for _, t := range types {
		for _, name := range args[1:] {
			out = append(out, t+"/"+name)
		}
		if len(args) == 1 && chosen {
			out = append(out, t+"/")
		}
	}
	return out
}

// elsewhere are the members that have a target which the control plane does not have.
type elsewhere struct {
	target        Target
	found, failed []string
}

// fall chooses the member that has the objects which the control plane does not have. What cannot be found out is left to
// the command. note is what is printed about such objects in the end.
func fall(cmd *cobra.Command, e *env.Env, access *env.Access, targets []Target, then Elsewhere) (note string, err error) {
	var missing []elsewhere
	works := false
	for _, t := range targets {
		there, found, failed, err := onlyInMembers(cmd.Context(), access, t)
		works = works || there
		if failure := env.ConnectionFailure(err); failure != nil && access.ControlPlane.Unserved() {
			if succeedsWithNothing(cmd, t) {
				return "", fmt.Errorf("%s is not in the control plane, and the members were not searched: %w", t, failure)
			}
			e.Say("the members were not searched: %v", failure)
			return "", nil
		}
		if err == nil && len(found) > 0 {
			missing = append(missing, elsewhere{target: t, found: found, failed: failed})
		}
	}
	if len(missing) == 0 {
		return "", nil
	}
	first := missing[0]
	kind, name, _ := strings.Cut(first.target.Arg, "/")
	switch {
	case then == Refuse:
		text := fmt.Sprintf("%s is not in the control plane, only in %s: %s; %q shows it",
			first.target, strings.Join(first.found, ", "), wayToChange(kind), strings.TrimSpace(fmt.Sprintf("%s get %s %s", e.Name, kind, name))+" -s members")
		if works {
			return text, nil
		}
		return "", errors.New(text)
	case name == "" && cmd.Name() == "describe":
		return "", fmt.Errorf("the control plane has no %s; the clusters %s have some: add -s members, or name one with --cluster", kind, strings.Join(first.found, ", "))
	case name == "":
		return "", fmt.Errorf("the control plane has no %s; the clusters %s have some: name one with --cluster", kind, strings.Join(first.found, ", "))
	}
	cluster, err := common(missing, len(targets))
	if err != nil {
		return "", err
	}
	e.Say("using cluster(%s)", cluster)
	access.Target.Scope, access.Target.Cluster = env.Members, cluster
	return "", nil
}

// succeedsWithNothing reports whether a command ends without an error if the control plane does not have a target.
func succeedsWithNothing(cmd *cobra.Command, t Target) bool {
	value := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return strings.HasSuffix(t.Arg, "/") || value("ignore-not-found") == "true" || cmd.Name() == "wait" && strings.Contains(value("for"), "delete")
}

// wayToChange returns how objects of members are changed, of a kind as a command line names it.
func wayToChange(kind string) string {
	switch strings.ToLower(kind) {
	case "no", "node", "nodes":
		return "a node belongs to its cluster, use kubectl with the kubeconfig of that cluster"
	case "po", "pod", "pods":
		return "pods are changed through the template of their workload in the control plane, and deleted with the kubeconfig of their cluster"
	}
	return "objects of members are changed through their template and policy in the control plane"
}

// common returns the only member that has all objects of a command line, which are count.
func common(missing []elsewhere, count int) (string, error) {
	first := missing[0]
	cluster, err := choose(first.target, "", nil, first.found, first.failed)
	if err != nil {
		return "", err
	}
	for _, m := range missing {
		if len(missing) != count || len(m.found) != 1 || m.found[0] != cluster {
			return "", fmt.Errorf("the objects are in different clusters, %s in %s: name one cluster with --cluster", m.target, strings.Join(m.found, ", "))
		}
	}
	return cluster, nil
}

// onlyInMembers reports whether the control plane has a target, and returns the members that have one which it does not have, and
// why others do not answer. An error, or no member, means that this is not known.
func onlyInMembers(ctx context.Context, access *env.Access, t Target) (there bool, found, failed []string, err error) {
	resource, namespace, err := t.resource(access)
	if err != nil || strings.HasSuffix(resource.Group, "karmada.io") {
		return err == nil, nil, nil, err // members have none of these
	}
	if t.everywhere {
		namespace = ""
	}
	config, err := access.ControlPlane.RESTConfig()
	if err != nil {
		return false, nil, nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return false, nil, nil, err
	}
	if there, err := has(ctx, client.Resource(resource).Namespace(namespace), t); there || err != nil {
		return there, nil, nil, err
	}
	clusters, err := access.ControlPlane.ClusterNames(ctx)
	if err != nil {
		return false, nil, nil, err
	}
	found, failed = partition(holders(ctx, access, clusters, resource, namespace, t))
	return false, found, failed, nil
}
