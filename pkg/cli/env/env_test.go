package env

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func testEnv() *Env {
	return &Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}},
		Root:      "kubectl-karmada", Name: "kubectl karmada",
	}
}

// kubeconfig writes a file with one context for each server.
func kubeconfig(t *testing.T, current string, servers map[string]string) string {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncurrent-context: '" + current + "'\n"
	for _, part := range []struct{ list, item, text string }{
		{"clusters", "cluster", "{server: '%[2]s'}"}, {"contexts", "context", "{cluster: %[1]s, user: %[1]s, namespace: ns-%[1]s}"}, {"users", "user", "{token: t-%[1]s}"},
	} {
		text += part.list + ":\n"
		for name, server := range servers {
			text += "- name: " + name + "\n  " + part.item + ": " + fmt.Sprintf(part.text+"%.0[1]s%.0[2]s", name, server) + "\n"
		}
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKubeconfig_Load(t *testing.T) {
	one := kubeconfig(t, "one", map[string]string{"one": "https://one:1", "other": "https://other:1"})
	two := kubeconfig(t, "two", map[string]string{"two": "https://two:2"})
	none := kubeconfig(t, "", map[string]string{"a": "https://a:1"})
	for name, tt := range map[string]struct {
		env       string
		k         Kubeconfig
		host, err string
	}{
		"the flag comes first":          {env: one, k: Kubeconfig{Path: two}, host: "https://two:2"},
		"then the variable":             {env: one, host: "https://one:1"},
		"a context":                     {env: one, k: Kubeconfig{Context: "other"}, host: "https://other:1"},
		"files of the variable, merged": {env: one + ":" + two, k: Kubeconfig{Context: "two"}, host: "https://two:2"},
		"the first current context":     {env: one + ":" + two, host: "https://one:1"},
		"a file that is not there":      {env: "/nowhere/x:" + one, host: "https://one:1"},
		"a flag with no file":           {k: Kubeconfig{Path: "/nowhere/x"}, err: `reading the kubeconfig of --member "/nowhere/x": stat /nowhere/x: no such file or directory`},
		"a context that is not there":   {k: Kubeconfig{Path: one, Context: "x"}, err: `context "x" does not exist; there are: one, other`},
		"no current context":            {k: Kubeconfig{Path: none}, err: "no current context; choose one of: a"},
		"nothing at all":                {env: "/nowhere/x", err: "no kubeconfig was found: $KUBECONFIG names /nowhere/x, which does not exist; correct it, or name a kubeconfig with --member"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.env)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			t.Setenv("KUBERNETES_SERVICE_PORT", "")
			tt.k.Flag = "--member"
			config, err := tt.k.Load()
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %s", err, tt.err)
				}
			case err != nil:
				t.Error(err)
			case config.Host != tt.host || config.QPS != -1:
				t.Errorf("got %s at %v per second, want %s without limit", config.Host, config.QPS, tt.host)
			}
		})
	}
}

func TestKubeconfig_LoadInCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/x")
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err := Kubeconfig{Flag: "--member"}.Load()
	if err == nil || !strings.Contains(err.Error(), "reading the credentials of this pod") {
		t.Errorf("got %v", err)
	}
}

// command returns a command with the flags of access, parsed.
func command(t *testing.T, a *Access, args ...string) *cobra.Command {
	t.Helper()
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	a.Flags.Add(cmd).AddNamespace(cmd).AddImpersonation(cmd)
	a.AddTargetFlags(cmd)
	cmd.SetContext(t.Context())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestAccess_MemberIsBehindTheControlPlane(t *testing.T) {
	path := kubeconfig(t, "cp", map[string]string{"cp": "https://cp:6443/base/", "other": "https://o"})
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")+string(filepath.ListSeparator)+path)
	a := testEnv().NewAccess()
	command(t, a, "--karmada-context", "cp", "--karmada-as", "joe", "--karmada-as-group", "g")
	if got := a.ControlPlane.KubeconfigPath(); got != path {
		t.Errorf("the kubeconfig is %q, want %q", got, path)
	}
	config, err := a.ControlPlane.MemberConfig("m1")
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://cp:6443/base/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"; config.Host != want {
		t.Errorf("got %s, want %s", config.Host, want)
	}
	if config.BearerToken != "t-cp" || config.Impersonate.UserName != "joe" || config.QPS != -1 {
		t.Errorf("credentials of the control plane are not used: %v", config)
	}
	own, err := a.ToRESTConfig()
	if err != nil || own.Host != "https://cp:6443/base/" {
		t.Errorf("%v, %v", own, err)
	}
	if ns, explicit, err := a.Namespace(); ns != "ns-cp" || explicit || err != nil {
		t.Errorf("namespace %q, %v, %v", ns, explicit, err)
	}
}

