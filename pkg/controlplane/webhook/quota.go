package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/ledgers"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

// reasonQuotaExceeded is the reason of refusals, by which the scheduler
// distinguishes them.
const reasonQuotaExceeded metav1.StatusReason = "QuotaExceeded"

// admit decides on a binding and reserves what it adds. Less is always possible: it
// takes effect when the controller has counted it.
func (e *enforcer) admit(ctx context.Context, req *admission.Request, kind schema.GroupVersionKind) admission.Response {
	w, err := writeOf(req, kind)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	limits, err := e.limits(ctx, req.Namespace, w)
	if err == nil && len(limits) > 0 {
		c := &charge{write: w, quotas: limits, done: make(chan error, 1)}
		if req.DryRun != nil && *req.DryRun {
			err = e.check(ctx, req.Namespace, c)
		} else {
			err = e.charge(ctx, req.Namespace, c)
		}
	}
	if len(limits) > 0 || err != nil {
		e.count(err)
	}
	name := strings.TrimPrefix(req.Namespace+"/"+req.Name, "/")
	exceeded, refused := errors.AsType[*quota.Exceeded](err)
	switch {
	case err == nil:
		return admission.Allowed("")
	case refused:
		resp := admission.Denied(exceeded.Error())
		resp.Result.Reason = reasonQuotaExceeded
		return resp
	case ledgers.Conflict(err):
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("failed to apply FederatedResourceQuota updates after multiple retries for RB %s: %w", name, err))
	}
	return admission.Errored(http.StatusInternalServerError, fmt.Errorf("permanent error updating FRQ statuses for RB %s: %w", name, err))
}

// writeOf returns what a request changes.
func writeOf(req *admission.Request, kind schema.GroupVersionKind) (*quota.Write, error) {
	obj, err := decodeAs[workv1alpha2.ResourceBinding](req.Object.Raw, kind)
	if err != nil {
		return nil, err
	}
	w := &quota.Write{Binding: obj.Name, UID: obj.UID, After: quota.Usage(&obj.Spec)}
	if req.Operation == admissionv1.Update {
		before, err := decodeAs[workv1alpha2.ResourceBinding](req.OldObject.Raw, kind)
		if err != nil {
			return nil, err
		}
		w.Version, w.Before = before.ResourceVersion, quota.Usage(&before.Spec)
	}
	return w, nil
}

// limits returns the quotas of a namespace that limit what a write adds.
func (e *enforcer) limits(ctx context.Context, namespace string, w *quota.Write) ([]policyv1alpha1.FederatedResourceQuota, error) {
	if len(w.After) == 0 {
		return nil, nil
	}
	list := &policyv1alpha1.FederatedResourceQuotaList{}
	if err := e.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the quotas: %w", err)
	}
	var out []policyv1alpha1.FederatedResourceQuota
	for i := range list.Items {
		if w.Adds(&list.Items[i]) {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}
