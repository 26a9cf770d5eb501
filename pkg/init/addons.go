package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// AddonStatus is the state of an optional part of a control plane.
type AddonStatus string

// The states.
const (
	AddonEnabled   AddonStatus = "enabled"
	AddonDisabled  AddonStatus = "disabled"
	AddonUnhealthy AddonStatus = "unhealthy"
	AddonUnknown   AddonStatus = "unknown"
)

// Addon is an optional part of a control plane and its state.
type Addon struct {
	Name   string
	Status AddonStatus
	// Err is why the state is unknown, nil where it cannot be known.
	Err error
}

// AddonNames are the optional parts, sorted.
func AddonNames() []string {
	return []string{components.Descheduler, components.MetricsAdapter, components.Estimator, components.Search}
}

// addonAPIs are the APIServices of an addon.
func addonAPIs(name string) []string {
	switch name {
	case components.Search:
		return []string{"v1alpha1.search.karmada.io"}
	case components.MetricsAdapter:
		return []string{"v1beta1.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"}
	}
	return nil
}

// Addons returns the optional parts with their states, sorted by name. The control
// plane is read, by a function that connects to it, only for those that are
// there in the host cluster. Without the name of a cluster the state of its
// estimator is unknown.
func Addons(ctx context.Context, host client.Reader, controlPlane func() (client.Reader, error), namespace, cluster string) []Addon {
	var out []Addon
	for _, name := range AddonNames() {
		workload := name
		if name == components.Estimator {
			if cluster == "" {
				out = append(out, Addon{Name: name, Status: AddonUnknown})
				continue
			}
			workload += "-" + cluster
		}
		status, err := addonStatus(ctx, host, controlPlane, client.ObjectKey{Namespace: namespace, Name: workload}, addonAPIs(name))
		if err != nil {
			status, err = AddonUnknown, fmt.Errorf("addon %s: %w", name, err)
		}
		out = append(out, Addon{name, status, err})
	}
	slices.SortFunc(out, func(a, b Addon) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

func addonStatus(ctx context.Context, host client.Reader, controlPlane func() (client.Reader, error), key client.ObjectKey, apis []string) (AddonStatus, error) {
	d := &appsv1.Deployment{}
	err := host.Get(ctx, key, d)
	if apierrors.IsNotFound(err) {
		return AddonDisabled, nil
	}
	if err != nil {
		return "", err
	}
	if s := d.Status; s.Replicas != s.ReadyReplicas || s.Replicas != s.AvailableReplicas {
		return AddonUnhealthy, nil
	}
	status := AddonEnabled
	for _, api := range apis {
		cp, err := controlPlane()
		if err != nil {
			return "", err
		}
		service := &apiregistrationv1.APIService{}
		err = cp.Get(ctx, client.ObjectKey{Name: api}, service)
		switch {
		case apierrors.IsNotFound(err):
			return AddonDisabled, nil
		case err != nil:
			return "", err
		case !slices.ContainsFunc(service.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
			return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
		}):
			status = AddonUnhealthy
		}
	}
	return status, nil
}

// JoinAddonErrors joins the reasons why states are unknown.
func JoinAddonErrors(addons []Addon) error {
	var errs []error
	for _, a := range addons {
		errs = append(errs, a.Err)
	}
	return errors.Join(errs...)
}
