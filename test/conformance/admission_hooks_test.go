package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

const baseURL = "https://webhook"

// hook is a registered webhook.
type hook struct {
	name, path string
	rules      []admissionregistrationv1.RuleWithOperations
}

// hooks calls webhooks as they are registered.
type hooks struct {
	mutating, validating []hook
	handlers             map[string]http.Handler
}

func newHooks(handlers map[string]http.Handler) *hooks {
	h := &hooks{handlers: handlers}
	for _, w := range components.MutatingWebhooks(baseURL, nil).Webhooks {
		h.mutating = append(h.mutating, hook{w.Name, strings.TrimPrefix(*w.ClientConfig.URL, baseURL), w.Rules})
	}
	for _, w := range components.ValidatingWebhooks(baseURL, nil).Webhooks {
		h.validating = append(h.validating, hook{w.Name, strings.TrimPrefix(*w.ClientConfig.URL, baseURL), w.Rules})
	}
	return h
}

// creates reports whether a webhook is called for new objects of a resource.
func (h *hook) creates(req admissionRequest) bool {
	return slices.ContainsFunc(h.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.Operations, admissionregistrationv1.Create) &&
			slices.Contains(r.APIGroups, req.resource.Group) && slices.Contains(r.Resources, req.resource.Resource)
	})
}

// mutate calls the mutating webhooks for an object.
func (h *hooks) mutate(ctx context.Context, req admissionRequest, k *servedKind, obj *unstructured.Unstructured) error {
	for i := range h.mutating {
		if !h.mutating[i].creates(req) {
			continue
		}
		resp, raw, err := h.ask(ctx, &h.mutating[i], req, k, obj)
		if err != nil {
			return err
		}
		if len(resp.Patch) == 0 {
			continue
		}
		patch, err := jsonpatch.DecodePatch(resp.Patch)
		if err != nil {
			return fmt.Errorf("decoding the patch of %s: %w", h.mutating[i].name, err)
		}
		changed, err := patch.Apply(raw)
		if err != nil {
			return fmt.Errorf("applying the patch of %s: %w", h.mutating[i].name, err)
		}
		obj.Object = nil
		if err := utiljson.Unmarshal(changed, &obj.Object); err != nil {
			return fmt.Errorf("decoding the object of %s: %w", h.mutating[i].name, err)
		}
		k.reshape(obj.Object)
	}
	return nil
}

// validate calls the validating webhooks for an object.
func (h *hooks) validate(ctx context.Context, req admissionRequest, k *servedKind, obj *unstructured.Unstructured) error {
	for i := range h.validating {
		if h.validating[i].creates(req) {
			if _, _, err := h.ask(ctx, &h.validating[i], req, k, obj); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask calls a webhook. Its refusal is an API error.
func (h *hooks) ask(ctx context.Context, w *hook, req admissionRequest, k *servedKind, obj *unstructured.Unstructured) (*admissionv1.AdmissionResponse, []byte, error) {
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the object: %w", err)
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "review", Operation: admissionv1.Create, Name: obj.GetName(), Namespace: req.namespace,
			Kind:     metav1.GroupVersionKind(k.gvk),
			Resource: metav1.GroupVersionResource(req.resource),
			Object:   runtime.RawExtension{Raw: raw},
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the review: %w", err)
	}
	handler, ok := h.handlers[w.path]
	if !ok {
		return nil, nil, fmt.Errorf("nothing serves %s of %s", w.path, w.name)
	}
	httpReq := httptest.NewRequestWithContext(ctx, http.MethodPost, w.path, bytes.NewReader(body))
	httpReq.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httpReq)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		return nil, nil, fmt.Errorf("%s answered %d %s", w.name, recorder.Code, recorder.Body)
	}
	if resp := answer.Response; !resp.Allowed {
		status := *resp.Result
		status.Message = fmt.Sprintf("admission webhook %q denied the request: %s", w.name, status.Message)
		return nil, nil, &apierrors.StatusError{ErrStatus: status}
	}
	return answer.Response, raw, nil
}
