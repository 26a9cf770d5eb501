// Package completion is the command that writes the script with which a shell
// completes our command lines.
package completion

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const (
	short = "Output shell completion code for the specified shell (bash, zsh, fish, powershell)"
	long  = `
		Output shell completion code for the specified shell (bash, zsh, fish or PowerShell). The
		shell must evaluate it; bash needs the package bash-completion.

		For kubectl to complete its plugin, also put a link named
		kubectl_complete-karmada to the program kubectl-karmada on the PATH.`
	examples = `
		# Load completion into the current bash
		source <({{.Name}} completion bash)

		# Load it into every bash
		{{.Name}} completion bash > ~/.local/share/bash-completion/completions/{{.Root}}

		# Load it into every zsh
		{{.Name}} completion zsh > "${fpath[1]}/_{{.Root}}"

		# Load it into every fish
		{{.Name}} completion fish > ~/.config/fish/completions/{{.Root}}.fish

		# Load it into every PowerShell
		{{.Name}} completion powershell >> $PROFILE`
	licence = `
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	cmd := e.Command("completion SHELL", short, long, examples)
	cmd.ValidArgs = []string{"bash", "zsh", "fish", "powershell"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return cmdutil.UsageErrorf(cmd, "Shell not specified.")
		case len(args) > 1:
			return cmdutil.UsageErrorf(cmd, "Too many arguments. Expected only the shell type.")
		}
		return write(e.Out, cmd, args[0])
	}
	return cmd
}

func write(out io.Writer, cmd *cobra.Command, shell string) error {
	root := cmd.Root()
	generate := map[string]func() error{
		"bash":       func() error { return root.GenBashCompletionV2(out, true) },
		"zsh":        func() error { return root.GenZshCompletion(out) },
		"fish":       func() error { return root.GenFishCompletion(out, true) },
		"powershell": func() error { return root.GenPowerShellCompletionWithDesc(out) },
	}[shell]
	if generate == nil {
		return cmdutil.UsageErrorf(cmd, "Unsupported shell type %q.", shell)
	}
	head := licence
	if shell == "zsh" {
		head = fmt.Sprintf("#compdef %[1]s\ncompdef _%[1]s %[1]s\n", root.Name()) + licence
	}
	if _, err := io.WriteString(out, head); err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	return generate()
}
