// Package certs are the commands about the certificates of an installation.
package certs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/certs"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/local"
)

const (
	short = "Check and renew the certificates of a control plane"
	long  = `
		The certificates of a control plane that "init" or the Helm chart installed, with those of the agents of its
		clusters, or of a federation of "local up".

		The kubeconfig is that of the host cluster. The control plane itself need not answer: one whose certificates have
		ended is repaired by "renew".`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	return e.Group("certs", short, long, "", newCheckCommand(e), newRenewCommand(e))
}

// flags choose the installation.
type flags struct {
	host           env.Kubeconfig
	namespace      string
	release        string
	data, pki      string
	kubeconfigs    []string
	federation     string
	root           string
	timeoutSeconds int
}

func newFlags() flags {
	return flags{host: env.Kubeconfig{Flag: "--kubeconfig"}, namespace: config.DefaultNamespace}
}

func (f *flags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.host.AddHostFlags(flags)
	env.AddHostNamespace(flags, &f.namespace)
	flags.StringVar(&f.release, "release", "", "Name of the Helm release, if the namespace has several control planes; \"karmada\" for that of init.")
	flags.StringVarP(&f.data, "karmada-data", "d", config.DefaultDataPath, "Directory with the administrator's kubeconfig that init wrote.")
	flags.StringVar(&f.pki, "karmada-pki", "", "Directory with the certificates that init wrote; default pki in --karmada-data.")
	flags.StringSliceVar(&f.kubeconfigs, "karmada-kubeconfig", nil, "Further kubeconfigs of the control plane, which are renewed with it.")
	flags.StringVar(&f.federation, "local", "", "Name of a federation of \"local up\" that is meant in place of an installation in a host cluster.")
	flags.Lookup("local").NoOptDefVal = local.DefaultName
	flags.StringVar(&f.root, "dir", "", "Directory that local federations are kept in; default karmada/local in $XDG_STATE_HOME (~/.local/state).")
	flags.IntVar(&f.timeoutSeconds, "timeout", 120, "How long each workload may take to be ready, in seconds.")
}

// installation returns the installation that is meant.
func (f *flags) installation(e *env.Env, reporter progress.Reporter) (certs.Installation, error) {
	if f.timeoutSeconds <= 0 {
		return nil, errors.New("--timeout must be greater than 0 seconds")
	}
	timeout := time.Duration(f.timeoutSeconds) * time.Second
	host := f.host
	if f.federation != "" {
		federation, err := f.local(e)
		if err != nil {
			return nil, err
		}
		if federation.HostKubeconfig == "" {
			return &certs.Local{
				Dir: federation.Dir, Own: federation.Own, Kubeconfig: federation.Kubeconfig, Timeout: timeout,
				Restart: federation.Restart, Metrics: federation.Metrics,
			}, nil
		}
		host.Path, host.Context, f.data = federation.HostKubeconfig, "", federation.Data
		f.kubeconfigs = append(f.kubeconfigs, federation.Kubeconfig)
	}
	cfg, err := e.Load(host)
	if err != nil {
		return nil, err
	}
	pki := f.pki
	if pki == "" {
		pki = filepath.Join(f.data, "pki")
	}
	in := &certs.Hosted{
		Program: e.Name, Namespace: f.namespace, Release: f.release, Files: append(f.kubeconfigs, filepath.Join(f.data, credentials.KubeconfigName)), PKI: pki,
		Timeout: timeout, Progress: reporter, Now: e.Now,
	}
	return in, in.Connect(cfg)
}

// local reads the federation.
func (f *flags) local(e *env.Env) (*local.Certificates, error) {
	root := f.root
	if root == "" {
		var err error
		if root, err = local.DefaultRoot(os.Getenv); err != nil {
			return nil, err
		}
	}
	return local.CertificatesOf(local.NewDeps(e.Name, e.ErrOut, e.Now), root, f.federation)
}

// parseDuration reads a duration, which can be in days.
func parseDuration(flag, text string) (time.Duration, error) {
	number, inDays := strings.CutSuffix(text, "d")
	if inDays {
		number += "h"
	}
	d, err := time.ParseDuration(number)
	if err != nil || d <= 0 || d > math.MaxInt64/24 {
		return 0, fmt.Errorf("%s: %q is not a duration greater than 0, such as 30d or 12h", flag, text)
	}
	if inDays {
		d *= 24
	}
	return d, nil
}
