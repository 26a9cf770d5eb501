// Package token holds the commands on bootstrap tokens, which clusters show when
// they register in Pull mode.
package token

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	short = "Manage bootstrap tokens"
	long  = `
		Manage bootstrap tokens.

		A cluster that registers in Pull mode shows such a token to the control plane
		to be given the identity of its agent. A token is id.secret: the id may be known,
		the secret must not. It is a Secret of the type bootstrap.kubernetes.io/token in
		namespace kube-system of the control plane.`
	examples = `
		# Make a token and print how to register a cluster with it
		{{.Name}} token create --print-register-command

		# List the tokens
		{{.Name}} token list

		# Delete one
		{{.Name}} token delete abcdef`

	createLong = `
		Make a bootstrap token, with a random id and secret, and print it.

		A token is good for one cluster: the first whose name it is shown for. With
		--reusable it is good for any number.

		With --output the token is one document with the fields token, expires, usages,
		groups, description, reusable and, with --print-register-command, command.`
	createExamples = `
		# A token that is good for a day
		{{.Name}} token create

		# The whole command to register a cluster
		{{.Name}} token create --print-register-command

		# A token with which twenty clusters are registered within the hour
		{{.Name}} token create --ttl=1h --reusable --description="rollout of the shops"`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	return e.Group("token", short, long, examples, newCreate(e), newDelete(e), newList(e))
}

// createFlags specify the token to create.
type createFlags struct {
	print, reusable bool
	output          env.Output
	ttl             time.Duration
	usages, groups  []string
	description     string
}

func newCreate(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var f createFlags
	cmd := e.Command("create", "Create a bootstrap token", createLong, createExamples)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runCreate(cmd.Context(), e, access, f) }
	access.Flags.Add(cmd)
	env.AddOutputFlag(cmd, &f.output)
	fs := cmd.Flags()
	fs.BoolVar(&f.print, "print-register-command", false, "Print, instead of the token, the whole command that registers a cluster with it.")
	fs.BoolVar(&f.reusable, "reusable", false, "Let the token register any number of clusters instead of one.")
	fs.DurationVar(&f.ttl, "ttl", 24*time.Hour, "How long the token is good, such as 30m or 2h; 0 is forever.")
	fs.StringSliceVar(&f.usages, "usages", usages(), "What the token is good for: signing, authentication.")
	fs.StringSliceVar(&f.groups, "groups", []string{names.BootstrapGroup}, "Groups that who shows the token is in.")
	fs.StringVar(&f.description, "description", "", "What the token is for, for people.")
	return cmd
}

// usages are the usages that a token can have.
func usages() []string { return []string{"signing", "authentication"} }

func (f createFlags) validate() error {
	if f.ttl < 0 {
		return fmt.Errorf("--ttl %s is negative; use 0 for a token that never expires", f.ttl)
	}
	for _, usage := range f.usages {
		if !slices.Contains(usages(), usage) {
			return fmt.Errorf("--usages: there is no usage %q; use %s", usage, strings.Join(usages(), " or "))
		}
	}
	for _, group := range f.groups {
		if err := bootstraputil.ValidateBootstrapGroupName(group); err != nil {
			return fmt.Errorf("--groups: %w", err)
		}
	}
	return nil
}

func runCreate(ctx context.Context, e *env.Env, access *env.Access, f createFlags) error {
	if err := f.validate(); err != nil {
		return err
	}
	var expires time.Time
	if f.ttl > 0 {
		expires = e.Now().Add(f.ttl)
	}
	t, err := member.NewToken(expires)
	if err != nil {
		return err
	}
	t.Usages, t.Groups, t.Description, t.Reusable = f.usages, f.groups, f.description, f.reusable
	line := t.String()
	if f.print {
		// Before the token is stored: if this fails there is none.
		if line, err = registerCommand(e, access, t); err != nil {
			return err
		}
	}
	c, err := access.ControlPlane.OwnClient(ctx)
	if err != nil {
		return err
	}
	if err := member.CreateToken(ctx, c, t); err != nil {
		return err
	}
	if f.output != "" {
		doc := created{document: documents([]registration.Token{t})[0]}
		if f.print {
			doc.Command = line
		}
		err = e.PrintDocument(f.output, doc)
	} else {
		_, err = fmt.Fprintln(e.Out, line)
	}
	if err == nil && f.print {
		e.Say("note: %s", member.TokenFileHint)
	}
	return err
}

// created is a new token in JSON.
type created struct {
	document
	// Command registers a cluster with it.
	Command string `json:"command,omitempty"`
}

// registerCommand is what to type in a member.
func registerCommand(e *env.Env, access *env.Access, t registration.Token) (string, error) {
	config, err := access.ToRESTConfig()
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return "", fmt.Errorf("failed to get register command, err: %w", err)
	}
	endpoint, err := endpointOf(config.Host)
	if err != nil {
		return "", fmt.Errorf("failed to get register command, err: %w", err)
	}
	if len(config.CAData) == 0 {
		return "", errors.New("failed to get register command, err: the kubeconfig has no certificate authority that clusters could check the control plane by; use one with certificate-authority-data")
	}
	pins, err := member.Pins(config.CAData)
	if err != nil {
		return "", fmt.Errorf("failed to get register command, err: %w", err)
	}
	if host, _, _ := net.SplitHostPort(endpoint); net.ParseIP(host).IsLoopback() || host == "localhost" {
		e.Say("note: %s is an address of this machine; a cluster elsewhere needs another one for the control plane", endpoint)
	}
	return fmt.Sprintf("%s register %s --token %s --discovery-token-ca-cert-hash %s", e.Name, endpoint, t, strings.Join(pins, ",")), nil
}

