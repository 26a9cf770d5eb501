// Package promote is the command that makes what runs in a member cluster a template of the control plane.
package promote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	memberaccess "github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/operate/promote"
)

const (
	short = "Promote resources from legacy clusters to Karmada control plane"
	long  = `
		Promote resources from legacy clusters to Karmada control plane.

		The object is copied from the member cluster to the control plane, and a policy is created that
		propagates it to that cluster. The object in the cluster is adopted in place: its pods are not
		restarted. Deleting the policy or the template later leaves it running.

		The cluster must be joined or registered. An object that the control plane already has is left
		as it is. The namespace must exist in the control plane.`
	examples = `
		# Promote deployment default/nginx of cluster member1
		{{.Name}} promote deployment nginx -n default -C member1

		# Promote it with the ConfigMaps, Secrets and other objects that it refers to
		{{.Name}} promote deployment nginx -n default -C member1 -d

		# Promote all deployments that have a label
		{{.Name}} promote deployments -l app=web -n default -C member1

		# Print the template and the policy, and write nothing
		{{.Name}} promote deployment nginx -n default -C member1 -o yaml

		# Promote it without a policy
		{{.Name}} promote deployment nginx -n default -C member1 --auto-create-policy=false

		# Promote it under a policy name of your choice
		{{.Name}} promote deployment nginx -n default -C member1 --policy-name mypolicy

		# Read the object with a kubeconfig of the cluster instead of through the control plane
		{{.Name}} promote deployment nginx -n default -C member1 --cluster-kubeconfig=member1.kubeconfig`
)

type flags struct {
	promote.Request
	kubeconfig env.Kubeconfig
	selector   string
	output     string
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	f := flags{kubeconfig: env.Kubeconfig{Flag: "--cluster-kubeconfig"}}
	cmd := e.Command("promote <RESOURCE_TYPE> <RESOURCE_NAME> -n <NAME_SPACE> -C <CLUSTER_NAME>", short, long, examples)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return run(cmd.Context(), e, access, f, args)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if f.Cluster == "" { // its types and objects are meant
			return cobra.AppendActiveHelp(nil, "name the member cluster with -C first: its objects are completed"), cobra.ShellCompDirectiveNoFileComp
		}
		return completion.ResourceTypeAndNameCompletionFunc(access.MemberAccess(f.Cluster).Factory())(cmd, args, prefix)
	}
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.ControlPlane.AddTimeoutFlag(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.Cluster, "cluster", "C", "", "Name of the member cluster to promote from.")
	fs.StringVar(&f.kubeconfig.Path, "cluster-kubeconfig", "", "Path to a kubeconfig of the cluster; default: the cluster is read through the control plane.")
	fs.StringVar(&f.kubeconfig.Context, "cluster-context", "", "Name of the context in the kubeconfig of the cluster; default the name of the cluster.")
	fs.BoolVarP(&f.Dependencies, "dependencies", "d", false, "Promote what the object refers to as well, and let the policy propagate it.")
	fs.BoolVar(&f.CreatePolicy, "auto-create-policy", true, "Create a PropagationPolicy or ClusterPropagationPolicy that propagates the object to the cluster.")
	fs.StringVar(&f.PolicyName, "policy-name", "", "Name of the policy; default a name derived from the object. It cannot be used with several objects.")
	fs.StringVarP(&f.selector, "selector", "l", "", "Promote all objects of the type that match the label selector, such as -l key1=value1,key2=value2.")
	fs.StringVarP(&f.output, "output", "o", "", "Print the template and the policy and write nothing. One of: json, yaml.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Write nothing.")
	for flag, fn := range map[string]cobra.CompletionFunc{
		"cluster": access.Complete.Clusters,
		"output":  cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
			panic(err)
		}
	}
	return cmd
}

// validate returns an error when the arguments and flags do not name objects of one cluster.
func (f *flags) validate(args []string) error {
	typeAndName := len(args) == 1 && strings.Contains(args[0], "/")
	switch {
	case f.selector == "" && len(args) < 2 && !typeAndName, f.selector != "" && len(args) != 1:
		kind := "TYPE"
		if len(args) > 0 {
			kind = args[0]
		}
		return fmt.Errorf("incorrect command format, please use correct command format: %q, or %q for several", "promote "+kind+" NAME", "promote "+kind+" -l SELECTOR")
	case f.Cluster == "":
		return errors.New("the cluster cannot be empty: name the member cluster with --cluster")
	case f.output != "" && f.output != "json" && f.output != "yaml":
		return errors.New("invalid output format: supported formats are json and yaml")
	case f.PolicyName != "" && (f.selector != "" || len(args) > 2):
		return errors.New("--policy-name names the policy of one object: promote one object, or leave the flag out")
	}
	return nil
}

