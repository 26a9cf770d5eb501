// Package kubectl holds the commands of kubectl that work on the control plane, or on a member, without changes of
// their own.
package kubectl

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/create"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/explain"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/cmd/options"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/rollout"
	"k8s.io/kubectl/pkg/cmd/scale"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/wait"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/locate"
)

// constructor is the constructor of a command of kubectl.
type constructor func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command

// onControlPlane returns a command of kubectl that works on the control plane.
func onControlPlane(e *env.Env, construct constructor) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(construct(access.Factory(), e.TerminalSafe()))
	access.Flags.Add(cmd).AddNamespace(cmd)
	return refuseCluster(e, locate.Fallback(e, access, cmd, locate.Refuse))
}

// refuseCluster has a command that works on the control plane only explain this when a member is named.
func refuseCluster(e *env.Env, cmd *cobra.Command) *cobra.Command {
	var cluster string
	cmd.Flags().StringVarP(&cluster, "cluster", "C", "", "Not supported: the command works on the control plane.")
	cmd.Flags().Lookup("cluster").Hidden = true
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cluster != "" {
			return fmt.Errorf("%q works on the control plane: objects of members are changed through their template and policy there; %q shows those of the cluster",
				cmd.Name(), e.Name+" get -C "+cluster)
		}
		return next(cmd, args)
	}
	return cmd
}

// withSubcommands returns a command of kubectl with subcommands, which work on the control plane.
func withSubcommands(e *env.Env, construct constructor) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(construct(access.Factory(), e.TerminalSafe()))
	access.Flags.AddPersistent(cmd)
	return cmd
}

// NewAnnotateCommand returns the command annotate.
func NewAnnotateCommand(e *env.Env) *cobra.Command {
	return onControlPlane(e, func(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		return annotate.NewCmdAnnotate(e.Name, f, streams)
	})
}

// NewCreateCommand returns the command create.
func NewCreateCommand(e *env.Env) *cobra.Command { return withSubcommands(e, create.NewCmdCreate) }

// NewDeleteCommand returns the command delete.
func NewDeleteCommand(e *env.Env) *cobra.Command { return onControlPlane(e, delete.NewCmdDelete) }

// NewEditCommand returns the command edit.
func NewEditCommand(e *env.Env) *cobra.Command { return onControlPlane(e, edit.NewCmdEdit) }

// NewLabelCommand returns the command label.
func NewLabelCommand(e *env.Env) *cobra.Command { return onControlPlane(e, label.NewCmdLabel) }

// NewPatchCommand returns the command patch.
func NewPatchCommand(e *env.Env) *cobra.Command { return onControlPlane(e, patch.NewCmdPatch) }

// NewRolloutCommand returns the command rollout.
func NewRolloutCommand(e *env.Env) *cobra.Command {
	cmd := withSubcommands(e, func(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
		return rollout.NewCmdRollout(e.Name, f, streams)
	})
	for _, sub := range cmd.Commands() {
		if sub.Name() == "history" || sub.Name() == "undo" {
			sub.PreRunE = func(*cobra.Command, []string) error {
				return fmt.Errorf("the control plane keeps no revisions, they are in the members (%q): apply the earlier manifest again", e.Name+" get rs -s members")
			}
		}
	}
	return cmd
}

// NewScaleCommand returns the command scale.
func NewScaleCommand(e *env.Env) *cobra.Command { return onControlPlane(e, scale.NewCmdScale) }

// NewWaitCommand returns the command wait, for the control plane or a member.
func NewWaitCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(wait.NewCmdWait(access.Factory(), e.TerminalSafe()))
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.AddTargetFlags(cmd)
	return locate.Fallback(e, access, access.Check(cmd), locate.Use)
}

// NewExplainCommand returns the command explain, for the control plane or a member.
func NewExplainCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(explain.NewCmdExplain(e.Name, access.Factory(), e.Escaped()))
	cmd.Use = "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [--output=plaintext|plaintext-openapiv2] "
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.AddTargetFlags(cmd)
	return access.Check(cmd)
}

// NewAPIResourcesCommand returns the command api-resources, for the control plane or a member.
func NewAPIResourcesCommand(e *env.Env) *cobra.Command {
	return aboutAPIs(e, apiresources.NewCmdAPIResources)
}

// NewAPIVersionsCommand returns the command api-versions, for the control plane or a member.
func NewAPIVersionsCommand(e *env.Env) *cobra.Command {
	return aboutAPIs(e, apiresources.NewCmdAPIVersions)
}

func aboutAPIs(e *env.Env, construct func(genericclioptions.RESTClientGetter, genericiooptions.IOStreams) *cobra.Command) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(construct(access, e.Escaped()))
	access.Flags.Add(cmd)
	access.AddTargetFlags(cmd)
	return access.Check(cmd)
}

// onTarget returns a command of kubectl that works on the object that the command line names, in the control plane or a
// member.
func onTarget(e *env.Env, access *env.Access, construct constructor, use string, target func(*cobra.Command, []string) locate.Target) *cobra.Command {
	cmd := e.Adapt(construct(access.Factory(), e.IOStreams))
	cmd.Use = use
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.AddTargetFlags(cmd)
	cmd.ValidArgsFunction = access.InMembers(completion.PodResourceNameCompletionFunc, nil)
	return locate.Check(e, access, cmd, target)
}

// NewAttachCommand returns the command attach.
func NewAttachCommand(e *env.Env) *cobra.Command {
	return onTarget(e, e.NewAccess(), attach.NewCmdAttach, "attach (POD | TYPE/NAME) -c CONTAINER", func(_ *cobra.Command, args []string) locate.Target {
		if len(args) == 0 {
			return locate.Target{}
		}
		return locate.Target{Arg: args[0]}
	})
}

// NewExecCommand returns the command exec.
func NewExecCommand(e *env.Env) *cobra.Command {
	use := "exec (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER) -- COMMAND [args...]"
	return onTarget(e, e.NewAccess(), exec.NewCmdExec, use, func(cmd *cobra.Command, args []string) locate.Target {
		if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
			return locate.Target{} // --filename names it
		}
		return locate.Target{Arg: args[0]}
	})
}

// NewLogsCommand returns the command logs, for members.
func NewLogsCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	access.Target.Scope = env.Members
	use := "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER)"
	return onTarget(e, access, logs.NewCmdLogs, use, func(cmd *cobra.Command, args []string) locate.Target {
		selector := cmd.Flag("selector").Value.String()
		switch {
		case len(args) > 0 && selector == "":
			return locate.Target{Arg: args[0]}
		case len(args) == 0 && selector != "":
			return locate.Target{Selector: selector}
		default:
			return locate.Target{} // kubectl's command returns a usage error
		}
	})
}

// NewOptionsCommand returns the command that lists the flags all commands have.
func NewOptionsCommand(e *env.Env) *cobra.Command {
	cmd := e.Adapt(options.NewCmdOptions(e.Out))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}
