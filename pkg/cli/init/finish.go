package initcmd

import (
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const rule = "------------------------------------------------------------------------------------------------------"

const logo = `
 █████   ████   █████████   ███████████   ██████   ██████   █████████   ██████████     █████████
░░███   ███░   ███░░░░░███ ░░███░░░░░███ ░░██████ ██████   ███░░░░░███ ░░███░░░░███   ███░░░░░███
 ░███  ███    ░███    ░███  ░███    ░███  ░███░█████░███  ░███    ░███  ░███   ░░███ ░███    ░███
 ░███████     ░███████████  ░██████████   ░███░░███ ░███  ░███████████  ░███    ░███ ░███████████
 ░███░░███    ░███░░░░░███  ░███░░░░░███  ░███ ░░░  ░███  ░███░░░░░███  ░███    ░███ ░███░░░░░███
 ░███ ░░███   ░███    ░███  ░███    ░███  ░███      ░███  ░███    ░███  ░███    ███  ░███    ░███
 █████ ░░████ █████   █████ █████   █████ █████     █████ █████   █████ ██████████   █████   █████
░░░░░   ░░░░ ░░░░░   ░░░░░ ░░░░░   ░░░░░ ░░░░░     ░░░░░ ░░░░░   ░░░░░ ░░░░░░░░░░   ░░░░░   ░░░░░
`

const next = `
Register clusters to the control plane.

Push mode

Step 1: Join a member cluster, as this machine reaches it

  {{.Name}} --kubeconfig {{.Kubeconfig}} join ${MEMBER_CLUSTER_NAME} --cluster-kubeconfig=$HOME/.kube/config

Step 2: Show the clusters

  kubectl --kubeconfig {{.Kubeconfig}} get clusters

Pull mode

Step 1: The token of the next command is good for one cluster and for 24 hours. Make others with

  {{.Name}} token create --print-register-command --kubeconfig={{.Kubeconfig}}

Step 2: Register a member cluster, on a machine that reaches it

  {{.Name}} register {{.Endpoint}} --token {{.Token}} --discovery-token-ca-cert-hash {{.CAHash}} --kubeconfig=<path-to-member-cluster-kubeconfig>

Step 3: Show the clusters

  kubectl --kubeconfig {{.Kubeconfig}} get clusters

The usage of 'register' is shown by '{{.Name}} register --help'.
`

// finish prints that the control plane is installed, and the next steps.
func finish(e *env.Env, r *installer.Result, took time.Duration) error {
	t, err := template.New("next").Parse(next)
	if err != nil {
		return fmt.Errorf("reading the end message: %w", err)
	}
	endpoint := r.Server
	if u, err := url.Parse(r.Server); err == nil {
		endpoint = u.Host
	}
	data := map[string]string{
		"Name": e.Name, "Kubeconfig": r.Kubeconfig, "Token": r.Token, "CAHash": r.CAHash, "Endpoint": endpoint,
	}
	outcome := "Nothing had to be changed."
	if r.Changed() {
		outcome = fmt.Sprintf("It took %.1fs.", took.Seconds())
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s%s%s\nKarmada is installed successfully. %s\n", rule, logo, rule, outcome)
	if err := t.Execute(&out, data); err != nil {
		return fmt.Errorf("writing the end message: %w", err)
	}
	if _, err = fmt.Fprint(e.Out, out.String()); err == nil && r.Token != "" {
		e.Say("note: %s", member.TokenFileHint)
	}
	return err
}
