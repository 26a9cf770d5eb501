package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/karmada-toolkit/karmada/internal/limit"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// defaultTimeout is the limit of a call whose webhook sets none.
const defaultTimeout = 10 * time.Second

// hook is one webhook.
type hook struct {
	layer    *Layer
	id       string
	rules    coverage
	versions []string
	endpoint *endpoint
	timeout  time.Duration
	query    url.Values
}

func newHook(l *Layer, id string, w *configv1alpha1.ResourceInterpreterWebhook, e *endpoint) *hook {
	h := &hook{
		layer: l, id: id, endpoint: e, timeout: defaultTimeout,
		rules: w.Rules, versions: w.InterpreterContextVersions,
	}
	if s := w.TimeoutSeconds; s != nil && *s > 0 {
		h.timeout = time.Duration(*s) * time.Second
		h.query = url.Values{"timeout": {strconv.Itoa(int(*s)) + "s"}}
	}
	return h
}

// failure is why a call failed, with the text of the contract.
type failure struct {
	hook  string
	cause error
}

// Error returns the text.
func (f *failure) Error() string { return f.Status().Message }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.cause }

// Status makes it an internal error of the API.
func (f *failure) Status() metav1.Status {
	return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", f.hook, f.cause)).Status()
}

// call calls the webhook about an object. The request holds what the operation needs
// beside it.
func (h *hook) call(op configv1alpha1.InterpreterOperation, obj *unstructured.Unstructured, request *configv1alpha1.ResourceInterpreterRequest) (*answer, error) {
	began := h.layer.config.Clock.Now()
	a, err := h.send(op, obj, request)
	if err != nil {
		err = &failure{hook: h.id, cause: err}
	}
	if observe := h.layer.config.Observe; observe != nil {
		observe(Call{Webhook: h.id, Operation: op, Duration: h.layer.config.Clock.Since(began), Err: err})
	}
	return a, err
}

func (h *hook) send(op configv1alpha1.InterpreterOperation, obj *unstructured.Unstructured, request *configv1alpha1.ResourceInterpreterRequest) (*answer, error) {
	if !slices.Contains(h.versions, configv1alpha1.GroupVersion.Version) {
		return nil, errors.New("webhook does not accept known ResourceInterpreterContext versions (v1alpha1)")
	}
	raw, err := obj.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	gvk := obj.GroupVersionKind()
	request.UID = uuid.NewUUID()
	request.Kind = metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	request.Namespace, request.Name = obj.GetNamespace(), obj.GetName()
	request.Operation = op
	request.Object = runtime.RawExtension{Raw: raw}
	if request.DesiredReplicas == nil {
		request.DesiredReplicas = new(int32)
	}
	ctx, cancel := context.WithTimeout(h.layer.ctx, h.timeout)
	defer cancel()
	response, err := h.endpoint.call(ctx, op, h.query, request)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	a, err := verify(op, request.UID, response)
	if err != nil {
		return nil, err
	}
	a.object = obj
	return a, nil
}

// answer is a verified response.
type answer struct {
	*configv1alpha1.ResourceInterpreterResponse
	object *unstructured.Unstructured
}

// verify checks that a response answers the request.
func verify(op configv1alpha1.InterpreterOperation, uid types.UID, review *configv1alpha1.ResourceInterpreterContext) (*answer, error) {
	r := review.Response
	if err := checkResponse(op, uid, r); err != nil {
		return nil, fmt.Errorf("received invalid webhook response: %w", err)
	}
	if !r.Successful {
		return nil, fmt.Errorf("webhook call failed, get status code: %d, msg: %s", r.Status.Code, r.Status.Message)
	}
	return &answer{ResourceInterpreterResponse: r}, nil
}

func checkResponse(op configv1alpha1.InterpreterOperation, uid types.UID, r *configv1alpha1.ResourceInterpreterResponse) error {
	switch {
	case r == nil:
		return errors.New("webhook response was absent")
	case r.UID != uid:
		return fmt.Errorf("expected response.uid %q, got %q", uid, r.UID)
	case !r.Successful && r.Status == nil:
		return errors.New("webhook require response.status when response.successful is false")
	case !r.Successful:
		return nil
	}
	switch op {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		if r.Replicas == nil {
			return errors.New("webhook returned nil response.replicas")
		}
	case configv1alpha1.InterpreterOperationInterpretStatus:
		if r.RawStatus == nil {
			return errors.New("webhook returned nill response.rawStatus")
		}
	case configv1alpha1.InterpreterOperationInterpretHealth:
		if r.Healthy == nil {
			return errors.New("webhook returned nil response.healthy")
		}
	case configv1alpha1.InterpreterOperationReviseReplica, configv1alpha1.InterpreterOperationRetain,
		configv1alpha1.InterpreterOperationAggregateStatus:
		return checkPatch(r)
	}
	return nil
}

