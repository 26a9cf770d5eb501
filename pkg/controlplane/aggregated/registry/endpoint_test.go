package registry

import (
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestCheckAccess(t *testing.T) {
	type spec = clusterv1alpha1.ClusterSpec
	set := spec{APIEndpoint: "https://10.0.0.1:6443", ProxyURL: "http://proxy:3128", ProxyHeader: map[string]string{"a": "b"}}
	for name, tc := range map[string]struct {
		old, updated spec
		loopback     bool
		want         string // part of the error
	}{
		"nothing is set":            {spec{}, spec{}, false, ""},
		"first values":              {spec{}, set, false, ""},
		"what stays":                {set, set, false, ""},
		"another endpoint":          {set, spec{APIEndpoint: "https://10.0.0.2:6443", ProxyURL: set.ProxyURL, ProxyHeader: set.ProxyHeader}, false, "once they are set"},
		"another proxy":             {set, spec{APIEndpoint: set.APIEndpoint, ProxyURL: "http://x", ProxyHeader: set.ProxyHeader}, false, "once they are set"},
		"another header":            {set, spec{APIEndpoint: set.APIEndpoint, ProxyURL: set.ProxyURL}, false, "once they are set"},
		"a proxy for later":         {spec{APIEndpoint: set.APIEndpoint}, set, false, "once they are set"},
		"no endpoint any more":      {set, spec{}, false, "once they are set"},
		"plain http":                {spec{}, spec{APIEndpoint: "http://10.0.0.1"}, false, "begins with https://"},
		"a socks5 proxy":            {spec{}, spec{ProxyURL: "socks5://proxy:1080"}, false, ""},
		"another proxy's scheme":    {spec{}, spec{ProxyURL: "file:///etc/passwd"}, false, "a URL only"},
		"a scheme in capitals":      {spec{}, spec{APIEndpoint: "HTTPS://10.0.0.1"}, false, ""},
		"a loopback endpoint":       {spec{}, spec{APIEndpoint: "https://127.0.0.1:2379"}, false, "--allow-loopback-endpoints"},
		"a loopback proxy":          {spec{}, spec{ProxyURL: "http://[::1]:80"}, false, "--allow-loopback-endpoints"},
		"loopback where allowed":    {spec{}, spec{APIEndpoint: "https://127.0.0.1:2379", ProxyURL: "http://localhost"}, true, ""},
		"plain http where allowed":  {spec{}, spec{APIEndpoint: "http://127.0.0.1"}, true, "begins with https://"},
		"a header that breaks out":  {spec{}, spec{ProxyHeader: map[string]string{"a": "b\r\nHost: c"}}, false, "valid HTTP headers"},
		"a header's name breaks":    {spec{}, spec{ProxyHeader: map[string]string{"a: b\r\nc": "d"}}, false, "valid HTTP headers"},
		"an older loopback remains": {spec{APIEndpoint: "https://127.0.0.1:1"}, spec{APIEndpoint: "https://127.0.0.1:1"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkAccess(&tc.updated, &tc.old, tc.loopback)
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "an agent may")) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestOwnMachine(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "0.0.0.0": true, "0.1.2.3": true, "::1": true, "::": true, "169.254.169.254": true, "fe80::1": true,
		"fe80::1%eth0": true, "::ffff:127.0.0.1": true, "::ffff:169.254.1.1": true, "::127.0.0.1": true, "64:ff9b::7f00:1": true, "2002:7f00:1::": true,
		"localhost": true, "LOCALHOST.": true, "a.localhost": true, "localhost.localdomain": true,
		"127.1": true, "2130706433": true, "0x7f.1": true, "0x7f000001": true, "0177.0.0.1": true, "1:2": true,
		"10.0.0.1": false, "192.168.1.1": false, "8.8.8.8": false, "2001:db8::1": false, "fd00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::808:808": false,
		"member1.example.com": false, "member-1": false, "4you.example": false, "host.4you": false, "localhost.example.com": false,
	} {
		if got := ownMachine(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}

func FuzzOwnMachine(f *testing.F) {
	f.Add("127.0.0.1")
	f.Fuzz(func(t *testing.T, host string) {
		build.Bounded(t, time.Minute, 16<<20+uint64(1024*len(host)), func() {
			if ownMachine(host) != ownMachine(strings.ToUpper(host)) && !strings.ContainsAny(host, "%ſK") {
				t.Errorf("%q depends on its case", host)
			}
		})
	})
}
