package addons

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Removal is what is to be removed of addons.
type Removal struct {
	// Addons are the names of the addons, estimators with those of their clusters.
	Addons []string
	// Notes are for the user.
	Notes []string

	host                   client.Client
	onHost, inControlPlane []client.Object
	controlPlane           func(context.Context) (client.Client, error)
}

// PlanRemoval returns what is to be removed. It reads the host cluster only.
func PlanRemoval(ctx context.Context, d Deps, s Selection) (*Removal, error) {
	names, err := s.selected("disable")
	if err != nil {
		return nil, err
	}
	host, err := connectHost(ctx, d.Host, s.Namespace)
	if err != nil {
		return nil, err
	}
	r := &Removal{host: host.client, controlPlane: d.ControlPlane}
	installed, err := installedEstimators(ctx, host.client, s.Namespace)
	if err != nil {
		return nil, err
	}
	clusters := s.Clusters
	if s.AllClusters {
		clusters = installed
	}
	for _, name := range names {
		if name == components.Estimator {
			for _, cluster := range clusters {
				r.addEstimator(s.Namespace, cluster)
			}
			continue
		}
		r.addAddon(s.Namespace, name)
	}
	if slices.Contains(s.Addons, All) && len(clusters) == 0 && len(installed) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the estimators of %s stay: remove them with --cluster or --all-clusters", joined(installed)))
	}
	return r, nil
}

func (r *Removal) addEstimator(namespace, cluster string) {
	name := components.EstimatorWorkload(cluster)
	r.Addons = append(r.Addons, name)
	r.onHost = append(r.onHost,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: components.EstimatorKubeconfigSecret(cluster)}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: components.AddonCertSecret(name)}},
	)
}

func (r *Removal) addAddon(namespace, name string) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	r.Addons = append(r.Addons, name)
	r.onHost = append(r.onHost, &appsv1.Deployment{ObjectMeta: meta})
	apis := apiNames(name)
	if len(apis) == 0 {
		return
	}
	r.onHost = append(r.onHost, &corev1.Service{ObjectMeta: meta},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: components.AddonCertSecret(name)}})
	for _, api := range apis {
		r.inControlPlane = append(r.inControlPlane, &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: api}})
	}
	r.inControlPlane = append(r.inControlPlane, &corev1.Service{ObjectMeta: meta})
}

// Run removes the addons: first what the API server of the control plane calls, then the servers. What does not exist
// is no error.
func (r *Removal) Run(ctx context.Context) error {
	if len(r.inControlPlane) > 0 {
		cp, err := r.controlPlane(ctx)
		if err != nil {
			return err
		}
		if err := remove(ctx, cp, r.inControlPlane); err != nil {
			return err
		}
	}
	return remove(ctx, r.host, r.onHost)
}

func remove(ctx context.Context, in client.Client, objects []client.Object) error {
	var errs []error
	for _, o := range objects {
		err := in.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", client.ObjectKeyFromObject(o), err))
		}
	}
	return errors.Join(errs...)
}
