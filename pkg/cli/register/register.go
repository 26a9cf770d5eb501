// Package register is the command that makes a cluster a member in Pull mode.
package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/version"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	short = "Register a cluster to the Karmada control plane with pull mode"
	long  = `
		Register a cluster to the control plane with Pull mode.

		The control plane, which need not reach the cluster, gives the cluster's agent an
		identity in return for a bootstrap token. The agent is started in the cluster, and
		it is waited until the control plane has the cluster as Ready. The identity is
		good for this cluster only. If the agent cannot be started, what was made is
		taken back.

		A cluster whose agent has lost its identity is registered again in the same way.`
	examples = `
		# Register the cluster of the current context; the control plane prints this command with
		# "{{.Name}} token create --print-register-command"
		{{.Name}} register 10.0.0.1:32443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:<hash> --cluster-name member3

		# Register the cluster of another kubeconfig, with an agent from another registry
		{{.Name}} register 10.0.0.1:32443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:<hash> --kubeconfig member3.kubeconfig --karmada-agent-image registry.example.com/karmada-agent:v1

		# Register with a token that other users of the machine do not see
		{{.Name}} register 10.0.0.1:32443 --token-file token.txt --discovery-token-ca-cert-hash sha256:<hash> --cluster-name member3

		# Register without checking the authority of the control plane
		{{.Name}} register 10.0.0.1:32443 --token abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification`

	// printCommand ends errors about missing flags.
	printCommand = "\"token create --print-register-command\", run for the control plane, prints the whole command"

	imageRepository = "docker.io/karmada/karmada-agent"
)

// flags are the flags of the command.
type flags struct {
	kubeconfig env.Kubeconfig
	discovery  member.Discovery
	agent      member.AgentSpec
	tokenFile  string
	endpoint   string
	expiration int32
	dryRun     bool
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	f := flags{kubeconfig: env.Kubeconfig{Flag: "--kubeconfig"}}
	cmd := e.Command("register [karmada-apiserver-endpoint]", short, long, examples)
	cmd.Args = env.ExactlyOne("requires the address of the control plane, host:port", "accepts one address of the control plane only")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error {
		f.discovery.Endpoint = args[0]
		return run(ctx, e, f)
	})
	f.bind(cmd)
	return cmd
}

func (f *flags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.kubeconfig.Path, "kubeconfig", "", "Path to the kubeconfig of the cluster.")
	fs.StringVar(&f.kubeconfig.Context, "context", "", "Name of the context in the kubeconfig of the cluster; default the current one.")
	f.kubeconfig.AddRequestFlags(fs)
	fs.StringVarP(&f.agent.Namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "Namespace that the agent runs in.")
	fs.StringVar(&f.agent.Cluster, "cluster-name", "", "Name of the cluster in the control plane; default that of the cluster in the kubeconfig's context.")
	fs.StringVar(&f.agent.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "Namespace of the credentials, in the cluster and in the control plane.")
	fs.StringVar(&f.agent.Provider, "cluster-provider", "", "Provider of the cluster; fieldSelectors of placements can choose by it.")
	fs.StringVar(&f.agent.Region, "cluster-region", "", "Region of the cluster; fieldSelectors of placements can choose by it.")
	fs.StringSliceVar(&f.agent.Zones, "cluster-zones", []string{}, "Zones of the cluster; fieldSelectors of placements can choose by them.")
	fs.StringVar(&f.endpoint, "cluster-api-endpoint", "", "URL at which the control plane reaches the API server of the cluster, for requests of users; default that of the kubeconfig, or of the node of a kind cluster.")
	fs.BoolVar(&f.agent.Rotate, "enable-cert-rotation", false, "Let the agent renew its certificate before it expires.")
	fs.StringVar(&f.discovery.Token, "token", "", "Bootstrap token of the control plane, or - to read it from standard input. Other users of the machine can see it while the command runs; --token-file keeps it from them.")
	fs.StringVar(&f.tokenFile, "token-file", "", "File with the bootstrap token of the control plane, or - to read it from standard input.")
	fs.StringSliceVar(&f.discovery.Pins, "discovery-token-ca-cert-hash", []string{}, "Accepted hash of the control plane's certificate authority, sha256:<hex>; repeat it for several.")
	fs.BoolVar(&f.discovery.Unpinned, "discovery-token-unsafe-skip-ca-verification", false, "Accept any certificate authority whose signature the token confirms.")
	fs.DurationVar(&f.discovery.Timeout, "discovery-timeout", 5*time.Minute, "How long to wait for each: the control plane, the identity, the agent, and the cluster to be Ready.")
	fs.StringVar(&f.agent.Image, "karmada-agent-image", imageRepository+":"+version.Get().Release(), "Image of the agent.")
	fs.Int32Var(&f.agent.Replicas, "karmada-agent-replicas", 1, "Number of agents; one works, the others stand by.")
	fs.Int32Var(&f.expiration, "cert-expiration-seconds", 31536000, "How long the certificate of the agent is good, in seconds; the control plane may give less.")
	fs.StringVar(&f.agent.ProxyServer, "proxy-server-address", "", "Proxy on the way to the cluster, for the control plane.")
	fs.BoolVar(&f.dryRun, "dry-run", false, "Check whether the cluster can run an agent, and write nothing.")
}

