package kubelite

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

func flagValue(args []string, name string) (value string, ok bool) {
	for _, arg := range args {
		if v, found := strings.CutPrefix(arg, "--"+name+"="); found {
			return v, true
		}
	}
	return "", false
}

func TestControllerManagerArgs_Controllers(t *testing.T) {
	tests := []struct {
		profile Profile
		want    string
	}{
		{ControlPlane, "garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,clusterrole-aggregation"},
		{Member, "*,-namespace-controller,-certificatesigningrequest-signing-controller,-persistentvolume-attach-detach-controller"},
	}
	for _, tt := range tests {
		t.Run(string(tt.profile), func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Profile = tt.profile
			got, _ := flagValue(controllerManagerArgs(cfg, certificates{}, "kc"), "controllers")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPIServerArgs(t *testing.T) {
	certs := certificates{dir: pki.Dir("/pki")}
	tests := []struct {
		name   string
		change func(*Config)
		etcd   ExternalEtcd
		flag   string
		want   string // empty: the flag is absent
	}{
		{"loopback is advertised as it is", nil, ExternalEtcd{}, "advertise-address", "127.0.0.1"},
		{"all addresses are not advertised", func(c *Config) { c.BindAddress = "0.0.0.0" }, ExternalEtcd{}, "advertise-address", "127.0.0.1"},
		{"a control plane runs no pods, so needs no service accounts for them", nil, ExternalEtcd{}, "disable-admission-plugins", "StorageObjectInUseProtection,ServiceAccount"},
		{"a member has all default plugins", func(c *Config) { c.Profile = Member }, ExternalEtcd{}, "disable-admission-plugins", ""},
		{"several etcd servers", nil, ExternalEtcd{Servers: []string{"https://a:2379", "https://b:2379"}}, "etcd-servers", "https://a:2379,https://b:2379"},
		{"etcd without certificates", nil, ExternalEtcd{}, "etcd-cafile", ""},
		{"etcd with certificates", nil, ExternalEtcd{CAFile: "/ca"}, "etcd-cafile", "/ca"},
		{"the aggregator's identity", nil, ExternalEtcd{}, "proxy-client-cert-file", "/pki/front-proxy-client.crt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			if tt.change != nil {
				tt.change(&cfg)
			}
			got, ok := flagValue(apiServerArgs(cfg, certs, tt.etcd, 1), tt.flag)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("--%s is %q, %t; want %q", tt.flag, got, ok, tt.want)
			}
		})
	}
}

func TestServerHosts(t *testing.T) {
	cfg := DefaultConfig()
	cfg.BindAddress, cfg.CertSANs = "10.1.2.3", []string{"kubelite.example"}
	hosts, err := serverHosts(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"localhost", "127.0.0.1", "10.96.0.1", "10.1.2.3", "kubernetes.default.svc", "kubelite.example"} {
		if !slices.Contains(hosts, want) {
			t.Errorf("%v lacks %s", hosts, want)
		}
	}
}

func TestDesiredNodes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Name, cfg.Nodes = "m1", 2
	nodes, err := desiredNodes(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, node := range nodes {
		got = append(got, strings.Join([]string{node.Name, node.Status.Allocatable.Cpu().String(), node.Status.Allocatable.Memory().String(), node.Status.Allocatable.Pods().String()}, " "))
	}
	if diff := cmp.Diff([]string{"m1-node-0 16 128Gi 500", "m1-node-1 16 128Gi 500"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}
