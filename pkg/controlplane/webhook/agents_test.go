package webhook

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func agentRequest(user authenticationv1.UserInfo, resource, sub, now, old string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UserInfo: user, Resource: metav1.GroupVersionResource{Resource: resource}, SubResource: sub,
		Object: runtime.RawExtension{Raw: []byte(now)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}}
}

func TestAgentLimits_Works(t *testing.T) {
	work := func(spec, status int) string {
		return `{"spec":{"x":"` + strings.Repeat("x", spec) + `"},"status":{"x":"` + strings.Repeat("x", status) + `"}}`
	}
	list := func(field, entry string, n int) string {
		return strings.Replace(`{"metadata":{"labels":{},"annotations":{}},"spec":{},"status":{"conditions":[],"manifestStatuses":[]}}`,
			`"`+field+`":`+entry[:1], `"`+field+`":`+entry[:1]+strings.TrimSuffix(strings.Repeat(entry[1:len(entry)-1]+",", n), ","), 1)
	}
	entries := func(n int) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, `,"k%d":""`, i)
		}
		return out.String()[1:]
	}
	agent := authenticationv1.UserInfo{Username: "system:karmada:agent:m1", Groups: []string{"system:karmada:agents"}}
	const large = 900 << 10
	for name, tc := range map[string]struct {
		user     authenticationv1.UserInfo
		sub      string
		now, old string
		want     string // part of the refusal
	}{
		"a small Work":                         {agent, "", work(10, 0), "", ""},
		"a large Work":                         {agent, "", work(300<<10, 0), "", "at most 262144 bytes into the spec of this Work, not 307208"},
		"a large Work of the control plane":    {agent, "", work(large, 0), work(large, 0), ""},
		"a large Work that grows":              {agent, "", work(large+1, 0), work(large, 0), "into the spec"},
		"a large status":                       {agent, "status", work(0, large), work(0, 0), "at most 786432 bytes into the status of this Work"},
		"a large status that shrinks":          {agent, "status", work(0, large), work(0, large+1), ""},
		"a small status of a large Work":       {agent, "status", work(1400<<10, 60<<10), work(1400<<10, 0), ""},
		"a Work that leaves no room to others": {agent, "status", work(700<<10, 700<<10), work(700<<10, 0), "into the status"},
		"many conditions":                      {agent, "status", list("conditions", "[{}]", 2000), "", "at most 1024 entries into status.conditions"},
		"many statuses":                        {agent, "status", list("manifestStatuses", "[{}]", 2000), "", "at most 1024 entries into status.manifestStatuses"},
		"many annotations":                     {agent, "", `{"metadata":{"annotations":{` + entries(2000) + `}}}`, "", "at most 1024 entries into metadata.annotations"},
		"many labels":                          {agent, "", `{"metadata":{"labels":{` + entries(2000) + `}}}`, "", "at most 1024 entries into metadata.labels"},
		"many labels from before":              {agent, "", `{"metadata":{"labels":{` + entries(2000) + `}}}`, `{"metadata":{"labels":{` + entries(2000) + `}}}`, ""},
		"an administrator":                     {authenticationv1.UserInfo{Username: "admin"}, "status", work(large, large), "", ""},
		"an agent without its group":           {authenticationv1.UserInfo{Username: "system:karmada:agent:m1"}, "", work(large, 0), "", "into the spec"},
		"no JSON":                              {agent, "", "{", "", "decoding Work"},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&agentLimits{}).Handle(t.Context(), agentRequest(tc.user, "works", tc.sub, tc.now, tc.old))
			if got.Allowed != (tc.want == "") || tc.want != "" && !strings.Contains(got.Result.Message, tc.want) {
				t.Errorf("got %v %v, want %q", got.Allowed, got.Result, tc.want)
			}
		})
	}
}

func TestAgentLimits_Events(t *testing.T) {
	agent := func(name string) authenticationv1.UserInfo {
		return authenticationv1.UserInfo{Username: "system:karmada:agent:" + name}
	}
	limits := &agentLimits{}
	write := func(user authenticationv1.UserInfo, size int) bool {
		return limits.Handle(t.Context(), agentRequest(user, "events", "", strings.Repeat("x", size), "")).Allowed
	}
	if write(agent("m1"), maxAgentEvent+1) || !write(authenticationv1.UserInfo{Username: "admin"}, maxAgentEvent+1) {
		t.Error("the size of an event of an agent is not limited, or that of others is")
	}
	admitted := 0
	for range 2 * agentEventBurst {
		if write(agent("m1"), maxAgentEvent) {
			admitted++
		}
	}
	if admitted < agentEventBurst || admitted > agentEventBurst+100 {
		t.Errorf("an agent wrote %d events at once", admitted)
	}
	if !write(agent("m2"), 1) {
		t.Error("another agent waits for it")
	}
}
