package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// protect refuses to delete objects whose label forbids it.
func protect(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Delete {
		return admission.Allowed("")
	}
	raw := req.OldObject.Raw
	if len(raw) == 0 {
		return admission.Errored(http.StatusBadRequest, errors.New("there is no content to decode"))
	}
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the object: %w", err))
	}
	if object.Metadata.Labels[workv1alpha2.DeletionProtectionLabel] == workv1alpha2.DeletionProtectionAlways {
		return admission.Denied("This resource is protected, please make sure to remove the label: " + workv1alpha2.DeletionProtectionLabel)
	}
	return admission.Allowed("")
}
