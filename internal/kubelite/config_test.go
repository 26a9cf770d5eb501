package kubelite

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func validConfig(t *testing.T, change func(*Config)) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Now, cfg.Stderr = t.TempDir(), time.Now, t.Output()
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func TestComplete_Errors(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   string // part of the error; empty for none
	}{
		{"the defaults are fine", nil, ""},
		{"a member with nodes is fine", func(c *Config) { c.Profile, c.Nodes = Member, 3 }, ""},
		{"all addresses are fine", func(c *Config) { c.BindAddress = "0.0.0.0" }, ""},
		{"no data directory", func(c *Config) { c.DataDir = "" }, "--data-dir is required"},
		{"unknown profile", func(c *Config) { c.Profile = "worker" }, `--profile "worker": use control-plane or member`},
		{"nodes in a control plane", func(c *Config) { c.Nodes = 1 }, "--nodes needs --profile member"},
		{"negative nodes", func(c *Config) { c.Profile, c.Nodes = Member, -1 }, "--nodes -1 is negative"},
		{"a name in place of an address", func(c *Config) { c.BindAddress = "localhost" }, `--bind-address "localhost" is not an IP address`},
		{"port too high", func(c *Config) { c.SecurePort = 70000 }, "--secure-port 70000 is not a port"},
		{"service range without mask", func(c *Config) { c.ServiceClusterIPRange = "10.0.0.0" }, "--service-cluster-ip-range"},
		{"pod range without mask", func(c *Config) { c.ClusterCIDR = "pods" }, "--cluster-cidr"},
		{"memory that is no quantity", func(c *Config) { c.NodeMemory = "much" }, `--node-memory "much"`},
		{"processors that are no quantity", func(c *Config) { c.NodeCPU = "-1" }, `--node-cpu "-1"`},
		{"memory limit that is no quantity", func(c *Config) { c.MemoryLimit = "1Zb" }, `--memory-limit "1Zb"`},
		{"name that no node could have", func(c *Config) { c.Name = "Member_1" }, `--name "Member_1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := validConfig(t, tt.change).complete()
			switch {
			case tt.want == "" && err != nil:
				t.Fatalf("got error %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Fatalf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestComplete_Names(t *testing.T) {
	tests := []struct {
		name              string
		change            func(*Config)
		wantName, wantCtx string
	}{
		{"the profile names the cluster", nil, "control-plane", "control-plane"},
		{"the cluster names the context", func(c *Config) { c.Name = "m1" }, "m1", "m1"},
		{"a context name counts", func(c *Config) { c.Name, c.ContextName = "m1", "ctx" }, "m1", "ctx"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := validConfig(t, tt.change).complete()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.wantName, tt.wantCtx}, []string{cfg.Name, cfg.ContextName}); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMain_Usage(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no data directory", nil, "--data-dir is required"},
		{"unknown flag", []string{"--nope"}, "unknown flag: --nope"},
		{"an argument", []string{"up"}, `unknown command "up"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errOut strings.Builder
			if code := Main(t.Context(), tt.args, &out, &errOut, time.Now); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if !strings.HasPrefix(errOut.String(), "error: ") || !strings.Contains(errOut.String(), tt.want) {
				t.Errorf("stderr %q, want an error with %q", errOut.String(), tt.want)
			}
			if out.Len() > 0 {
				t.Errorf("stdout %q, want nothing", out.String())
			}
		})
	}
}
