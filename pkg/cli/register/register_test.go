package register

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

func TestRoute(t *testing.T) {
	const local = "https://127.0.0.1:6443"
	for name, tc := range map[string]struct{ host, plane, given, want, say, err string }{
		"an address of its own":              {host: "https://10.0.0.3:6443", plane: "10.0.0.1:32443", want: "https://10.0.0.3:6443"},
		"this machine, as the control plane": {host: local, plane: "127.0.0.1:5443", want: local},
		"this machine, control plane elsewhere": {
			host: local, plane: "10.0.0.1:32443", want: local, say: "--cluster-api-endpoint https://HOST:PORT",
		},
		"the user's":         {host: local, plane: "10.0.0.1:32443", given: "https://10.0.0.9:6443", want: "https://10.0.0.9:6443"},
		"the user's mistake": {host: local, plane: "10.0.0.1:32443", given: "10.0.0.9", err: "--cluster-api-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			f := &flags{endpoint: tc.given, discovery: member.Discovery{Endpoint: tc.plane}, agent: member.AgentSpec{Cluster: "m3"}}
			err := f.route(t.Context(), &env.Env{IOStreams: genericiooptions.IOStreams{ErrOut: &said}}, &rest.Config{Host: tc.host})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || f.agent.Endpoint != tc.want || !strings.Contains(said.String(), tc.say) || tc.say == "" && said.Len() > 0 {
				t.Errorf("got %q, %v, printed %q", f.agent.Endpoint, err, said.String())
			}
		})
	}
}
