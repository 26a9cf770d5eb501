// Package rebalance is the command that schedules workloads anew.
package rebalance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/util/completion"

	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/operate/rebalance"
)

const (
	short = "Schedule workloads anew"
	long  = `
		Schedule workloads anew, as if they had just been created.

		The scheduler otherwise changes the placement of running replicas as little as possible. A
		WorkloadRebalancer is created that names the workloads; it is deleted 10 minutes after it is
		finished.

		With --output the result is one document: rebalancer, the name of the WorkloadRebalancer, and, with
		--wait, moves with workload, before and after, the last two with name and replicas of clusters, and notes:
		clusters that get no more replicas because their condition Ready changes often, and until when.`
	examples = `
		# Schedule deployment default/nginx anew
		{{.Name}} rebalance deployment/nginx

		# Schedule two workloads anew, wait, and print which replicas moved
		{{.Name}} rebalance deployment/nginx statefulset/db -n shop --wait`
)

type flags struct {
	wait    bool
	timeout time.Duration
	output  env.Output
}

// document is the result in JSON.
type document struct {
	// Rebalancer is the name of the WorkloadRebalancer.
	Rebalancer string `json:"rebalancer"`
	// Moves are there after --wait.
	Moves []move `json:"moves,omitempty"`
}

// move is where the replicas of a workload were, and are now.
type move struct {
	Workload appsv1alpha1.ObjectReference `json:"workload"`
	Before   []workv1alpha2.TargetCluster `json:"before"`
	After    []workv1alpha2.TargetCluster `json:"after"`
	Notes    []string                     `json:"notes,omitempty"`
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var f flags
	cmd := e.Command("rebalance TYPE/NAME... [-n NAMESPACE] [--wait]", short, long, examples)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("timeout") && !f.wait {
			return errors.New("--timeout is for --wait: add it, or leave --timeout out")
		}
		return run(cmd.Context(), e, access, f, args)
	}
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.ValidArgsFunction = completion.SpecifiedResourceTypeAndNameCompletionFunc(access.Factory(), []string{"deployments", "statefulsets", "jobs", "replicasets", "cronjobs"})
	env.AddOutputFlag(cmd, &f.output)
	cmd.Flags().BoolVar(&f.wait, "wait", false, "Wait until the workloads are scheduled, and print which replicas moved.")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "How long --wait waits at most.")
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, f flags, args []string) error {
	if len(args) == 0 {
		return errors.New("name at least one workload as TYPE/NAME, such as deployment/nginx")
	}
	workloads, err := read(access, args)
	if err != nil {
		return err
	}
	c, err := access.ControlPlane.RequiredClient(ctx)
	if err != nil {
		return err
	}
	hint := explained(e, workloads)
	plan, err := rebalance.New(ctx, c, rebalance.Request{
		Workloads: workloads, Timeout: f.timeout,
		Publish: func(reason error) {
			e.Say("waiting: %v%s", reason, hint)
			hint = "" // once is enough
		},
	})
	if err != nil {
		return err
	}
	name, err := plan.Start(ctx)
	if err != nil {
		return err
	}
	if f.output != "" {
		return document{Rebalancer: name}.print(ctx, e, f, plan)
	}
	out := e.TerminalSafe().Out
	fmt.Fprintf(out, "workloadrebalancer.apps.karmada.io/%s created\n", name)
	if !f.wait {
		return nil
	}
	moves, err := plan.Wait(ctx)
	for _, move := range moves {
		fmt.Fprintln(out, move)
	}
	return err
}

// explained names the command that explains the first workload.
func explained(e *env.Env, workloads []appsv1alpha1.ObjectReference) string {
	w := workloads[0]
	command := fmt.Sprintf("%s why %s %s", e.Name, strings.ToLower(w.Kind), w.Name)
	if w.Namespace != "" {
		command += " -n " + w.Namespace
	}
	return fmt.Sprintf("; %q explains it", command)
}

// print prints the result, after waiting if the flags say so.
func (d document) print(ctx context.Context, e *env.Env, f flags, plan *rebalance.Plan) error {
	var failure error
	if f.wait {
		var moves []rebalance.Move
		moves, failure = plan.Wait(ctx)
		for _, m := range moves {
			d.Moves = append(d.Moves, move{Workload: m.Workload, Before: m.Before, After: m.After, Notes: m.Notes})
		}
	}
	if err := e.PrintDocument(f.output, d); err != nil {
		return err
	}
	return failure
}

// read returns references to the templates that the arguments name, each once.
func read(access *env.Access, args []string) ([]appsv1alpha1.ObjectReference, error) {
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := resource.NewBuilder(access).Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var out []appsv1alpha1.ObjectReference
	for _, info := range infos {
		gvk := info.Mapping.GroupVersionKind
		ref := appsv1alpha1.ObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: info.Namespace, Name: info.Name}
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out, nil
}
