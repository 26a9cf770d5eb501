package role

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/wait"
	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
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
		policyv1alpha1.GroupVersion.WithKind("ClusterTaintPolicy"),
		autoscalingv1alpha1.SchemeGroupVersion.WithKind("FederatedHPA"),
		autoscalingv1alpha1.SchemeGroupVersion.WithKind("CronFederatedHPA"),
		remedyv1alpha1.GroupVersion.WithKind("Remedy"),
		networkingv1alpha1.GroupVersion.WithKind("MultiClusterService"),
		multiclusterv1alpha1.GroupVersion.WithKind("ServiceExport"),
		multiclusterv1alpha1.GroupVersion.WithKind("ServiceImport"),
		appsv1alpha1.GroupVersion.WithKind("WorkloadRebalancer"),
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

// descheduling are the kinds that a descheduler watches from the start.
func descheduling() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{workv1alpha2.GroupVersion.WithKind("ResourceBinding")}
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
// the roles watch. It logs what it waits for every two seconds.
func waitForAPIs(ctx context.Context, mgr manager.Manager, kinds []schema.GroupVersionKind, timeout time.Duration) error {
	late := fmt.Errorf("not served after %s: install the CRDs and the APIService of the control plane", timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	logger := log.FromContext(ctx)
	for _, gvk := range kinds {
		o := wait.Options{Interval: 50 * time.Millisecond, Publish: func(reason error) {
			logger.Info("Waiting for the control plane to serve a kind", "kind", gvk.String(), "problem", fmt.Sprint(reason))
		}}
		if err := wait.Until(ctx, o, func(ctx context.Context) error { return served(ctx, mgr, gvk) }); err != nil {
			return fmt.Errorf("waiting for the control plane to serve %s: %w", gvk, err)
		}
	}
	return nil
}

// served returns an error while a kind cannot be watched yet.
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
