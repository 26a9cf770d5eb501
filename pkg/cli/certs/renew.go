package certs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/certs"
)

const (
	renewLong = `
		Make new certificates, put them in the place of the old ones wherever these are, and wait until all processes use
		them. Pods whose process takes new certificates over are not restarted; the others are, one workload after the
		other and one pod at a time. It can be run again after an interruption, and also when certificates have ended.

		With --ca there are new authorities too, in steps: first the old and the new ones are trusted everywhere, then all
		certificates are of the new ones, which clients of the old ones accept too, and the agents of clusters take them
		over. What was done is in the Secret karmada-certs-renewal. With --ca --finish the old authorities are no longer
		trusted, which is refused while agents need them.

		Certificates that end with their authority are not renewed without --ca. The key that signs the tokens of service
		accounts is not changed.

		With --output the document has renewed, authorities, step, waiting and notes.`
	renewExamples = `
		# Renew all certificates
		{{.Name}} certs renew

		# Only those of the API server and of etcd
		{{.Name}} certs renew --only apiserver,etcd

		# A new authority beside the old one
		{{.Name}} certs renew --ca

		# Do not trust the old one any more
		{{.Name}} certs renew --ca --finish`
)

// renewal is what the flags of the command are bound to.
type renewal struct {
	flags
	certs.Options
	validity         string
	ca, finish       bool
	force            bool
	agentWaitSeconds int
	output           env.Output
}

func newRenewCommand(e *env.Env) *cobra.Command {
	r := &renewal{flags: newFlags()}
	cmd := e.Command("renew", "Renew certificates, or change the authorities", renewLong, renewExamples)
	cmd.Args, cmd.ValidArgsFunction = env.NoArguments, cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return r.run(ctx, e) })
	r.add(cmd)
	fs := cmd.Flags()
	fs.StringSliceVar(&r.Only, "only", nil, "Names of certificates, or of what they belong to, such as apiserver,etcd; default all.")
	fs.BoolVar(&r.ca, "ca", false, "Change the authorities too.")
	fs.BoolVar(&r.finish, "finish", false, "With --ca: trust the old authorities no longer.")
	fs.BoolVar(&r.force, "force", false, "With --finish: also while agents of clusters need the old authority. They lose the control plane.")
	fs.StringVar(&r.CACertFile, "ca-cert-file", "", "With --ca: the new authority of the control plane, in place of one that is made. It is needed for one that was given to init.")
	fs.StringVar(&r.CAKeyFile, "ca-key-file", "", "The key of --ca-cert-file; without --ca that of the authority, if the installation does not have it.")
	fs.StringVar(&r.validity, "cert-validity-period", "365d", "How long new certificates are valid, such as 365d or 8760h.")
	fs.IntVar(&r.agentWaitSeconds, "agent-timeout", 120, "With --ca: how long to wait for the agents that take the new authority over by themselves, in seconds.")
	env.AddOutputFlag(cmd, &r.output)
	return cmd
}

func (r *renewal) validate() error {
	switch {
	case r.finish && !r.ca:
		return errors.New("--finish is the last step of --ca: use both")
	case r.force && !r.finish:
		return errors.New("--force is for --finish: use both, or leave it out")
	case r.agentWaitSeconds <= 0:
		return errors.New("--agent-timeout must be greater than 0 seconds")
	case r.ca && len(r.Only) > 0:
		return errors.New("--only and --ca cannot be used together: with other authorities all certificates change")
	case r.CACertFile != "" && (!r.ca || r.finish):
		return errors.New("--ca-cert-file is a new authority: use it with --ca")
	case (r.CACertFile != "") != (r.CAKeyFile != "") && r.ca:
		return errors.New("--ca-cert-file and --ca-key-file belong together: give both")
	}
	var err error
	r.Validity, err = parseDuration("--cert-validity-period", r.validity)
	return err
}

func (r *renewal) run(ctx context.Context, e *env.Env) error {
	if err := r.validate(); err != nil {
		return err
	}
	reporter := progress.NewPrinter(e.ErrOut, e.Now, progress.Timeline)
	in, err := r.installation(e, reporter)
	if err != nil {
		return err
	}
	o := r.Options
	o.Program, o.Now, o.Progress = e.Name, e.Now, reporter
	o.AgentTimeout = time.Duration(r.agentWaitSeconds) * time.Second
	var out *certs.Result
	switch {
	case r.finish:
		out, err = certs.Finish(ctx, in, o, r.force)
	case r.ca:
		out, err = certs.RenewAuthorities(ctx, in, o)
	default:
		out, err = certs.Renew(ctx, in, o)
	}
	if err != nil {
		return e.HostError(r.host, err)
	}
	if r.output != "" {
		return e.PrintDocument(r.output, out)
	}
	return r.print(e.Escaped().Out, e.Name, out)
}

// print prints what was done, and the next steps.
func (r *renewal) print(out io.Writer, program string, result *certs.Result) error {
	var text strings.Builder
	for _, line := range result.Renewed {
		fmt.Fprintf(&text, "renewed %s\n", line)
	}
	for _, note := range result.Notes {
		fmt.Fprintf(&text, "note: %s\n", note)
	}
	names := strings.Join(result.Authorities, ", ")
	switch {
	case r.finish:
		fmt.Fprintf(&text, "The old authorities %s are no longer trusted. Copies of kubeconfigs elsewhere that were made before the change do not work any more.\n", names)
	case r.ca:
		fmt.Fprintf(&text, "The old and the new authorities %s are trusted, and all certificates are of the new ones.\n", names)
		fmt.Fprintf(&text, "Copies of kubeconfigs elsewhere work until the old ones are removed: replace them, then run %s certs renew --ca --finish%s\n", program, r.given())
	default:
		text.WriteString("Copies of kubeconfigs elsewhere work until their own certificates end.\n")
	}
	if len(result.Waiting) > 0 {
		fmt.Fprintf(&text, "The agents of these clusters do not use the new authority: %s. Before you finish, %s.\n", strings.Join(result.Waiting, ", "), certs.Reregister(program))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// given are the flags that name the installation, as the user has to repeat them.
func (r *renewal) given() string {
	var out string
	if r.federation != "" {
		out += " --local=" + r.federation
	}
	if r.root != "" {
		out += " --dir " + r.root
	}
	if r.host.Path != "" {
		out += " --kubeconfig " + r.host.Path
	}
	if r.namespace != newFlags().namespace {
		out += " --namespace " + r.namespace
	}
	if r.release != "" {
		out += " --release " + r.release
	}
	return out
}
