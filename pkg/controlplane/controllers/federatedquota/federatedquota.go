// Package federatedquota gives clusters their shares of FederatedResourceQuotas, and reports what is used of the quotas.
package federatedquota

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

// Names of the controllers and sources of their events.
const (
	SyncComponent        = "federated-resource-quota-sync-controller"
	StatusComponent      = "federated-resource-quota-status-controller"
	EnforcementComponent = "federated-resource-quota-enforcement-controller"
)

// The indexes that find the Works of a quota by <namespace>/<name>. Each controller may run without the other.
const (
	syncIndex   = "federatedquota.sync"
	statusIndex = "federatedquota.status"
)

// quotaOf returns the quota that the labels of a Work name, if they name one.
func quotaOf(work *workv1alpha1.Work) types.NamespacedName {
	if work.Labels[quota.NamespaceLabel] == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: work.Labels[quota.NamespaceLabel], Name: work.Labels[quota.NameLabel]}
}

// worksOf returns the Works of a quota, which are read-only.
func worksOf(ctx context.Context, reader client.Reader, index string, key types.NamespacedName) ([]workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := reader.List(ctx, list, client.MatchingFields{index: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the works of quota %s: %w", key, err)
	}
	return list.Items, nil
}

// writeStatus writes what differs between two versions of a quota. Each controller writes fields of its own, so the patch
// needs no resource version.
func writeStatus(ctx context.Context, c client.Client, before, after *policyv1alpha1.FederatedResourceQuota) (bool, error) {
	change, differs, err := patch.Diff(before, after)
	if err != nil || !differs {
		return false, err
	}
	if err := c.Status().Patch(ctx, after.DeepCopy(), change); err != nil {
		return false, fmt.Errorf("writing the status of quota %s/%s: %w", before.Namespace, before.Name, err)
	}
	return true, nil
}

// publish records the result of a pass: a success that changed something, any success if all are recorded, or a failure.
func publish(r *events.Recorder, q *policyv1alpha1.FederatedResourceQuota, reasons [2]string, success string, changed bool, err error) {
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		r.Warning(q, reasons[1], err.Error())
	case changed:
		r.Normal(q, reasons[0], success)
	default:
		r.Recovered(q)
		r.Detail(q, reasons[0], success)
	}
}
