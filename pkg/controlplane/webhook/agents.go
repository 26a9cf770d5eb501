package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// What an agent may write, in bytes as JSON. What is larger already may stay as large as it is.
const (
	// maxAgentStatus is the longest status of a Work: the longest status of an object that agents reflect, and room for the rest.
	maxAgentStatus = 768 << 10
	// maxAgentSpec is the longest spec of a Work, which has one EndpointSlice of at most 1,000 endpoints.
	maxAgentSpec = 256 << 10
	// maxAgentObject is the largest Work to which an agent adds more than minAgentPart: etcd stores 1.5 MiB, so that what others
	// write fits.
	maxAgentObject, minAgentPart = 1280 << 10, 64 << 10
	// maxAgentEvent is the largest event.
	maxAgentEvent = 8 << 10
	// maxAgentEntries limits each list and map of a Work.
	maxAgentEntries = 1024
	// agentEvents is how many events an agent may write in a second, and agentEventBurst at once. They are stored for an hour.
	agentEvents, agentEventBurst = 1, 500
)

// agentLimits refuses Works and events of agents that are too large or too many. The API server calls it for the requests of
// agents only.
type agentLimits struct {
	mu     sync.Mutex
	events map[string]*rate.Limiter
}

// Handle implements admission.Handler.
func (l *agentLimits) Handle(_ context.Context, req admission.Request) admission.Response {
	user := req.UserInfo.Username
	switch {
	case !slices.Contains(req.UserInfo.Groups, names.AgentGroup) && !strings.HasPrefix(user, names.AgentUser("")):
		return admission.Allowed("")
	case req.Resource.Resource == "works":
		return verdict(checkAgentWork(&req))
	case len(req.Object.Raw) > maxAgentEvent:
		return admission.Denied(fmt.Sprintf("an agent may write at most %d bytes into an event, not %d", maxAgentEvent, len(req.Object.Raw)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events == nil {
		l.events = map[string]*rate.Limiter{}
	}
	limiter := l.events[user]
	if limiter == nil {
		limiter = rate.NewLimiter(agentEvents, agentEventBurst)
		l.events[user] = limiter
	}
	if !limiter.Allow() {
		return admission.Denied(fmt.Sprintf("an agent may write %d event a second, and %d at once", agentEvents, agentEventBurst))
	}
	return admission.Allowed("")
}

// agentWork is what is limited of a Work.
type agentWork struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     json.RawMessage   `json:"spec"`
	Status   json.RawMessage   `json:"status"`
}

// checkAgentWork returns why an agent may not write a Work or its status, or nil.
func checkAgentWork(req *admission.Request) error {
	var now, before agentWork
	if err := json.Unmarshal(req.Object.Raw, &now); err != nil {
		return fmt.Errorf("decoding Work: %w", err)
	}
	if len(req.OldObject.Raw) > 0 {
		if err := json.Unmarshal(req.OldObject.Raw, &before); err != nil {
			return fmt.Errorf("decoding Work: %w", err)
		}
	}
	field, have, had, limit := "spec", len(now.Spec), len(before.Spec), maxAgentSpec
	if req.SubResource == "status" {
		field, have, had, limit = "status", len(now.Status), len(before.Status), maxAgentStatus
	}
	limit = min(limit, max(minAgentPart, maxAgentObject-(len(req.Object.Raw)-have)))
	if have > limit && have > had {
		return fmt.Errorf("an agent may write at most %d bytes into the %s of this Work, not %d", limit, field, have)
	}
	lists, old := now.lists(), before.lists()
	for name, count := range lists {
		if count > maxAgentEntries && count > old[name] {
			return fmt.Errorf("an agent may write at most %d entries into %s of a Work, not %d", maxAgentEntries, name, count)
		}
	}
	return nil
}

// lists returns how many entries the lists and maps have that an agent writes.
func (w *agentWork) lists() map[string]int {
	var status struct {
		Conditions       []json.RawMessage `json:"conditions"`
		ManifestStatuses []json.RawMessage `json:"manifestStatuses"`
	}
	_ = json.Unmarshal(w.Status, &status) // the API server has validated its schema
	return map[string]int{
		"metadata.labels": len(w.Metadata.Labels), "metadata.annotations": len(w.Metadata.Annotations),
		"status.conditions": len(status.Conditions), "status.manifestStatuses": len(status.ManifestStatuses),
	}
}
