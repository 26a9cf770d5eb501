package search

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

func TestOptions_Flags(t *testing.T) {
	const etcd = "--etcd-servers=https://127.0.0.1:2379"
	for name, tc := range map[string]struct {
		args []string
		err  string
	}{
		"what installers pass": {args: []string{
			etcd, "--etcd-cafile=a", "--etcd-certfile=b", "--etcd-keyfile=c", "--tls-cert-file=d", "--tls-private-key-file=e",
			"--authentication-kubeconfig=k", "--authorization-kubeconfig=k", "--tls-min-version=VersionTLS13", "--audit-log-path=-",
			"--audit-log-maxage=0", "--audit-log-maxbackup=0", "--bind-address=10.0.0.1", "--disable-search", "--feature-gates=APIServerIdentity=false",
		}},
		"no port":         {args: []string{"--secure-port=0"}},
		"no etcd":         {err: "--etcd-servers must be specified"},
		"an unknown gate": {args: []string{etcd, "--feature-gates=Nonsense=true"}, err: "Nonsense"},
		"a bad limit":     {args: []string{etcd, "--max-requests-inflight=-1"}, err: "--max-requests-inflight"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			o.AddFlags(fs)
			err := fs.Parse(tc.args)
			if err == nil {
				err = o.Validate()
			}
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want something about %q", err, tc.err)
			}
		})
	}
}

// Flags that the documentation names exist.
func TestOptions_Documented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/search.md")
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	NewOptions().AddFlags(fs)
	named := regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) == 0 {
		t.Error("docs/search.md names no flag")
	}
	for _, flag := range named {
		if fs.Lookup(flag[1]) == nil {
			t.Errorf("docs/search.md names --%s, which does not exist", flag[1])
		}
	}
}

func TestOptions_ApplyRun(t *testing.T) {
	o := NewOptions()
	if o.SecureServing.BindPort != 443 || o.Run.MinRequestTimeout != 1800 || o.Run.StorageInitializationTimeout != time.Minute {
		t.Errorf("defaults: port %d, %+v", o.SecureServing.BindPort, o.Run)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse([]string{"--min-request-timeout=7", "--storage-initialization-timeout=8s"}); err != nil {
		t.Fatal(err)
	}
	config := &genericapiserver.Config{ExternalAddress: "here"}
	o.applyRun(config)
	if config.MinRequestTimeout != 7 || config.StorageInitializationTimeout != 8*time.Second || config.ExternalAddress != "here" {
		t.Errorf("got %+v", config)
	}
}
