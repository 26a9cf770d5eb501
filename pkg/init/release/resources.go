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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
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
func (s *Resources) Write(ctx context.Context, admin *rest.Config, out io.Writer, now func() time.Time) error {
	admin = rest.CopyConfig(admin)
	admin.QPS, admin.Burst = -1, 0
	c := s.naming()
	c.Certificates = components.Certificates{"ca.crt": admin.CAData}
	c.Workloads = map[string]components.Workload{
		components.APIServer: {Replicas: s.APIServers}, components.ControllerManager: {ExtraArgs: []string{"--feature-gates=" + s.FeatureGates}},
	}
	in := &phases.Inputs{Config: c, Server: cmp.Or(s.Server, c.InternalServer())}
	// With those of an earlier installation, whose authority was another, the API server is slow.
	objects := s.serving(s.Addons, admin.CAData)
	for _, cluster := range s.Estimators {
		host := fmt.Sprintf("%s.%s.svc.%s", c.Name(components.EstimatorWorkload(cluster)), s.Namespace, s.Domain)
		objects = append(objects, components.EstimatorService(cluster, s.SystemNamespace, host, components.EstimatorPort))
	}
	if err := phases.RunControlPlane(ctx, in, admin, objects, resourcesTimeout, progress.NewPrinter(out, now, progress.Timeline), now); err != nil {
		return err
	}
	cp, err := connect(admin)
	if err != nil {
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

func connect(admin *rest.Config) (client.Client, error) {
	cp, err := client.New(admin, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return cp, nil
}

// serving returns what makes the API server pass requests for the APIs of addons on to their servers.
func (s *Resources) serving(addons []string, ca []byte) []client.Object {
	var out []client.Object
	for _, addon := range addons {
		host := fmt.Sprintf("%s.%s.svc.%s", s.naming().Name(addon), s.Namespace, s.Domain)
		out = append(out, components.AddonServing(addon, s.SystemNamespace, host, 443, ca)...)
	}
	return out
}

// addonsTimeout is how long a control plane may take to reach the servers of addons.
const addonsTimeout = 2 * time.Minute

// WriteAddons makes a control plane that is not of the release serve the APIs of the addons, and returns when it does.
func (s *Resources) WriteAddons(ctx context.Context, admin *rest.Config) error {
	cp, err := connect(admin)
	if err != nil {
		return err
	}
	objects := s.serving(s.Addons, admin.CAData)
	if _, err := write.Apply(ctx, cp, append(components.SystemNamespaces(s.SystemNamespace), objects...)); err != nil {
		return fmt.Errorf("registering the APIs: %w", err)
	}
	return wait.Until(ctx, wait.Options{Timeout: addonsTimeout}, func(ctx context.Context) error {
		for _, o := range objects {
			if _, ok := o.(*apiregistrationv1.APIService); !ok {
				continue
			}
			if err := rollout.CheckAPI(ctx, cp, o.GetName()); err != nil {
				return fmt.Errorf("APIService %s: %w", o.GetName(), err)
			}
		}
		return nil
	})
}

// RemoveAddons deletes the APIs of the addons from a control plane, unless they are of another server by now.
func (s *Resources) RemoveAddons(ctx context.Context, admin *rest.Config) error {
	cp, err := connect(admin)
	if err != nil {
		return err
	}
	for _, addon := range s.Addons {
		objects := s.serving([]string{addon}, nil)
		service := objects[0].(*corev1.Service)
		host := service.Spec.ExternalName
		if err := cp.Get(ctx, client.ObjectKeyFromObject(service), service); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Service %s: %w", client.ObjectKeyFromObject(service), err)
		} else if err == nil && service.Spec.ExternalName != host {
			continue
		}
		slices.Reverse(objects) // the Service says whose they are
		for _, o := range objects {
			if err := cp.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
			}
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