// endpointOf returns host and port of a server.
func endpointOf(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("the server %q of the kubeconfig is no URL", server)
	}
	if strings.Trim(u.Path, "/") != "" {
		return "", fmt.Errorf("the server %q of the kubeconfig has a path; clusters register at host and port", server)
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443"), nil
	}
	return u.Host, nil
}

func newDelete(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Command("delete [token-value] ...", "Delete bootstrap tokens", "\n\t\tDelete bootstrap tokens, by their ids or as a whole. Clusters that were registered with them stay.", "")
	cmd.ValidArgsFunction = completeTokens(access)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) < 1 {
			return fmt.Errorf("missing subcommand; 'token delete' is missing token of form %q", bootstrapapi.BootstrapTokenIDPattern)
		}
		return runDelete(cmd.Context(), e, access, args)
	}
	access.Flags.Add(cmd)
	return cmd
}

func runDelete(ctx context.Context, e *env.Env, access *env.Access, args []string) error {
	ids := make([]string, 0, len(args))
	for _, arg := range args {
		id := arg
		if whole, _, err := registration.ParseToken(arg); err == nil {
			id = whole
		}
		if !regexp.MustCompile(`\A([a-z0-9]{6})\z`).MatchString(id) {
			return fmt.Errorf("given token didn't match pattern %q or %q: a token looks like abcdef.0123456789abcdef, its id like abcdef; %q shows them",
				bootstrapapi.BootstrapTokenIDPattern, bootstrapapi.BootstrapTokenPattern, e.Name+" token list")
		}
		ids = append(ids, id)
	}
	c, err := access.ControlPlane.OwnClient(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := member.DeleteToken(ctx, c, id)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w; %q lists those there are", err, e.Name+" token list")
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(e.Out, "bootstrap token %q deleted\n", id); err != nil {
			return err
		}
	}
	return nil
}

// completionLimit is how long completion waits for the control plane.
const completionLimit = 5 * time.Second

// completeTokens completes ids of tokens.
func completeTokens(access *env.Access) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		c, err := access.ControlPlane.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		tokens, _, err := member.ListTokens(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, t := range tokens {
			if strings.HasPrefix(t.ID, prefix) && !slices.Contains(args, t.ID) {
				ids = append(ids, t.ID)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func newList(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var output env.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List bootstrap tokens",
		Long:  e.Long("\n\t\tList the bootstrap tokens of the control plane."),
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), e, access, output) },
	}
	access.Flags.Add(cmd)
	env.AddOutputFlag(cmd, &output)
	return cmd
}

func runList(ctx context.Context, e *env.Env, access *env.Access, output env.Output) error {
	c, err := access.ControlPlane.OwnClient(ctx)
	if err != nil {
		return err
	}
	tokens, malformed, err := member.ListTokens(ctx, c)
	if err != nil {
		return err
	}
	for _, err := range malformed {
		e.Say("error: %v", err)
	}
	if output != "" {
		return env.PrintItems(e, output, documents(tokens))
	}
	return printTokens(e, tokens)
}

// document is a token in JSON.
type document struct {
	Token       string     `json:"token"`
	Expires     *time.Time `json:"expires,omitempty"`
	Usages      []string   `json:"usages"`
	Groups      []string   `json:"groups"`
	Description string     `json:"description,omitempty"`
	Reusable    bool       `json:"reusable,omitempty"`
}

// documents returns the tokens as they are printed in JSON.
func documents(tokens []registration.Token) []document {
	out := make([]document, 0, len(tokens))
	for _, t := range tokens {
		d := document{Token: t.String(), Usages: t.Usages, Groups: t.Groups, Description: t.Description, Reusable: t.Reusable}
		if !t.Expires.IsZero() {
			d.Expires = &t.Expires
		}
		out = append(out, d)
	}
	return out
}

// printTokens prints a table, or that there is nothing to print.
func printTokens(e *env.Env, tokens []registration.Token) error {
	if len(tokens) == 0 {
		e.Say("No tokens; make one with \"%s token create\"", e.Name)
		return nil
	}
	w := printers.GetNewTabWriter(e.Escaped().Out)
	_, _ = fmt.Fprintln(w, "TOKEN\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS") // Flush returns the error
	for _, t := range tokens {
		ttl, expires := "<forever>", "<never>"
		if !t.Expires.IsZero() {
			ttl, expires = duration.ShortHumanDuration(t.Expires.Sub(e.Now())), t.Expires.Format(time.RFC3339)
		}
		cells := []string{t.String(), ttl, expires, orNone(strings.Join(t.Usages, ",")), orNone(t.Description), orNone(strings.Join(t.Groups, ","))}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
