package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// maxAgentWork is the longest spec, and the longest status, that an agent may write
// into a Work, in bytes: the longest status of an object that agents reflect, and
// room for the rest. What is longer already may stay as long as it is.
const maxAgentWork = 768 << 10

// limitAgentWork refuses Works of agents that are too large. The API server calls it
// for the requests of agents only.
func limitAgentWork(_ context.Context, req admission.Request) admission.Response {
	if !slices.Contains(req.UserInfo.Groups, names.AgentGroup) && !strings.HasPrefix(req.UserInfo.Username, names.AgentUser("")) {
		return admission.Allowed("")
	}
	type parts struct {
		Spec   json.RawMessage `json:"spec"`
		Status json.RawMessage `json:"status"`
	}
	var now, before parts
	if err := json.Unmarshal(req.Object.Raw, &now); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding Work: %w", err))
	}
	if len(req.OldObject.Raw) > 0 {
		if err := json.Unmarshal(req.OldObject.Raw, &before); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding Work: %w", err))
		}
	}
	field, have, had := "spec", len(now.Spec), len(before.Spec)
	if req.SubResource == "status" {
		field, have, had = "status", len(now.Status), len(before.Status)
	}
	if have > maxAgentWork && have > had {
		return admission.Denied(fmt.Sprintf("an agent may write at most %d bytes into the %s of a Work, not %d", maxAgentWork, field, have))
	}
	return admission.Allowed("")
}
