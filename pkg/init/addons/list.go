package addons

import (
	"context"
	"errors"
	"fmt"
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
// it, only for those whose Deployment exists. Without the name of a cluster the state of its estimator is unknown;
// with several there is a row for each.
func List(ctx context.Context, host client.Reader, controlPlane func() (client.Reader, error), namespace string, clusters []string) []Addon {
	var out []Addon
	add := func(name, workload string, apis ...string) {
		status, err := statusOf(ctx, host, controlPlane, client.ObjectKey{Namespace: namespace, Name: workload}, apis)
		if err != nil {
			status, err = Unknown, fmt.Errorf("addon %s: %w", name, err)
		}
		out = append(out, Addon{name, status, err})
	}
	for _, name := range Names() {
		switch {
		case name != components.Estimator:
			add(name, name, apiNames(name)...)
		case len(clusters) == 0:
			out = append(out, Addon{Name: name, Status: Unknown})
		case len(clusters) == 1:
			add(name, components.EstimatorWorkload(clusters[0]))
		default:
			for _, cluster := range clusters {
				add(components.EstimatorWorkload(cluster), components.EstimatorWorkload(cluster))
			}
		}
	}
	slices.SortFunc(out, func(a, b Addon) int { return strings.Compare(a.Name, b.Name) })
	return out
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
