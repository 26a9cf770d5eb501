package addons

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// Status is the state of an addon.
type Status string

// The states.
const (
	Enabled   Status = "enabled"
	Disabled  Status = "disabled"
	Unhealthy Status = "unhealthy"
	Unknown   Status = "unknown"
)

// Addon is an optional part of a control plane and its state.
type Addon struct {
	Name   string
	Status Status
	// Err is why the state is unknown, nil where it cannot be known.
	Err error
}

// List returns the addons with their states, sorted by name. The control plane is read, by a function that connects to
// it, only for those whose Deployment exists. With several clusters there is a row for the estimator of each; without a
// cluster for each that is installed.
func List(ctx context.Context, host client.Reader, controlPlane func() (client.Reader, error), namespace string, clusters []string) []Addon {
	var out []Addon
	add := func(name, workload string, apis ...string) {
		status, err := statusOf(ctx, host, controlPlane, client.ObjectKey{Namespace: namespace, Name: workload}, apis)
		if err != nil {
			status, err = Unknown, fmt.Errorf("addon %s: %w", name, err)
		}
		out = append(out, Addon{name, status, err})
	}
	named := len(clusters)
	if named == 0 {
		var err error
		if clusters, err = installedEstimators(ctx, host, namespace); err != nil {
			out = append(out, Addon{components.Estimator, Unknown, err})
		} else if len(clusters) == 0 {
			out = append(out, Addon{Name: components.Estimator, Status: Disabled})
		}
	}
	for _, name := range Names() {
		if name != components.Estimator {
			add(name, name, apiNames(name)...)
		}
	}
	for _, cluster := range clusters {
		name := components.EstimatorWorkload(cluster)
		if named == 1 {
			name = components.Estimator
		}
		add(name, components.EstimatorWorkload(cluster))
	}
	slices.SortFunc(out, func(a, b Addon) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ListLocal is List for a federation on one machine, whose addons are processes beside its control plane. estimators
// reports for the clusters that have an estimator whether it runs.
func ListLocal(ctx context.Context, controlPlane client.Reader, estimators map[string]bool, clusters []string) []Addon {
	out := []Addon{{Name: components.Descheduler, Status: Disabled}} // such a federation has none
	for _, name := range []string{components.MetricsAdapter, components.Search} {
		status, err := apiStatus(ctx, Enabled, func() (client.Reader, error) { return controlPlane, nil }, apiNames(name))
		if err != nil {
			status, err = Unknown, fmt.Errorf("addon %s: %w", name, err)
		}
		out = append(out, Addon{name, status, err})
	}
	named := len(clusters)
	if named == 0 {
		clusters = slices.Sorted(maps.Keys(estimators))
	}
	if len(clusters) == 0 {
		out = append(out, Addon{Name: components.Estimator, Status: Disabled})
	}
	for _, cluster := range clusters {
		one := Addon{Name: components.EstimatorWorkload(cluster), Status: Disabled}
		if named == 1 {
			one.Name = components.Estimator
		}
		if running, ok := estimators[cluster]; running {
			one.Status = Enabled
		} else if ok {
			one.Status = Unhealthy
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Addon) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// installedEstimators returns the names of the clusters that have estimators, sorted.
func installedEstimators(ctx context.Context, host client.Reader, namespace string) ([]string, error) {
	list := &appsv1.DeploymentList{}
	if err := host.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Deployments of the control plane: %w", err)
	}
	var out []string
	for i := range list.Items {
		if cluster, ok := strings.CutPrefix(list.Items[i].Name, components.EstimatorWorkload("")); ok {
			out = append(out, cluster)
		}
	}
	slices.Sort(out)
	return out, nil
}

// apiNames returns the names of the APIServices of an addon.
func apiNames(addon string) []string {
	var out []string
	for _, gv := range components.AddonAPIs(addon) {
		out = append(out, components.APIServiceName(gv))
	}
	return out
}

func statusOf(ctx context.Context, host client.Reader, controlPlane func() (client.Reader, error), key client.ObjectKey, apis []string) (Status, error) {
	d := &appsv1.Deployment{}
	err := host.Get(ctx, key, d)
	if apierrors.IsNotFound(err) {
		return Disabled, nil
	}
	if err != nil {
		return "", err
	}
	status := Enabled
	if s := d.Status; s.Replicas != s.ReadyReplicas || s.Replicas != s.AvailableReplicas || s.Replicas < ptr.Deref(d.Spec.Replicas, 1) {
		status = Unhealthy
	}
	return apiStatus(ctx, status, controlPlane, apis)
}

// apiStatus returns the state of an addon by its APIServices, which is no better than a given one.
func apiStatus(ctx context.Context, status Status, controlPlane func() (client.Reader, error), apis []string) (Status, error) {
	for _, api := range apis {
		cp, err := controlPlane()
		if err != nil {
			return "", err
		}
		err = rollout.CheckAPI(ctx, cp, api)
		switch {
		case apierrors.IsNotFound(err):
			return Disabled, nil
		case errors.Is(err, rollout.ErrUnavailable):
			status = Unhealthy
		case err != nil:
			return "", err
		}
	}
	return status, nil
}

// JoinErrors joins the reasons why states are unknown.
func JoinErrors(addons []Addon) error {
	var errs []error
	for _, a := range addons {
		errs = append(errs, a.Err)
	}
	return errors.Join(errs...)
}