func TestAccess_Validate(t *testing.T) {
	for line, want := range map[string]string{
		"":                            "",
		"-s karmada -C m1":            "",
		"-C m1":                       "",
		"-s members -C m1":            "",
		"--operation_scope=":          "",
		"--operation-scope members":   "must specify a member cluster; name it with --cluster",
		"--operation-scope all -C m1": "not support operation scope: all; use one of [karmada members]",
	} {
		a := testEnv().NewAccess()
		cmd := &cobra.Command{Use: "x"}
		cmd.SetGlobalNormalizationFunc(nil)
		a.Flags.Add(cmd)
		a.AddTargetFlags(cmd)
		if err := cmd.ParseFlags(strings.Fields(strings.ReplaceAll(line, "_", "-"))); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := a.Target.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// controlPlane serves clusters m1, m2 and x.
func controlPlane(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		items := `[{"metadata":{"name":"x"}},{"metadata":{"name":"m2"}},{"metadata":{"name":"m1"}}]`
		switch r.URL.Path {
		case "/apis/cluster.karmada.io/v1alpha1/clusters":
			fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":%s}`, items)
		case "/api/v1/namespaces":
			fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":%s}`, items)
		case "/apis/cluster.karmada.io/v1alpha1/clusters/m1":
			fmt.Fprint(w, `{"kind":"Cluster","apiVersion":"cluster.karmada.io/v1alpha1","metadata":{"name":"m1"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"clusters.cluster.karmada.io \"nope\" not found","details":{"name":"nope"}}`)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", kubeconfig(t, "cp", map[string]string{"cp": server.URL, "zz": server.URL}))
}

func TestAccess_KnownClusters(t *testing.T) {
	controlPlane(t)
	a := testEnv().NewAccess()
	for _, tt := range []struct{ named, want []string }{
		{nil, []string{"m1", "m2", "x"}}, {[]string{"m2", "m1", "m2"}, []string{"m1", "m2"}},
	} {
		got, err := a.ControlPlane.KnownClusters(t.Context(), tt.named)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%v: %v\n%s", tt.named, err, diff)
		}
	}
	_, err := a.ControlPlane.KnownClusters(t.Context(), []string{"b", "m1", "a", "b"})
	if want := `clusters don't exist: b,a; "kubectl karmada get clusters" lists those that do`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestAccess_FailuresNameTheMember(t *testing.T) {
	controlPlane(t)
	e := testEnv()
	access := func(cluster string) *Access {
		a := e.NewAccess()
		command(t, a, "-s", "members", "-C", cluster)
		return a
	}
	if err := access("nope").Connect(t.Context()); err == nil || e.ErrorPrefix.Add("error: x") != "error: x" {
		t.Errorf("a member that is not there: %v", err)
	}
	if err := access("m1").Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.ErrorPrefix.Add("error: x"); got != "cluster(m1): error: x" {
		t.Errorf("got %q", got)
	}
	for _, message := range []string{"", "command terminated with exit code 3", "error: expected a pod\nSee 'karmadactl logs -h' for help and examples"} {
		if got := e.ErrorPrefix.Add(message); got != message {
			t.Errorf("got %q, want %q", got, message)
		}
	}
}

func TestAccess_Complete(t *testing.T) {
	controlPlane(t)
	a := testEnv().NewAccess()
	cmd := command(t, a)
	for name, tt := range map[string]struct {
		complete cobra.CompletionFunc
		args     []string
		prefix   string
		want     []string
	}{
		"contexts":         {a.Complete.Contexts, nil, "", []string{"cp", "zz"}},
		"clusters":         {a.Complete.Clusters, nil, "m", []string{"m1", "m2"}},
		"a list":           {a.Complete.Clusters, nil, "x,m", []string{"x,m1", "x,m2"}},
		"one argument":     {a.Complete.ClusterArg, nil, "x", []string{"x"}},
		"no second":        {a.Complete.ClusterArg, []string{"x"}, "", nil},
		"namespaces":       {a.Complete.Namespaces, nil, "x", []string{"x"}},
		"nothing of these": {a.Complete.Clusters, nil, "q", nil},
	} {
		got, directive := tt.complete(cmd, tt.args, tt.prefix)
		if diff := cmp.Diff(tt.want, got); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%s: %v\n%s", name, directive, diff)
		}
	}
}

func TestAccess_CompleteWithoutAServerIsQuiet(t *testing.T) {
	t.Setenv("KUBECONFIG", kubeconfig(t, "cp", map[string]string{"cp": "http://127.0.0.1:1"}))
	a := testEnv().NewAccess()
	cmd := command(t, a)
	for _, complete := range []cobra.CompletionFunc{a.Complete.Clusters, a.Complete.Namespaces} {
		if got, _ := complete(cmd, nil, ""); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct{ argv, want []string }{
		{[]string{"/bin/kubectl-karmada", "get", "pods"}, []string{"get", "pods"}},
		{[]string{"/bin/kubectl_complete-karmada", "get", ""}, []string{"__complete", "get", ""}},
	} {
		if diff := cmp.Diff(tt.want, Arguments(tt.argv)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEnv_Adapt(t *testing.T) {
	e := testEnv()
	cmd := &cobra.Command{Short: "Do it", Long: "Use kubectl options. kubectl.kubernetes.io/last-applied stays", Example: "  kubectl apply -f x | kubectl get -f -"}
	cmd.AddCommand(&cobra.Command{Example: "kubectl sub"})
	e.Adapt(cmd)
	got := []string{cmd.Long, cmd.Example, cmd.Commands()[0].Example}
	want := []string{
		"Use kubectl karmada options. kubectl.kubernetes.io/last-applied stays",
		"  kubectl karmada apply -f x | kubectl karmada get -f -", "kubectl karmada sub",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
