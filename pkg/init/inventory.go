package installer

import (
	"context"
	"errors"
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

// remove adds the deletion of an object, with its pods if it has any, which then can be waited for.
func (f *finder) remove(text, name string, del func(context.Context, string, metav1.DeleteOptions) error) {
	f.add(fmt.Sprintf("delete %s %q", text, name), func(ctx context.Context) error {
		return del(ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	})
}

// findObjects finds the objects with the label, those first that use the others. Claims of etcd are not removed: data is not unless
// that was requested.
func (f *finder) findObjects(ctx context.Context) error {
	apps, core, installed := f.host.AppsV1(), f.host.CoreV1(), components.Installed()
	deployments, err := apps.Deployments(f.namespace).List(ctx, installed)
	sets, errSets := apps.StatefulSets(f.namespace).List(ctx, installed)
	services, errServices := core.Services(f.namespace).List(ctx, installed)
	secrets, errSecrets := core.Secrets(f.namespace).List(ctx, installed)
	claims, errClaims := core.PersistentVolumeClaims(f.namespace).List(ctx, installed)
	if err := errors.Join(err, errSets, errServices, errSecrets, hostcluster.ConnectionError(errClaims)); err != nil {
		return fmt.Errorf("listing the objects of the control plane: %w", err)
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if pod := &d.Spec.Template.Spec; (d.Name == components.ControllerManager || d.Name == components.AllInOne) && len(pod.Containers) > 0 {
			f.purge.Image, f.purge.PullPolicy, f.purge.PullSecrets = pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy, pod.ImagePullSecrets
		}
		f.remove("deployment", d.Name, apps.Deployments(f.namespace).Delete)
	}
	for i := range sets.Items {
		for _, v := range sets.Items[i].Spec.Template.Spec.Volumes {
			if v.HostPath != nil {
				f.purge.Path = v.HostPath.Path
			}
		}
		f.remove("StatefulSet:", sets.Items[i].Name, apps.StatefulSets(f.namespace).Delete)
	}
	for i := range services.Items {
		f.remove("Service", services.Items[i].Name, core.Services(f.namespace).Delete)
	}
	for i := range secrets.Items {
		f.remove("Secrets", secrets.Items[i].Name, core.Secrets(f.namespace).Delete)
	}
	if errClaims == nil {
		for i := range claims.Items {
			f.claims = append(f.claims, claims.Items[i].Name)
		}
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