// validate checks the flags without a request.
func (f *flags) validate() error {
	if host, port, err := net.SplitHostPort(f.discovery.Endpoint); err != nil || host == "" || port == "" || strings.Contains(f.discovery.Endpoint, "/") {
		return fmt.Errorf("%q is not the address of a control plane; use host:port, without https://", f.discovery.Endpoint)
	}
	switch {
	case f.discovery.Token == "":
		return errors.New("token is required; set --token or --token-file, and --discovery-token-ca-cert-hash; " + printCommand)
	case len(f.discovery.Pins) == 0 && !f.discovery.Unpinned:
		return errors.New("need to verify CACertHashes, or set --discovery-token-unsafe-skip-ca-verification=true; " + printCommand)
	case f.agent.Replicas < 1:
		return fmt.Errorf("--karmada-agent-replicas %d: there must be one at least", f.agent.Replicas)
	case f.expiration < 600 || f.expiration == math.MaxInt32:
		return fmt.Errorf("--cert-expiration-seconds %d: certificates are good for 600 seconds at least", f.expiration)
	case f.discovery.Timeout <= 0:
		return fmt.Errorf("--discovery-timeout %s must be a positive duration, e.g. 5m0s", f.discovery.Timeout)
	}
	return f.discovery.Validate()
}

func run(ctx context.Context, e *env.Env, f flags) error {
	var err error
	given := f.discovery.Token // what is read in the background must not read what is assigned here
	if f.discovery.Token, err = limit.Within(ctx, "the token", func() (string, error) { return readToken(given, f.tokenFile, e.In) }); err != nil {
		return err
	}
	if err := f.validate(); err != nil {
		return err
	}
	config, err := e.Load(f.kubeconfig)
	if err != nil {
		return err
	}
	if err := f.complete(); err != nil {
		return err
	}
	if err := member.ValidateName(f.agent.Cluster); err != nil {
		return fmt.Errorf("%w; choose one with --cluster-name", err)
	}
	if err := f.route(ctx, e, config); err != nil {
		return err
	}
	d := member.Deps{Program: e.Name, Report: e.SayLine}
	if d.Member, err = member.NewMemberClient(config); err != nil {
		return err
	}
	step := func(line string) { _, _ = fmt.Fprintln(e.Out, line) } // the last line reports write errors
	err = member.Register(ctx, d, member.RegisterRequest{
		Discovery: f.discovery, Agent: f.agent, Lifetime: time.Duration(f.expiration) * time.Second, DryRun: f.dryRun,
	}, step)
	if problems, ok := errors.AsType[member.Preflight](err); ok {
		e.SayLine(problems.Error())
		return cmdutil.ErrExit
	}
	if err != nil || f.dryRun {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "\ncluster(%s) is joined successfully\n", f.agent.Cluster)
	return err
}

// complete sets the name of the cluster, if it was not given, from the kubeconfig.
func (f *flags) complete() error {
	if f.agent.Cluster != "" {
		return nil
	}
	name, err := f.kubeconfig.ClusterName()
	if err != nil {
		return err
	}
	f.agent.Cluster = name
	return nil
}

// route determines the address at which the control plane is to reach the cluster. A
// cluster in Pull mode works without it, except for requests of users through the
// control plane, so that an address that may be useless is only a note.
func (f *flags) route(ctx context.Context, e *env.Env, config *rest.Config) error {
	a := member.Addresses{Name: f.agent.Cluster, Member: config.Host, ControlPlane: "https://" + f.discovery.Endpoint, Proxied: config.Proxy != nil, Given: f.endpoint}
	if a.NeedsNode() {
		var err error
		if a.Node, err = kindcluster.NodeURL(ctx, os.Getenv, f.kubeconfig.ContextName(), config.Host); err != nil {
			e.Say("note: %v", err)
		}
	}
	endpoint, _, err := a.Endpoint()
	switch {
	case err != nil && f.endpoint != "":
		return err
	case err != nil:
		e.Say("note: users will not reach the cluster through the control plane: %v", err)
	case a.Node != "":
		e.Say("note: %s is a kind cluster at %s, which means this machine; the control plane is told %s", a.Name, a.Member, a.Node)
	}
	f.agent.Endpoint = cmp.Or(endpoint, config.Host)
	return nil
}

// stdinName stands for standard input where a file is expected.
const stdinName = "-"

// maxTokenFile is the most that is read of a file with a token, which has 23
// characters.
const maxTokenFile = 4 << 10

// readToken returns the bootstrap token of --token or of --token-file; "-" in
// either reads it from stdin. Space around it is dropped.
func readToken(token, file string, stdin io.Reader) (string, error) {
	switch {
	case token != "" && file != "":
		return "", errors.New("--token and --token-file cannot be used together")
	case file == stdinName, token == stdinName:
		return tokenFrom(stdin, "standard input")
	case file == "":
		return token, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading --token-file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	return tokenFrom(f, file)
}

// tokenFrom never repeats what it read: another file may hold another secret.
func tokenFrom(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxTokenFile+1))
	if err != nil {
		return "", fmt.Errorf("reading the token from %s: %w", name, err)
	}
	token := strings.TrimSpace(string(data))
	switch {
	case token == "":
		return "", fmt.Errorf("%s holds no token; make one with \"token create\"", name)
	case len(data) > maxTokenFile, strings.ContainsAny(token, " \t\r\n"):
		return "", fmt.Errorf("%s holds more than a token; it must be one line such as abcdef.0123456789abcdef", name)
	}
	return token, nil
}
