package locate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// Elsewhere is what a command does about an object that is not in the control plane but in members.
type Elsewhere int

const (
	// Use has the command work on the member.
	Use Elsewhere = iota
	// Refuse returns an error that names the members: objects there are changed through their templates.
	Refuse
)

// Fallback wraps a command that names objects of the control plane: an object that only members have is found there.
func Fallback(e *env.Env, access *env.Access, cmd *cobra.Command, then Elsewhere) *cobra.Command {
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if target, ok := named(cmd, args); ok && access.Target.Cluster == "" && !access.Target.ScopeGiven() {
			if err := fall(cmd.Context(), e, access, target, then); err != nil {
				return err
			}
		}
		if next != nil {
			return next(cmd, args)
		}
		return nil
	}
	return cmd
}

// named returns the first object that a command line names, or the type of which "describe" describes all objects. It
// reports false for lists of types, selectors and files.
func named(cmd *cobra.Command, args []string) (Target, bool) {
	for _, flag := range []string{"filename", "kustomize", "selector", "all", "all-namespaces", "field-selector"} {
		if cmd.Flags().Changed(flag) {
			return Target{}, false
		}
	}
	if len(args) > 0 && strings.Count(args[0], "/") == 1 {
		return Target{Arg: args[0]}, true
	}
	if len(args) == 1 && cmd.Name() == "describe" {
		return Target{Arg: args[0] + "/"}, !strings.Contains(args[0], ",")
	}
	names := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.Contains(arg, "=") || strings.HasSuffix(arg, "-") })
	if len(names) < 2 || strings.Contains(names[0], ",") {
		return Target{}, false
	}
	return Target{Arg: names[0] + "/" + names[1]}, true
}

// fall chooses the member that has an object which the control plane does not have. What cannot be found out is left to
// the command.
func fall(ctx context.Context, e *env.Env, access *env.Access, t Target, then Elsewhere) error {
	found, failed, err := onlyInMembers(ctx, access, t)
	if env.ConnectionFailure(err) != nil && access.ControlPlane.Unserved() {
		e.Say("the members were not searched: %v", err)
	}
	if err != nil || len(found) == 0 {
		return nil //nolint:nilerr // the command reports it
	}
	kind, name, _ := strings.Cut(t.Arg, "/")
	if name == "" {
		return fmt.Errorf("the control plane has no %s; the clusters %s have some: add -s members, or name one with --cluster", kind, strings.Join(found, ", "))
	}
	if then == Refuse {
		return fmt.Errorf("%s is not in the control plane, only in %s: objects of members are changed through their template and policy in the control plane; %q shows it",
			t, strings.Join(found, ", "), fmt.Sprintf("%s get %s %s -s members", e.Name, kind, name))
	}
	cluster, err := choose(t, "", nil, found, failed)
	if err != nil {
		return err
	}
	e.Say("using cluster(%s)", cluster)
	access.Target.Scope, access.Target.Cluster = env.Members, cluster
	return nil
}

// onlyInMembers returns the members that have a target which the control plane does not have, and why others do not
// answer. An error, or no member, means that this is not known.
func onlyInMembers(ctx context.Context, access *env.Access, t Target) (found, failed []string, err error) {
	resource, err := resourceOf(access, t)
	if err != nil || strings.HasSuffix(resource.Group, "karmada.io") {
		return nil, nil, err
	}
	namespace, err := namespaceOf(access, resource)
	if err != nil {
		return nil, nil, err
	}
	config, err := access.ControlPlane.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	if there, err := has(ctx, client.Resource(resource).Namespace(namespace), t); there || err != nil {
		return nil, nil, err
	}
	clusters, err := access.ControlPlane.ClusterNames(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, failed = partition(holders(ctx, access, clusters, resource, namespace, t))
	return found, failed, nil
}

// namespaceOf returns the namespace of the objects of a type, or "" for a type without namespaces.
func namespaceOf(access *env.Access, resource schema.GroupVersionResource) (string, error) {
	mapper, err := access.ControlPlane.RESTMapper()
	if err != nil {
		return "", err
	}
	kind, err := mapper.KindFor(resource)
	if err != nil {
		return "", err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return "", err
	}
	namespace, _, err := access.Namespace()
	return namespace, err
}