func checkPatch(r *configv1alpha1.ResourceInterpreterResponse) error {
	switch {
	case len(r.Patch) == 0 && r.PatchType == nil:
		return nil
	case r.PatchType == nil:
		return errors.New("webhook returned nil response.patchType")
	case len(r.Patch) == 0:
		return errors.New("webhook returned empty response.patch")
	case *r.PatchType != configv1alpha1.PatchTypeJSONPatch:
		return fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	return nil
}

// patched returns the object with the patch of the answer, or the object itself
// when there is none.
func (h *hook) patched(a *answer) (*unstructured.Unstructured, error) {
	if len(a.Patch) == 0 {
		return a.object, nil
	}
	out, err := applyPatch(a.object, a.Patch)
	if err != nil {
		return nil, &failure{hook: h.id, cause: fmt.Errorf("received invalid webhook response: %w", err)}
	}
	return out, nil
}

// maxOperations is the number of operations of a patch that are applied.
const maxOperations = 4096

// applyPatch returns a patched copy. Patches have limits of bytes, operations and depth, and so has the result of depth.
func applyPatch(obj *unstructured.Unstructured, text []byte) (*unstructured.Unstructured, error) {
	if err := limit.CheckJSON(text); err != nil {
		return nil, fmt.Errorf("decoding response.patch: %w", err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, fmt.Errorf("decoding response.patch: %w", err)
	}
	if len(patch) > maxOperations {
		return nil, fmt.Errorf("response.patch has %d operations, more than %d", len(patch), maxOperations)
	}
	before, err := obj.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxResponse
	after, err := patch.ApplyWithOptions(before, options)
	if err != nil {
		return nil, fmt.Errorf("applying response.patch: %w", err)
	}
	if err := limit.CheckJSON(after); err != nil {
		return nil, fmt.Errorf("decoding the object after response.patch: %w", err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(after); err != nil {
		return nil, fmt.Errorf("decoding the object after response.patch: %w", err)
	}
	return out, nil
}

func (h *hook) getReplicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	a, err := h.call(configv1alpha1.InterpreterOperationInterpretReplica, obj, &configv1alpha1.ResourceInterpreterRequest{})
	if err != nil {
		return 0, nil, err
	}
	return *a.Replicas, a.ReplicaRequirements, nil
}

func (h *hook) getComponents(obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	a, err := h.call(configv1alpha1.InterpreterOperationInterpretComponent, obj, &configv1alpha1.ResourceInterpreterRequest{})
	if err != nil {
		return nil, err
	}
	return a.Components, nil
}

// reviseReplica returns an object that the caller owns.
func (h *hook) reviseReplica(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
	request := &configv1alpha1.ResourceInterpreterRequest{DesiredReplicas: new(int32(replicas))}
	a, err := h.call(configv1alpha1.InterpreterOperationReviseReplica, obj.DeepCopy(), request)
	if err != nil {
		return nil, err
	}
	return h.patched(a)
}

// retain returns an object that the caller owns.
func (h *hook) retain(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := observed.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the observed object: %w", err)
	}
	request := &configv1alpha1.ResourceInterpreterRequest{ObservedObject: &runtime.RawExtension{Raw: raw}}
	a, err := h.call(configv1alpha1.InterpreterOperationRetain, desired.DeepCopy(), request)
	if err != nil {
		return nil, err
	}
	return h.patched(a)
}

func (h *hook) aggregateStatus(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	a, err := h.call(configv1alpha1.InterpreterOperationAggregateStatus, obj, &configv1alpha1.ResourceInterpreterRequest{AggregatedStatus: items})
	if err != nil {
		return nil, err
	}
	return h.patched(a)
}

func (h *hook) getDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	a, err := h.call(configv1alpha1.InterpreterOperationInterpretDependency, obj, &configv1alpha1.ResourceInterpreterRequest{})
	if err != nil {
		return nil, err
	}
	return a.Dependencies, nil
}

func (h *hook) reflectStatus(obj *unstructured.Unstructured) (*runtime.RawExtension, error) {
	a, err := h.call(configv1alpha1.InterpreterOperationInterpretStatus, obj, &configv1alpha1.ResourceInterpreterRequest{})
	if err != nil {
		return nil, err
	}
	return a.RawStatus, nil
}

func (h *hook) interpretHealth(obj *unstructured.Unstructured) (bool, error) {
	a, err := h.call(configv1alpha1.InterpreterOperationInterpretHealth, obj, &configv1alpha1.ResourceInterpreterRequest{})
	if err != nil {
		return false, err
	}
	return *a.Healthy, nil
}
