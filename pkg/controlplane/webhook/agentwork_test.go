package webhook

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestLimitAgentWork(t *testing.T) {
	work := func(spec, status int) string {
		return `{"spec":{"x":"` + strings.Repeat("x", spec) + `"},"status":{"x":"` + strings.Repeat("x", status) + `"}}`
	}
	agent := authenticationv1.UserInfo{Username: "system:karmada:agent:m1", Groups: []string{"system:karmada:agents"}}
	const large = 900 << 10
	for name, tc := range map[string]struct {
		user     authenticationv1.UserInfo
		sub      string
		now, old string
		want     string // part of the refusal
	}{
		"a small Work":                      {agent, "", work(10, 0), "", ""},
		"a large Work":                      {agent, "", work(large, 0), "", "at most 786432 bytes into the spec of a Work, not 921608"},
		"a large Work of the control plane": {agent, "", work(large, 0), work(large, 0), ""},
		"a large Work that grows":           {agent, "", work(large+1, 0), work(large, 0), "into the spec"},
		"a large status":                    {agent, "status", work(0, large), work(0, 0), "into the status of a Work"},
		"a large status that shrinks":       {agent, "status", work(0, large), work(0, large+1), ""},
		"a small status of a large Work":    {agent, "status", work(large, 10), work(large, 0), ""},
		"an administrator":                  {authenticationv1.UserInfo{Username: "admin"}, "status", work(large, large), "", ""},
		"an agent without its group":        {authenticationv1.UserInfo{Username: "system:karmada:agent:m1"}, "", work(large, 0), "", "into the spec"},
		"no JSON":                           {agent, "", "{", "", "decoding Work"},
	} {
		t.Run(name, func(t *testing.T) {
			got := limitAgentWork(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UserInfo: tc.user, SubResource: tc.sub, Object: runtime.RawExtension{Raw: []byte(tc.now)}, OldObject: runtime.RawExtension{Raw: []byte(tc.old)},
			}})
			if got.Allowed != (tc.want == "") || tc.want != "" && !strings.Contains(got.Result.Message, tc.want) {
				t.Errorf("got %v %v, want %q", got.Allowed, got.Result, tc.want)
			}
		})
	}
}
