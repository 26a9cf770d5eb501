package role

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// required are the kinds that the roles watch from the start.
func required() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"),
		policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"),
		policyv1alpha1.GroupVersion.WithKind("OverridePolicy"),
		policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy"),
		policyv1alpha1.GroupVersion.WithKind("FederatedResourceQuota"),
		workv1alpha1.GroupVersion.WithKind("Work"),
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"),
		workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"),
		configv1alpha1.GroupVersion.WithKind("ResourceInterpreterCustomization"),
		configv1alpha1.GroupVersion.WithKind("ResourceInterpreterWebhookConfiguration"),
		clusterv1alpha1.GroupVersion.WithKind("Cluster"),
	}
}

// scheduling are the kinds that a scheduler watches from the start.
func scheduling() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		policyv1alpha1.GroupVersion.WithKind("FederatedResourceQuota"),
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"),
		workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"),
		clusterv1alpha1.GroupVersion.WithKind("Cluster"),
	}
}

// kindsOf returns the kinds that roles wait for.
func kindsOf(roles []named) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, r := range roles {
		switch {
		case r.Serves:
		case r.Kinds == nil:
			return required()
		default:
			out = append(out, r.Kinds()...)
		}
	}
	return out
}

// waitForAPIs returns when the control plane serves every one of the kinds, which
// the roles watch. It says what it waits for every two seconds.
func waitForAPIs(ctx context.Context, mgr manager.Manager, kinds []schema.GroupVersionKind, timeout time.Duration) error {
	late := fmt.Errorf("not served after %s: install the CRDs and the APIService of the control plane", timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	logger := log.FromContext(ctx)
	said := time.NewTicker(2 * time.Second)
	defer said.Stop()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for _, gvk := range kinds {
		for {
			err := served(ctx, mgr, gvk)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for the control plane to serve %s: %w", gvk, errors.Join(context.Cause(ctx), err))
			case <-said.C:
				logger.Info("Waiting for the control plane to serve a kind", "kind", gvk.String(), "problem", err.Error())
			case <-retry.C:
			}
		}
	}
	return nil
}

// served says why a kind cannot be watched yet.
func served(ctx context.Context, mgr manager.Manager, gvk schema.GroupVersionKind) error {
	if _, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return fmt.Errorf("looking it up: %w", err)
	}
	object, err := mgr.GetScheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return fmt.Errorf("making a list: %w", err)
	}
	list, ok := object.(client.ObjectList)
	if !ok {
		return fmt.Errorf("%T is no list", object)
	}
	if err := mgr.GetAPIReader().List(ctx, list, client.Limit(1)); err != nil {
		return fmt.Errorf("listing it: %w", err)
	}
	return nil
}
