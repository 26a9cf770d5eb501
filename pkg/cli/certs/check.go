package certs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/certs"
)

const (
	checkLong = `
		Show all certificates of an installation, those that end first above: in Secrets and in the kubeconfigs there, of
		webhooks and APIServices, in cluster-info, in the kubeconfigs and files of the administrator, and those of the
		agents of clusters. Each is shown once, with the first place where it is and the number of the others.

		The exit code is 1 if a certificate ends within the time of --within, or has ended, and 0 otherwise. What cannot
		be read is named.

		With --output the document has schemaVersion (v1), certificates (subject, issuer, serial, authority, notAfter,
		places), keys (name, since, places), renewal (the change of authorities that is under way) and gaps.`
	checkExamples = `
		# Show the certificates of the control plane in the current cluster
		{{.Name}} certs check

		# Those of a local federation
		{{.Name}} certs check --local

		# The ends of all certificates, for a script
		{{.Name}} certs check -o json | jq -r '.certificates[] | [.notAfter, .subject] | @tsv'`
)

func newCheckCommand(e *env.Env) *cobra.Command {
	f := newFlags()
	var within string
	var output env.Output
	cmd := e.Command("check", "Show the certificates and when they end", checkLong, checkExamples)
	cmd.Args, cmd.ValidArgsFunction = env.NoArguments, cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return check(ctx, e, &f, within, output) })
	f.add(cmd)
	cmd.Flags().StringVar(&within, "within", "30d", "How long all certificates are to be valid, such as 30d or 12h.")
	env.AddOutputFlag(cmd, &output)
	return cmd
}

func check(ctx context.Context, e *env.Env, f *flags, limit string, output env.Output) error {
	within, err := parseDuration("--within", limit)
	if err != nil {
		return err
	}
	defer e.Waiting(func() string { return "the host cluster and the control plane to answer" })()
	f.timeoutSeconds = min(f.timeoutSeconds, checkTimeout)
	in, err := f.installation(e, progress.Discard{})
	if err != nil {
		return err
	}
	report, err := certs.Check(ctx, in)
	if err != nil {
		return e.HostError(f.host, err)
	}
	if output != "" {
		err = e.PrintDocument(output, report)
	} else {
		err = print(e.Escaped().Out, report, within, e.Now())
	}
	if err == nil && len(report.Ends(e.Now().Add(within))) > 0 {
		return cmdutil.ErrExit
	}
	return err
}

// checkTimeout is how long the control plane may take to answer a check, in seconds.
const checkTimeout = 5

// print prints a report as a table and lines below it.
func print(out io.Writer, r *certs.Report, within time.Duration, now time.Time) error {
	w := printers.GetNewTabWriter(out)
	_, _ = fmt.Fprintln(w, "CERTIFICATE\tISSUER\tVALID UNTIL\tLEFT\tUSED IN")
	for _, c := range r.Certificates {
		subject, issuer := c.Subject, c.Issuer
		if c.Authority {
			subject += " (authority)"
		}
		if c.Authority && c.Subject == c.Issuer {
			issuer = "itself"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", subject, issuer, c.NotAfter.UTC().Format(time.RFC3339), left(c.NotAfter.Sub(now)), places(c.Places))
	}
	for _, k := range r.Keys {
		age := "-"
		if k.Since != nil {
			age = duration.HumanDuration(now.Sub(*k.Since)) + " old"
		}
		_, _ = fmt.Fprintf(w, "%s (key)\t-\tno end\t%s\t%s\n", k.Name, age, places(k.Places))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	if n := len(r.Ends(now)); n > 0 {
		fmt.Fprintf(&text, "\n%d certificates have ended.\n", n)
	} else if n := len(r.Ends(now.Add(within))); n > 0 {
		fmt.Fprintf(&text, "\n%d certificates end within %s.\n", n, duration.HumanDuration(within))
	}
	if s := r.Renewal; s != nil {
		fmt.Fprintf(&text, "\nA change of the authorities %s is under way, after the step %q.\n", strings.Join(s.Authorities, ", "), s.Step)
		if len(s.Waiting) > 0 {
			fmt.Fprintf(&text, "The agents of these clusters do not use the new authority: %s.\n", strings.Join(s.Waiting, ", "))
		}
	}
	for _, gap := range r.Gaps {
		fmt.Fprintf(&text, "not read: %s\n", gap)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// left returns the time until an end.
func left(d time.Duration) string {
	if d <= 0 {
		return "ended " + duration.HumanDuration(-d) + " ago"
	}
	return duration.HumanDuration(d)
}

func places(all []certs.Place) string {
	text := all[0].String()
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf(", %d more", n)
	}
	return text
}
