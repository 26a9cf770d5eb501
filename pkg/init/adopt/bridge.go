package adopt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bridgeKey is the label of the pods that answer while the only API server is replaced, and the annotation of a Service with the selector
// that it had.
const bridgeKey = "karmada.io/adopting"

// bridge has the only API server start anew without the required anti-affinity of Karmada's chart, by which on a single node the next one
// could start only when the last one has stopped. A second Deployment, whose pods have other labels, answers meanwhile. It goes on where
// it was interrupted.
func (a *Adoption) bridge(ctx context.Context) (string, error) {
	d, err := a.aloneAPIServer(ctx)
	if err != nil || d == nil {
		return "not needed", err
	}
	second := secondOf(d)
	if err := a.host.Create(ctx, second); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("starting a second API server: %w", err)
	}
	if err := a.await(ctx, second.Name); err != nil {
		return "", err
	}
	services, err := a.servicesOf(ctx, d)
	if err == nil {
		err = a.restart(ctx, d, services)
	}
	if err != nil {
		return "", err
	}
	for i := range services {
		if err := a.give(ctx, &services[i], nil); err != nil {
			return "", err
		}
	}
	if err := a.host.Delete(ctx, second, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("stopping the second API server: %w", err)
	}
	return d.Name + " no longer requires a node of its own", nil
}

// restart has Services lead to the second API server, and starts the first one anew without its anti-affinity, whatever its strategy is.
func (a *Adoption) restart(ctx context.Context, d *appsv1.Deployment, services []corev1.Service) error {
	if requiresApart(&d.Spec.Template.Spec) {
		if err := a.lead(ctx, d, services); err != nil {
			return err
		}
		d.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		d.Spec.Replicas = ptr.To[int32](0)
		if err := a.host.Update(ctx, d); err != nil {
			return fmt.Errorf("stopping %s: %w", d.Name, err)
		}
	}
	if err := a.await(ctx, d.Name); err != nil || *d.Spec.Replicas > 0 {
		return err
	}
	if err := a.host.Patch(ctx, d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))); err != nil {
		return fmt.Errorf("starting %s: %w", d.Name, err)
	}
	return a.await(ctx, d.Name)
}

// aloneAPIServer returns the Deployment of the API server if it has one replica and requires a node of its own, or was changed by a bridge
// that was interrupted; nil otherwise. One with the network of its node cannot have another beside it.
func (a *Adoption) aloneAPIServer(ctx context.Context) (*appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	if err := a.host.List(ctx, list, client.InNamespace(a.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the Deployments in namespace %s: %w", a.Namespace, err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		pod := &d.Spec.Template.Spec
		if programOf(pod, 0) != apiServerProgram || d.Labels[bridgeKey] != "" {
			continue
		}
		begun := slices.ContainsFunc(list.Items, func(other appsv1.Deployment) bool { return other.Labels[bridgeKey] == d.Name })
		if d.Spec.Replicas = cmp.Or(d.Spec.Replicas, ptr.To[int32](1)); begun || requiresApart(pod) && !pod.HostNetwork && *d.Spec.Replicas == 1 {
			return d, nil
		}
	}
	return nil, nil
}

func requiresApart(pod *corev1.PodSpec) bool {
	return pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil && len(pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// secondOf returns a Deployment with the pods of another one, under other labels and on any node.
func secondOf(d *appsv1.Deployment) *appsv1.Deployment {
	own := map[string]string{bridgeKey: d.Name}
	template := *d.Spec.Template.DeepCopy()
	template.Labels = own
	template.Spec.Affinity = nil
	template.Spec.Containers[0].Command = append(template.Spec.Containers[0].Command, "--shutdown-delay-duration=5s") // until no Service leads to it
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-adopting", Labels: own},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: own}, Template: template},
	}
}

// servicesOf returns the Services that lead to the pods of a Deployment, or did before a bridge.
func (a *Adoption) servicesOf(ctx context.Context, d *appsv1.Deployment) ([]corev1.Service, error) {
	list := &corev1.ServiceList{}
	if err := a.host.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the Services in namespace %s: %w", d.Namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Service) bool {
		leads := len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels))
		return !leads && s.Annotations[bridgeKey] == ""
	}), nil
}

// lead makes Services lead to the pods of a Deployment and of the second one, by a label that both have.
func (a *Adoption) lead(ctx context.Context, d *appsv1.Deployment, services []corev1.Service) error {
	pods := &corev1.PodList{}
	if err := a.host.List(ctx, pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return fmt.Errorf("listing the pods of %s: %w", d.Name, err)
	}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, bridgeKey, d.Name)
	for i := range pods.Items {
		if err := a.host.Patch(ctx, &pods.Items[i], client.RawPatch("application/merge-patch+json", label)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("labelling pod %s: %w", pods.Items[i].Name, err)
		}
	}
	for i := range services {
		if err := a.give(ctx, &services[i], map[string]string{bridgeKey: d.Name}); err != nil {
			return err
		}
	}
	return nil
}

// give gives a Service a selector; nil means the one that it had before.
func (a *Adoption) give(ctx context.Context, s *corev1.Service, selector map[string]string) error {
	was := s.Annotations[bridgeKey]
	switch {
	case selector == nil && was == "", selector != nil && was != "":
		return nil
	case selector == nil:
		if err := json.Unmarshal([]byte(was), &selector); err != nil {
			return fmt.Errorf("the annotation %s of Service %s: %w", bridgeKey, s.Name, err)
		}
		delete(s.Annotations, bridgeKey)
	default:
		text, err := json.Marshal(s.Spec.Selector)
		if err != nil {
			return err
		}
		s.Annotations = maps.Clone(s.Annotations)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, bridgeKey, string(text))
	}
	s.Spec.Selector = selector
	if err := a.host.Update(ctx, s); err != nil {
		return fmt.Errorf("changing the selector of Service %s: %w", s.Name, err)
	}
	return nil
}
