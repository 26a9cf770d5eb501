package aggregated

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	o := NewOptions()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, o.Validate()
}

func TestOptions_Flags(t *testing.T) {
	const etcd = "--etcd-servers=https://127.0.0.1:2379"
	cases := []struct {
		name string
		args []string
		err  string
	}{
		{name: "what installers pass", args: []string{
			etcd, "--etcd-cafile=a", "--etcd-certfile=b", "--etcd-keyfile=c", "--tls-cert-file=d", "--tls-private-key-file=e",
			"--authentication-kubeconfig=k", "--authorization-kubeconfig=k", "--tls-min-version=VersionTLS13", "--audit-log-path=-",
			"--audit-log-maxage=0", "--audit-log-maxbackup=0", "--bind-address=10.0.0.1", "--etcd-prefix=/x", "--secure-port=443",
		}},
		{name: "no etcd", err: "--etcd-servers must be specified"},
		{name: "gates of both kinds", args: []string{etcd, "--feature-gates=CustomizedClusterResourceModeling=false,APIServerIdentity=false,MultiClusterService=true"}},
		{name: "an unknown gate", args: []string{etcd, "--feature-gates=Nonsense=true"}, err: "Nonsense"},
		{name: "a bad value of a gate", args: []string{etcd, "--feature-gates=APIServerTracing=perhaps"}, err: "perhaps"},
		{name: "a bad version of TLS", args: []string{etcd, "--member-tls-min-version=9"}, err: "--member-tls-min-version"},
		{name: "no time for members", args: []string{etcd, "--member-timeout=0s"}, err: "--member-timeout must be positive"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parse(t, tc.args...)
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want something about %q", err, tc.err)
			}
		})
	}
}

func TestOptions_Gates(t *testing.T) {
	o, err := parse(t, "--etcd-servers=x", "--feature-gates=CustomizedClusterResourceModeling=false")
	if err != nil {
		t.Fatal(err)
	}
	if o.resourceModeling() {
		t.Error("the gate of the control plane was not set")
	}
	if !NewOptions().resourceModeling() {
		t.Error("resource modeling is off by default")
	}
}

func TestOptions_Defaults(t *testing.T) {
	o := NewOptions()
	if o.SecureServing.BindPort != 443 || o.Etcd.StorageConfig.Prefix != "/registry" {
		t.Errorf("port %d, prefix %s", o.SecureServing.BindPort, o.Etcd.StorageConfig.Prefix)
	}
}
