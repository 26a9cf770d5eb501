package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/addons"
	"github.com/karmada-toolkit/karmada/pkg/cli/adopt"
	"github.com/karmada-toolkit/karmada/pkg/cli/apply"
	"github.com/karmada-toolkit/karmada/pkg/cli/capacity"
	"github.com/karmada-toolkit/karmada/pkg/cli/certs"
	"github.com/karmada-toolkit/karmada/pkg/cli/completion"
	"github.com/karmada-toolkit/karmada/pkg/cli/cordon"
	"github.com/karmada-toolkit/karmada/pkg/cli/dashboard"
	"github.com/karmada-toolkit/karmada/pkg/cli/deinit"
	"github.com/karmada-toolkit/karmada/pkg/cli/describe"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/failover"
	"github.com/karmada-toolkit/karmada/pkg/cli/get"
	initcmd "github.com/karmada-toolkit/karmada/pkg/cli/init"
	"github.com/karmada-toolkit/karmada/pkg/cli/interpret"
	"github.com/karmada-toolkit/karmada/pkg/cli/join"
	"github.com/karmada-toolkit/karmada/pkg/cli/kubectl"
	"github.com/karmada-toolkit/karmada/pkg/cli/local"
	"github.com/karmada-toolkit/karmada/pkg/cli/mcp"
	"github.com/karmada-toolkit/karmada/pkg/cli/plan"
	"github.com/karmada-toolkit/karmada/pkg/cli/promote"
	"github.com/karmada-toolkit/karmada/pkg/cli/rebalance"
	"github.com/karmada-toolkit/karmada/pkg/cli/register"
	"github.com/karmada-toolkit/karmada/pkg/cli/search"
	"github.com/karmada-toolkit/karmada/pkg/cli/status"
	"github.com/karmada-toolkit/karmada/pkg/cli/taint"
	"github.com/karmada-toolkit/karmada/pkg/cli/token"
	"github.com/karmada-toolkit/karmada/pkg/cli/top"
	"github.com/karmada-toolkit/karmada/pkg/cli/unjoin"
	"github.com/karmada-toolkit/karmada/pkg/cli/unregister"
	"github.com/karmada-toolkit/karmada/pkg/cli/why"
)

// Constructor makes a command.
type Constructor func(*env.Env) *cobra.Command

// Group is a section of the help of the program.
type Group struct {
	// Heading of the section, without a colon.
	Heading string
	// Commands in the order they are listed.
	Commands []Constructor
}

// Headings of the sections.
const (
	BasicCommands           = "Basic Commands"
	LocalCommands           = "Local Federation Commands"
	RegistrationCommands    = "Cluster Registration Commands"
	ManagementCommands      = "Cluster Management Commands"
	TroubleshootingCommands = "Troubleshooting and Debugging Commands"
	AdvancedCommands        = "Advanced Commands"
	SettingsCommands        = "Settings Commands"
	OtherCommands           = "Other Commands"
)

// Groups returns the sections of the help with their commands.
func Groups() []Group {
	return []Group{
		{BasicCommands, []Constructor{kubectl.NewExplainCommand, get.NewCommand, kubectl.NewCreateCommand, kubectl.NewDeleteCommand, kubectl.NewEditCommand}},
		{LocalCommands, []Constructor{local.NewCommand}},
		{RegistrationCommands, []Constructor{initcmd.NewCommand, deinit.NewCommand, adopt.NewCommand, addons.NewCommand, certs.NewCommand, join.NewCommand, unjoin.NewCommand, token.NewCommand, register.NewCommand, unregister.NewCommand}},
		{ManagementCommands, []Constructor{cordon.NewCordonCommand, cordon.NewUncordonCommand, taint.NewCommand, capacity.NewCommand}},
		{TroubleshootingCommands, []Constructor{kubectl.NewAttachCommand, kubectl.NewLogsCommand, kubectl.NewExecCommand, describe.NewCommand, failover.NewCommand, status.NewCommand, dashboard.NewCommand, why.NewCommand, mcp.NewCommand, interpret.NewCommand, search.NewCommand}},
		{AdvancedCommands, []Constructor{plan.NewCommand, plan.NewSnapshotCommand, apply.NewCommand, promote.NewCommand, top.NewCommand, kubectl.NewPatchCommand, rebalance.NewCommand, kubectl.NewRolloutCommand, kubectl.NewScaleCommand, kubectl.NewWaitCommand}},
		{SettingsCommands, []Constructor{kubectl.NewLabelCommand, kubectl.NewAnnotateCommand, completion.NewCommand}},
		{OtherCommands, []Constructor{kubectl.NewAPIResourcesCommand, kubectl.NewAPIVersionsCommand, newVersionCommand}},
	}
}

// unannotated are the commands that carry no annotation with their section.
var unannotated = [...]string{"completion", "version"}

// newVersionCommand returns the command that prints the version of the program.
func newVersionCommand(e *env.Env) *cobra.Command {
	var output env.Output
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version information",
		Long:              "Print the version of this program. It does not ask a server.",
		Example:           e.Examples("# Print the version\n{{.Name}} version\n\n# Print it as JSON\n{{.Name}} version -o json"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if output != "" {
				return e.PrintDocument(output, version.Get())
			}
			_, err := fmt.Fprintln(e.Out, versionLine(e.Name))
			return err
		},
	}
	env.AddOutputFlag(cmd, &output)
	cmd.Flags().String("request-timeout", "0", "Not used: version sends no request.") // scripts pass it to every command
	cmd.Flags().Lookup("request-timeout").Hidden = true
	return cmd
}

// versionLine returns the version information in one line.
func versionLine(program string) string {
	return fmt.Sprintf("%s version: %s", program, version.Get())
}
