package apply

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

func TestPlan_Flags(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/config")
	for line, want := range map[string]string{
		"-f f.yaml --yes":                 "--yes skips the confirmation of --plan: give --plan, too",
		"-f f.yaml --plan --dry-run=none": "--plan and --dry-run cannot be used together",
		"-f f.yaml --plan --prune -l a=b": "--plan and --prune cannot be used together",
		"-f f.yaml --plan --server-side":  "--plan and --server-side cannot be used together",
		"-f f.yaml --plan -o json":        "--plan and --output cannot be used together",
		"-f - --plan":                     "-f - leaves no input to confirm the plan with: give --yes, or see it with \"plan -f -\" before",
		"-f f.yaml --all-clusters -C m1":  "--all-clusters and --cluster cannot be used together",
	} {
		t.Run(line, func(t *testing.T) {
			var out bytes.Buffer
			cmd := NewCommand(&env.Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}})
			cmd.SetArgs(strings.Fields(line))
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			if err := cmd.Execute(); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
