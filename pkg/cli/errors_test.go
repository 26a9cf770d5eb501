package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	utilexec "k8s.io/utils/exec"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

func TestReport(t *testing.T) {
	clusters := schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "nginx",
		field.ErrorList{field.Required(field.NewPath("spec", "selector"), "")})
	for name, tt := range map[string]struct {
		err  error
		want string
		code int
	}{
		"none":           {nil, "", 0},
		"plain":          {errors.New("boom"), "error: boom\n", 1},
		"not found":      {apierrors.NewNotFound(clusters, "m1"), "Error from server (NotFound): clusters.cluster.karmada.io \"m1\" not found\n", 1},
		"unauthorized":   {apierrors.NewUnauthorized("no token"), "error: You must be logged in to the server (no token)\n", 1},
		"invalid":        {invalid, "The Deployment \"nginx\" is invalid: spec.selector: Required value\n", 1},
		"refused":        {&url.Error{Op: "Get", URL: "https://h:1/api", Err: errors.New("dial tcp: connection refused")}, "The connection to the server h:1 was refused - did you specify the right host or port?\n", 1},
		"other URL":      {&url.Error{Op: "Get", URL: "https://h:1/api", Err: errors.New("no such host")}, "Unable to connect to the server: no such host\n", 1},
		"aggregate of 1": {utilerrors.NewAggregate([]error{errors.New("cluster(m1): x")}), "error: cluster(m1): x\n", 1},
		"aggregate of 2": {utilerrors.NewAggregate([]error{errors.New("cluster(m1): x"), apierrors.NewNotFound(clusters, "m2")}),
			"cluster(m1): x\nError from server (NotFound): clusters.cluster.karmada.io \"m2\" not found\n", 1},
		"no role search": {errors.New("resource mapping not found for name: \"w\" namespace: \"\" from \"x.yaml\": no matches for kind \"ResourceRegistry\" in version \"search.karmada.io/v1alpha1\"\nensure CRDs are installed first"),
			"error: the control plane has no role search, which serves ResourceRegistries: install it with \"karmadactl addons enable karmada-search\" on a host cluster, or \"karmadactl local up --search\" for a local federation\n", 1},
		"silent":                    {cmdutil.ErrExit, "", 1},
		"remote code":               {utilexec.CodeExitError{Err: errors.New("command terminated with exit code 7"), Code: 7}, "command terminated with exit code 7\n", 7},
		"interrupted":               {fmt.Errorf("waiting for x: %w", context.Canceled), "interrupted: waiting for x: context canceled\n", 130},
		"watched until interrupted": {env.ErrInterrupted, "", 130},
		"control characters":        {errors.New("cluster(m1): \x1b[2Jgone\rfine"), "error: cluster(m1): \\x1b[2Jgone\\rfine\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := testEnv(t)
			if code := report(p.Env, tt.err); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if got := p.errOut.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRun_HintsNameThePlugin(t *testing.T) {
	for line, want := range map[string]string{
		"get --x": "error: unknown flag: --x\nSee 'kubectl karmada get --help' for usage.\n",
		"join":    "error: cluster name is required\nSee 'kubectl karmada join -h' for help and examples\n",
	} {
		p := testProgram(t, "kubectl-karmada", "kubectl karmada")
		if code := p.run(t, strings.Fields(line)...); code != 1 || p.errOut.String() != want {
			t.Errorf("%s: code %d, got %q", line, code, p.errOut)
		}
	}
}

func TestRun_BadCommandLines(t *testing.T) {
	const noConfig = "error: reading the kubeconfig of --cluster-kubeconfig \"/nowhere/member\": stat /nowhere/member: no such file or directory\n"
	long := "n23456789-123456789-123456789-123456789-123456789"
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":      {[]string{"gte"}, "error: unknown command \"gte\" for \"karmadactl\"\n\nDid you mean this?\n\tget\n"},
		"command of kubectl":   {[]string{"cp", "a", "b"}, "error: unknown command \"cp\" for \"karmadactl\"\nuse \"kubectl cp\" with the kubeconfig of the member cluster that has the pod\n"},
		"delete in a member":   {[]string{"delete", "pods", "x", "-C", "m1"}, "error: \"delete\" works on the control plane: objects of members are changed through their template and policy there; \"karmadactl get -C m1\" shows those of the cluster\n"},
		"unknown flag":         {[]string{"get", "--x"}, "error: unknown flag: --x\nSee 'karmadactl get --help' for usage.\n"},
		"join without name":    {[]string{"join"}, "error: cluster name is required\nSee 'karmadactl join -h' for help and examples\n"},
		"join with two names":  {[]string{"join", "a", "b"}, "error: only the cluster name is allowed as an argument\nSee 'karmadactl join -h' for help and examples\n"},
		"join with long name":  {[]string{"join", long}, "error: invalid cluster name(" + long + "): must be no more than 48 characters\n"},
		"join with bad name":   {[]string{"join", "a.b"}, "error: invalid cluster name(a.b): must not contain dots\n"},
		"join no kubeconfig":   {[]string{"join", "m1", "--cluster-kubeconfig=/nowhere/member"}, noConfig},
		"unjoin no kubeconfig": {[]string{"unjoin", "m1", "--cluster-kubeconfig=/nowhere/member"}, noConfig},
		"unjoin without wait":  {[]string{"unjoin", "m1", "--wait=0s"}, "error:  --wait 0s  must be a positive duration, e.g. 1m0s \n"},
		"register nowhere":     {[]string{"register"}, "error: requires the address of the control plane, host:port\nSee 'karmadactl register -h' for help and examples\n"},
		"register a URL":       {[]string{"register", "https://h:1"}, "error: \"https://h:1\" is not the address of a control plane; use host:port, without https://\n"},
		"register no token":    {[]string{"register", "h:1"}, "error: token is required; set --token or --token-file, and --discovery-token-ca-cert-hash; \"token create --print-register-command\", run for the control plane, prints the whole command\n"},
		"register no pin":      {[]string{"register", "h:1", "--token=abcdef.0123456789abcdef"}, "error: need to verify CACertHashes, or set --discovery-token-unsafe-skip-ca-verification=true; \"token create --print-register-command\", run for the control plane, prints the whole command\n"},
		"register bad token": {[]string{"register", "h:1", "--token=x", "--discovery-token-unsafe-skip-ca-verification"},
			"error: the bootstrap token is not of the form \\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z\n"},
		"register bad pin": {[]string{"register", "h:1", "--token=abcdef.0123456789abcdef", "--discovery-token-ca-cert-hash=sha256:12"},
			"error: --discovery-token-ca-cert-hash \"sha256:12\" is not of the form sha256:<64 hexadecimal digits>\n"},
		"unregister no member":  {[]string{"unregister", "m1"}, "error: --cluster-kubeconfig is required to specify KUBECONFIG file path to access unregistering member cluster\n"},
		"unregister no name":    {[]string{"unregister"}, "error: cluster name is required\nSee 'karmadactl unregister -h' for help and examples\n"},
		"unregister no wait":    {[]string{"unregister", "m1", "--cluster-kubeconfig=x", "--wait=-1s"}, "error:  --wait -1s  must be a positive duration, e.g. 1m0s \n"},
		"token delete nothing":  {[]string{"token", "delete"}, "error: missing subcommand; 'token delete' is missing token of form \"\\\\A([a-z0-9]{6})\\\\z\"\n"},
		"token delete no token": {[]string{"token", "delete", "ABC"}, "error: given token didn't match pattern \"\\\\A([a-z0-9]{6})\\\\z\" or \"\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z\": a token looks like abcdef.0123456789abcdef, its id like abcdef; \"karmadactl token list\" shows them\n"},
		"top of nothing":        {[]string{"top", "foo"}, "error: unknown command \"foo\" for \"karmadactl top\"\n"},
		"help of nothing":       {[]string{"help", "foo"}, "error: unknown help topic \"foo\"; \"karmadactl help\" lists the commands\n"},
		"help of no subcommand": {[]string{"help", "top", "foo"}, "error: unknown help topic \"top foo\"; \"karmadactl help\" lists the commands\n"},
		"rollout undo":          {[]string{"rollout", "undo", "deployment/x"}, "error: the control plane keeps no revisions, they are in the members (\"karmadactl get rs -s members\"): apply the earlier manifest again\n"},
		"rebalance no wait":     {[]string{"rebalance", "deployment/x", "--timeout=1s"}, "error: --timeout is for --wait: add it, or leave --timeout out\n"},
		"list of nothing":       {[]string{"interpret", "--list", "Foo"}, "error: no bundled customization is for the kind \"Foo\"; \"karmadactl interpret --list\" lists those there are\n"},
		"promote no cluster":    {[]string{"promote", "deployment", "x"}, "error: the cluster cannot be empty: name the member cluster with --cluster\n"},
		"promote no name":       {[]string{"promote", "deployments", "-C", "m1"}, "error: incorrect command format, please use correct command format: \"promote deployments NAME\", or \"promote deployments -l SELECTOR\" for several\n"},
		"token negative":        {[]string{"token", "create", "--ttl=-1s"}, "error: --ttl -1s is negative; use 0 for a token that never expires\n"},
		"token bad usage":       {[]string{"token", "create", "--usages=signing,x"}, "error: --usages: there is no usage \"x\"; use signing or authentication\n"},
		"cordon without name":   {[]string{"cordon"}, "error: cluster name is required\nSee 'karmadactl cordon -h' for help and examples\n"},
		"cordon two":            {[]string{"cordon", "a", "b"}, "error: more than one cluster name is not supported\nSee 'karmadactl cordon -h' for help and examples\n"},
		"taint nothing":         {[]string{"taint"}, "error: one or more resources must be specified as <resource> <name>\n"},
		"describe bad scope":    {[]string{"describe", "pods", "-s", "all"}, "error: not support operation scope: all; use one of [karmada members]\n"},
		"logs nothing":          {[]string{"logs"}, "error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command\nSee 'karmadactl logs -h' for help and examples\n"},
		"apply two ways":        {[]string{"apply", "--all-clusters", "-C", "m1"}, "error: --all-clusters and --cluster cannot be used together\n"},
		"apply nothing":         {[]string{"apply"}, "error: must specify one of -f and -k\n"},
		"completion no shell":   {[]string{"completion"}, "error: Shell not specified.\nSee 'karmadactl completion -h' for help and examples\n"},
		"completion two":        {[]string{"completion", "bash", "zsh"}, "error: Too many arguments. Expected only the shell type.\nSee 'karmadactl completion -h' for help and examples\n"},
		"completion bad shell":  {[]string{"completion", "pwsh"}, "error: Unsupported shell type \"pwsh\".\nSee 'karmadactl completion -h' for help and examples\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := testEnv(t)
			if code := p.run(t, tt.args...); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if got := p.errOut.String(); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if p.out.Len() > 0 {
				t.Errorf("stdout: %s", p.out)
			}
		})
	}
}

