package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/adopt"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// resourcesTimeout is how long the Job of the static resources waits for anything.
const resourcesTimeout = 10 * time.Minute

// Resources are the settings of the static resources of a release.
type Resources struct {
	Release
	// Server is the URL of the API server for clusters that register; empty means that inside the host cluster.
	Server string
	// APIServers is how many there are.
	APIServers int32
	// FeatureGates of the controller-manager, a value of its flag.
	FeatureGates string
	// Addons are the servers beside the aggregated one whose APIs the control plane has.
	Addons []string
	// Estimators are the clusters that have an estimator.
	Estimators []string
	// Version and Settings are written when everything else is.
	Version, Settings string
}

// Write writes the static resources and returns when the control plane accepts a policy.
func (s *Resources) Write(ctx context.Context, admin *rest.Config, to io.Writer, now func() time.Time) error {
	admin = rest.CopyConfig(admin)
	admin.QPS, admin.Burst = -1, 0
	in := s.inputs(admin.CAData)
	out := progress.NewPrinter(to, now, progress.Timeline)
	// With the APIs of an earlier installation, whose authority was another, the API server is slow.
	if err := phases.RunControlPlane(ctx, in, admin, phases.ControlPlane(s.addons(), s.Estimators), resourcesTimeout, out, now); err != nil {
		return err
	}
	cp, err := connect(admin)
	if err != nil {
		return err
	}
	if err := s.continueFormer(ctx, cp); err != nil {
		return err
	}
	_, err = write.Apply(ctx, cp, []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.SystemNamespace, Name: names.VersionConfigMap, Labels: names.SystemLabels()},
		Data:       map[string]string{names.VersionKey: s.Version, names.SettingsKey: s.Settings},
	}})
	if err != nil {
		return fmt.Errorf("recording the version: %w", err)
	}
	return nil
}

// continueFormer writes what a control plane of Karmada's chart has in another form.
func (s *Resources) continueFormer(ctx context.Context, cp client.Client) error {
	m := &corev1.ConfigMap{}
	err := cp.Get(ctx, client.ObjectKey{Namespace: s.SystemNamespace, Name: names.VersionConfigMap}, m)
	switch {
	case apierrors.IsNotFound(err): // it is new
		return nil
	case err != nil:
		return fmt.Errorf("reading the version of the control plane: %w", err)
	case m.Data[names.SettingsKey] != "": // it is of this chart
		return nil
	}
	return adopt.RenamePurgeModes(ctx, cp)
}

func connect(admin *rest.Config) (client.Client, error) {
	cp, err := client.New(admin, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return cp, nil
}

// addons returns the addons, with estimators if there are any.
func (s *Resources) addons() []string {
	if len(s.Estimators) == 0 {
		return s.Addons
	}
	return append(slices.Clone(s.Addons), components.Estimator)
}

// inputs returns what the static resources are made of.
func (s *Resources) inputs(ca []byte) *phases.Inputs {
	c := s.naming()
	c.Certificates = components.Certificates{"ca.crt": ca}
	c.Workloads = map[string]components.Workload{
		components.APIServer: {Replicas: s.APIServers}, components.ControllerManager: {ExtraArgs: []string{"--feature-gates=" + s.FeatureGates}},
	}
	return &phases.Inputs{Config: c, Server: cmp.Or(s.Server, c.InternalServer())}
}

// addonsTimeout is how long a control plane may take to reach the servers of addons.
const addonsTimeout = 2 * time.Minute

// WriteAddons makes a control plane that is not of the release serve the APIs of the addons, and returns when it does.
func (s *Resources) WriteAddons(ctx context.Context, admin *rest.Config, to io.Writer, now func() time.Time) error {
	return phases.RunControlPlane(ctx, s.inputs(admin.CAData), admin, phases.AddonAPIs(s.Addons), addonsTimeout, progress.NewPrinter(to, now, progress.Timeline), now)
}

// RemoveAddons deletes the APIs of the addons from a control plane, unless they are of another server by now.
func (s *Resources) RemoveAddons(ctx context.Context, admin *rest.Config) error {
	cp, err := connect(admin)
	if err != nil {
		return err
	}
	in := s.inputs(nil)
	for _, p := range phases.Addons(s.Addons, nil) {
		objects, err := p.ControlPlane(in)
		if err != nil {
			return err
		}
		service := objects[0].(*corev1.Service) // it says whose they are
		host := service.Spec.ExternalName
		if err := cp.Get(ctx, client.ObjectKeyFromObject(service), service); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Service %s: %w", client.ObjectKeyFromObject(service), err)
		} else if err == nil && service.Spec.ExternalName != host {
			continue
		}
		if err := phases.Delete(ctx, cp, objects); err != nil {
			return err
		}
	}
	return nil
}

// Await returns when the static resources with a version and settings are in a control plane.
func Await(ctx context.Context, config *rest.Config, namespace, version, settings string) error {
	cp, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	for err != nil { // the API server does not answer yet
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		cp, err = client.New(config, client.Options{Scheme: kube.NewScheme()})
	}
	return wait.Until(ctx, wait.Options{Interval: 250 * time.Millisecond}, func(ctx context.Context) error {
		m := &corev1.ConfigMap{}
		if err := cp.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names.VersionConfigMap}, m); err != nil {
			return err
		}
		if m.Data[names.VersionKey] != version || m.Data[names.SettingsKey] != settings {
			return errors.New("the static resources are those of another release")
		}
		return nil
	})
}
