package installer

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// finder finds what init made in a namespace of the host cluster, and how it is removed.
type finder struct {
	host      kubernetes.Interface
	namespace string

	steps  []removalStep
	claims []string
	purge  components.Purge
}

func (f *finder) add(text string, do func(context.Context) error) {
	f.steps = append(f.steps, removalStep{text, do})
}

// withPods removes an object together with its pods, which then can be waited for.
func withPods() metav1.DeleteOptions {
	return metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
}

func (f *finder) findDeployments(ctx context.Context) error {
	c := f.host.AppsV1().Deployments(f.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the Deployments of the control plane: %w", err)
	}
	for _, d := range list.Items {
		if pod := &d.Spec.Template.Spec; (d.Name == components.ControllerManager || d.Name == components.AllInOne) && len(pod.Containers) > 0 {
			f.purge.Image, f.purge.PullPolicy, f.purge.PullSecrets = pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy, pod.ImagePullSecrets
		}
		f.add(fmt.Sprintf("delete deployment %q", d.Name), func(ctx context.Context) error { return c.Delete(ctx, d.Name, withPods()) })
	}
	return nil
}

func (f *finder) findStatefulSets(ctx context.Context) error {
	c := f.host.AppsV1().StatefulSets(f.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the StatefulSets of the control plane: %w", err)
	}
	for _, s := range list.Items {
		for _, v := range s.Spec.Template.Spec.Volumes {
			if v.HostPath != nil {
				f.purge.Path = v.HostPath.Path
			}
		}
		f.add(fmt.Sprintf("delete StatefulSet: %q", s.Name), func(ctx context.Context) error { return c.Delete(ctx, s.Name, withPods()) })
	}
	return nil
}

func (f *finder) findServices(ctx context.Context) error {
	c := f.host.CoreV1().Services(f.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the Services of the control plane: %w", err)
	}
	for _, s := range list.Items {
		f.add(fmt.Sprintf("delete Service %q", s.Name), func(ctx context.Context) error { return c.Delete(ctx, s.Name, metav1.DeleteOptions{}) })
	}
	return nil
}

func (f *finder) findSecrets(ctx context.Context) error {
	c := f.host.CoreV1().Secrets(f.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the Secrets of the control plane: %w", err)
	}
	for _, s := range list.Items {
		f.add(fmt.Sprintf("delete Secrets %q", s.Name), func(ctx context.Context) error { return c.Delete(ctx, s.Name, metav1.DeleteOptions{}) })
	}
	return nil
}

// findClaims finds the claims of etcd: data is not removed unless that was requested.
func (f *finder) findClaims(ctx context.Context) error {
	list, err := f.host.CoreV1().PersistentVolumeClaims(f.namespace).List(ctx, components.Installed())
	if err != nil {
		return hostcluster.ConnectionError(err)
	}
	for _, c := range list.Items {
		f.claims = append(f.claims, c.Name)
	}
	return nil
}

// findNodes finds the nodes that init labelled, unless another control plane of
// the cluster needs the label.
func (f *finder) findNodes(ctx context.Context) error {
	sets, err := f.host.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, components.Installed())
	if hostcluster.ConnectionError(err) != nil {
		return fmt.Errorf("listing other control planes: %w", err)
	}
	if err == nil && slices.ContainsFunc(sets.Items, func(s appsv1.StatefulSet) bool {
		_, ok := s.Spec.Template.Spec.NodeSelector[components.EtcdNodeLabel]
		return ok && s.Namespace != f.namespace
	}) {
		return nil
	}
	list, err := f.host.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: components.EtcdNodeLabel})
	if err != nil {
		return fmt.Errorf("listing the nodes of etcd: %w", err)
	}
	for i := range list.Items {
		node := &list.Items[i]
		f.add(fmt.Sprintf("remove node %q labels %q", node.Name, components.EtcdNodeLabel), func(ctx context.Context) error {
			patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, components.EtcdNodeLabel)
			_, err := f.host.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
	if len(list.Items) == 0 {
		f.add(fmt.Sprintf("node not found by label %q", components.EtcdNodeLabel), func(context.Context) error { return nil })
	}
	return nil
}