// TestRun_NoKubeconfig runs commands of every group: one cause has one text.
func TestRun_NoKubeconfig(t *testing.T) {
	missing, empty := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kubeconfig := range []struct{ name, env, want string }{
		{"an empty file", empty, "error: no kubeconfig was found; name one with --kubeconfig or $KUBECONFIG. \"karmadactl local up\" starts a federation on this machine\n"},
		{"a file that does not exist", missing,
			"error: no kubeconfig was found: $KUBECONFIG names " + missing + ", which does not exist; correct it, or name a kubeconfig with --kubeconfig\n"},
	} {
		for _, line := range []string{
			"get pods", "get clusters", "get pods -C m1", "describe pods x", "describe cluster m1", "create namespace x", "delete pods x", "label pods x a=b",
			"annotate pods x a=b", "edit pods x", "patch pods x -p {}", "cordon m1", "uncordon m1", "taint clusters m1 a=b:NoExecute", "top nodes", "top pods",
			"capacity", "rebalance deployment/x", "failover status", "failover resume", "promote deployment x -C m1", "token list", "token create",
			"api-versions", "api-resources", "explain pods", "logs x", "exec x -- true", "attach x",
		} {
			t.Run(kubeconfig.name+"/"+line, func(t *testing.T) {
				p := testEnv(t)
				t.Setenv("KUBECONFIG", kubeconfig.env)
				if code := p.run(t, strings.Fields(line)...); code != 1 {
					t.Errorf("exit code %d, want 1", code)
				}
				if got := p.errOut.String(); got != kubeconfig.want {
					t.Errorf("got  %q\nwant %q", got, kubeconfig.want)
				}
			})
		}
	}
}
