package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/quota"
)

// reasonQuotaExceeded is the reason of refusals, by which the scheduler knows
// them.
const reasonQuotaExceeded metav1.StatusReason = "QuotaExceeded"

// enforcer keeps the use of FederatedResourceQuotas within their limits. Use is
// written to the quotas' status before a binding is let in; a controller puts
// right what a binding that then fails for another reason has left there.
type enforcer struct {
	cached, live client.Reader
	status       client.SubResourceWriter

	// one at a time, for they would only conflict
	mu sync.Mutex
}

// admit decides on a binding and records what it uses.
func (e *enforcer) admit(ctx context.Context, req *admission.Request, kind schema.GroupVersionKind) admission.Response {
	obj, err := decodeAs[workv1alpha2.ResourceBinding](req.Object.Raw, kind)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var old *workv1alpha2.ResourceBindingSpec
	if req.Operation == admissionv1.Update {
		before, err := decodeAs[workv1alpha2.ResourceBinding](req.OldObject.Raw, kind)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		old = &before.Spec
	} else if len(obj.Spec.Clusters) == 0 {
		return admission.Allowed("")
	}
	delta := quota.Delta(&obj.Spec, old)
	if len(delta) == 0 {
		return admission.Allowed("")
	}
	name := strings.TrimPrefix(req.Namespace+"/"+req.Name, "/")
	err = e.charge(ctx, req.Namespace, delta, req.DryRun != nil && *req.DryRun)
	var exceeded *quota.Exceeded
	switch {
	case err == nil:
		return admission.Allowed("")
	case errors.As(err, &exceeded):
		resp := admission.Denied(exceeded.Error())
		resp.Result.Reason = reasonQuotaExceeded
		return resp
	case wait.Interrupted(err), apierrors.IsConflict(err):
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("failed to apply FederatedResourceQuota updates after multiple retries for RB %s: %w", name, err))
	}
	return admission.Errored(http.StatusInternalServerError, fmt.Errorf("permanent error updating FRQ statuses for RB %s: %w", name, err))
}

// charge adds the delta to every quota of a namespace, or to none.
func (e *enforcer) charge(ctx context.Context, namespace string, delta corev1.ResourceList, dryRun bool) error {
	var known policyv1alpha1.FederatedResourceQuotaList
	if err := e.cached.List(ctx, &known, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the quotas: %w", err)
	}
	if len(known.Items) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	charged := map[string]bool{}
	var conflict error
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Jitter: 0.1, Steps: 5}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		err := e.chargeOnce(ctx, namespace, delta, dryRun, charged)
		if apierrors.IsConflict(err) {
			conflict = err
			return false, nil
		}
		return err == nil, err
	})
	if err != nil && len(charged) > 0 {
		e.refund(ctx, namespace, delta, dryRun, charged)
	}
	if wait.Interrupted(err) && conflict != nil {
		return conflict
	}
	return err
}

// chargeOnce adds the delta to the quotas that are not in charged yet, all
// checked before the first is written.
func (e *enforcer) chargeOnce(ctx context.Context, namespace string, delta corev1.ResourceList, dryRun bool, charged map[string]bool) error {
	quotas, err := e.list(ctx, namespace)
	if err != nil {
		return err
	}
	var writes []*policyv1alpha1.FederatedResourceQuota
	for i := range quotas {
		q := &quotas[i]
		if charged[q.Name] {
			continue
		}
		used, changed, err := quota.Charge(q, delta)
		if err != nil {
			return err
		}
		if changed {
			q.Status.OverallUsed = used
			writes = append(writes, q)
		}
	}
	for _, q := range writes {
		if err := e.write(ctx, q, dryRun); err != nil {
			return err
		}
		charged[q.Name] = true
	}
	return nil
}

// refund takes the delta back from the quotas in charged. What fails is left to
// the controller that counts.
func (e *enforcer) refund(ctx context.Context, namespace string, delta corev1.ResourceList, dryRun bool, charged map[string]bool) {
	quotas, err := e.list(ctx, namespace)
	if err != nil {
		return
	}
	back := corev1.ResourceList{}
	for name, quantity := range delta {
		quantity = quantity.DeepCopy()
		quantity.Neg()
		back[name] = quantity
	}
	for i := range quotas {
		q := &quotas[i]
		if !charged[q.Name] {
			continue
		}
		if used, changed, err := quota.Charge(q, back); err == nil && changed {
			q.Status.OverallUsed = used
			_ = e.write(ctx, q, dryRun)
		}
	}
}

// list reads the quotas of a namespace from the API server, sorted by name.
func (e *enforcer) list(ctx context.Context, namespace string) ([]policyv1alpha1.FederatedResourceQuota, error) {
	var list policyv1alpha1.FederatedResourceQuotaList
	if err := e.live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the quotas: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b policyv1alpha1.FederatedResourceQuota) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func (e *enforcer) write(ctx context.Context, q *policyv1alpha1.FederatedResourceQuota, dryRun bool) error {
	var opts []client.SubResourceUpdateOption
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	if err := e.status.Update(ctx, q, opts...); err != nil {
		return fmt.Errorf("writing the use of quota %s/%s: %w", q.Namespace, q.Name, err)
	}
	return nil
}
