package locate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// command returns a command with the flags that choose objects.
func command(use string) *cobra.Command {
	cmd := &cobra.Command{Use: use, SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
	fs := cmd.Flags()
	fs.StringP("selector", "l", "", "")
	fs.String("field-selector", "", "")
	fs.StringP("filename", "f", "", "")
	fs.Bool("all", false, "")
	fs.BoolP("all-namespaces", "A", false, "")
	return cmd
}

func TestNamed(t *testing.T) {
	for _, tc := range []struct{ name, line, want string }{
		{"type and name", "wait pod x", "pod/x"},
		{"type/name", "wait pod/x", "pod/x"},
		{"labels are no names", "label pods x a=b c-", "pods/x"},
		{"several names", "delete pods x y", "pods/x pods/y"},
		{"several types", "delete pods,services x", "pods/x services/x"},
		{"several pairs", "delete pod/x service/y", "pod/x service/y"},
		{"a type only", "delete pods", ""},
		{"a type only, of which all objects are described", "describe pods", "pods/"},
		{"all objects", "delete pods --all", "pods/"},
		{"a selector", "delete pods,services -l a=b", "pods/ services/"},
		{"labels of all", "label pods --all a=b", "pods/"},
		{"a file", "delete -f x", ""},
		{"nothing", "delete", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			words := strings.Fields(tc.line)
			cmd := command(words[0])
			if err := cmd.ParseFlags(words[1:]); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range named(cmd, cmd.Flags().Args()) {
				got = append(got, target.Arg)
			}
			if !slices.Equal(got, strings.Fields(tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestFallback_OnlyInMembers runs command lines about the deployment "web", which only m2 has: none succeeds without doing
// something.
func TestFallback_OnlyInMembers(t *testing.T) {
	const refused = `is not in the control plane, only in m2: objects of members are changed through their template and policy in the control plane; "karmadactl get`
	for _, tc := range []struct {
		line string
		then Elsewhere
		want string
	}{
		{"delete deployments web", Refuse, `deployments "web" ` + refused + ` deployments web -s members" shows it`},
		{"delete deploy/web", Refuse, `deploy "web" ` + refused},
		{"delete deployments other web", Refuse, `deployments "web" ` + refused},
		{"delete deployments --all", Refuse, "the selection of deployments " + refused + ` deployments -s members" shows it`},
		{"delete deployments -A --all", Refuse, refused},
		{"delete all --all", Refuse, "the selection of deployments.apps " + refused},
		{"delete deployments -l app=web", Refuse, refused},
		{"delete deployments --field-selector metadata.name=web", Refuse, refused},
		{"label deployments --all a=b", Refuse, refused},
		{"delete deployments -l app=none", Refuse, ""},
		{"delete deployments other", Refuse, ""},
		{"wait deployments web", Use, ""},
		{"wait deployments --all", Use, "the control plane has no deployments; the clusters m2 have some: name one with --cluster"},
		{"describe deployments", Use, "the control plane has no deployments; the clusters m2 have some: add -s members, or name one with --cluster"},
		{"describe deployments web other", Use, "the objects are in different clusters"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			e, _ := federation(t)
			access := e.NewAccess()
			words := strings.Fields(tc.line)
			cmd := Fallback(e, access, command(words[0]), tc.then)
			cmd.SetArgs(words[1:])
			err := cmd.ExecuteContext(t.Context())
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestFallback_SomeAreInTheControlPlane runs command lines about what the control plane has, and about the deployment "web", which
// only m2 has: the command works on the former, and the latter is named at the end.
func TestFallback_SomeAreInTheControlPlane(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"delete deployments,controllerrevisions --all", "note: the selection of deployments is not in the control plane, only in m2: "},
		{"delete controllerrevisions/here deploy/web", `note: deploy "web" is not in the control plane, only in m2: `},
		{"label deployments,controllerrevisions --all a=b", "note: the selection of deployments "},
		{"delete controllerrevisions --all", ""},
	} {
		for name, err := range map[string]error{"": nil, ", which fails": errors.New("failed")} {
			t.Run(tc.line+name, func(t *testing.T) {
				e, said := federation(t)
				words := strings.Fields(tc.line)
				cmd := command(words[0])
				ran := false
				cmd.RunE = func(*cobra.Command, []string) error { ran = true; return err }
				cmd = Fallback(e, e.NewAccess(), cmd, Refuse)
				cmd.SetArgs(words[1:])
				if got := cmd.ExecuteContext(t.Context()); !errors.Is(got, err) || !ran {
					t.Errorf("it ran: %v, %v", ran, got)
				}
				if text := said.String(); !strings.Contains(text, tc.want) || tc.want == "" && text != "" {
					t.Errorf("said %q", text)
				}
			})
		}
	}
}

func TestWayToChange(t *testing.T) {
	for kind, want := range map[string]string{"Nodes": "kubectl with the kubeconfig", "po": "template of their workload", "deploy": "template and policy"} {
		if got := wayToChange(kind); !strings.Contains(got, want) {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