func run(ctx context.Context, e *env.Env, access *env.Access, f flags, args []string) error {
	if err := f.validate(args); err != nil {
		return err
	}
	namespace, _, err := access.Namespace()
	if err != nil {
		return err
	}
	f.Namespace = namespace
	d, getter, err := newDeps(ctx, e, access, f)
	if err != nil {
		return err
	}
	objects, err := read(ctx, typedGetter{RESTClientGetter: getter, types: access}, f, args)
	if err != nil {
		return err
	}
	var errs []error
	for _, obj := range objects {
		errs = append(errs, promote.Run(ctx, d, f.Request, obj))
	}
	return errors.Join(errs...)
}

// newDeps returns what promoting works with, and access to the member.
func newDeps(ctx context.Context, e *env.Env, access *env.Access, f flags) (d promote.Deps, member genericclioptions.RESTClientGetter, err error) {
	d = promote.Deps{Out: e.TerminalSafe().Out, Warn: func(format string, args ...any) { e.Say("Warning: "+format, args...) }}
	if err := access.ControlPlane.RequireDiscovery(ctx); err != nil {
		return d, nil, err
	}
	if d.ControlPlane, err = dynamicClient(access); err != nil {
		return d, nil, err
	}
	if d.Mapper, err = access.ToRESTMapper(); err != nil {
		return d, nil, fmt.Errorf("reading the APIs of the control plane: %w", err)
	}
	if member, err = memberAccess(ctx, access, f); err != nil {
		return d, nil, err
	}
	if d.Member, err = dynamicClient(member); err != nil {
		return d, nil, err
	}
	switch f.output {
	case "json":
		d.Printer = &printers.JSONPrinter{}
	case "yaml":
		d.Printer = &printers.YAMLPrinter{}
	}
	if f.Dependencies {
		d.Interpreters, err = newInterpreters(ctx, d)
	}
	return d, member, err
}

func dynamicClient(getter genericclioptions.RESTClientGetter) (dynamic.Interface, error) {
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// memberAccess returns access to the member: by a kubeconfig of it, or through the control plane, which must know it.
func memberAccess(ctx context.Context, access *env.Access, f flags) (genericclioptions.RESTClientGetter, error) {
	if f.kubeconfig.Path == "" && f.kubeconfig.Context == "" {
		if _, err := access.ControlPlane.Cluster(ctx, f.Cluster); err != nil {
			return nil, err
		}
		return access.MemberAccess(f.Cluster), nil
	}
	f.kubeconfig.Context = cmp.Or(f.kubeconfig.Context, f.Cluster)
	if _, err := f.kubeconfig.Load(); err != nil {
		return nil, err
	}
	direct := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(-1).WithWrapConfigFn(memberaccess.Guard)
	direct.Context = &f.kubeconfig.Context
	if f.kubeconfig.Path != "" {
		direct.KubeConfig = &f.kubeconfig.Path
	}
	return direct, nil
}

// typedGetter sends requests to a member for the types of the control plane: what a member claims to serve must not
// decide which types the arguments of the user mean.
type typedGetter struct {
	genericclioptions.RESTClientGetter
	types *env.Access
}

// ToDiscoveryClient implements RESTClientGetter.
func (g typedGetter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.types.ToDiscoveryClient()
}

// ToRESTMapper implements RESTClientGetter.
func (g typedGetter) ToRESTMapper() (meta.RESTMapper, error) { return g.types.ToRESTMapper() }

// read returns the named objects of the member, all of them or none.
func read(ctx context.Context, member genericclioptions.RESTClientGetter, f flags, args []string) ([]*unstructured.Unstructured, error) {
	result := resource.NewBuilder(member).Unstructured().NamespaceParam(f.Namespace).DefaultNamespace().
		LabelSelectorParam(f.selector).ResourceTypeOrNameArgs(f.selector != "", args...).ContinueOnError().Latest().Flatten().Do()
	infos, err := result.Infos()
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("failed to get resource in cluster(%s). err: the %s don't exist in cluster(%s)", f.Cluster, strings.Join(args, " or "), f.Cluster)
	}
	if err != nil && strings.Contains(err.Error(), "the server doesn't have a resource type") {
		return nil, fmt.Errorf("the control plane does not serve %s: promote its CustomResourceDefinition first: %w", args[0], err)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to get resource in cluster(%s). err: %w", f.Cluster, err)
	}
	if len(infos) == 0 {
		return nil, fmt.Errorf("no %s in namespace %q of cluster(%s) matches the selector %q", args[0], f.Namespace, f.Cluster, f.selector)
	}
	objects := make([]*unstructured.Unstructured, 0, len(infos))
	for _, info := range infos {
		obj, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%s %q of cluster(%s) has no fields that can be read", args[0], info.Name, f.Cluster)
		}
		want := memberaccess.Requested(info.Mapping.GroupVersionKind, info.Namespace, info.Name)
		if err := want.CheckIn(memberaccess.IdentityOf(obj), info.Namespaced()); err != nil {
			return nil, fmt.Errorf("the answer of cluster(%s) for %s %q was refused: %w", f.Cluster, args[0], info.Name, err)
		}
		objects = append(objects, obj)
	}
	return objects, ctx.Err()
}
