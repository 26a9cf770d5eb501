package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// enforcer keeps the use of FederatedResourceQuotas within their limits.
type enforcer struct {
	cached, live client.Reader
	status       client.SubResourceWriter
}

func (e *enforcer) admit(_ context.Context, _ *admission.Request, _ schema.GroupVersionKind) admission.Response {
	return admission.Allowed("")
}
