package installer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// purgeLimit is how long the removal of the data on a node may take.
const purgeLimit = 2 * time.Minute

// findData adds the steps that remove the data of etcd, which come after the pods
// are gone. Where it cannot be removed from here that is an error before anything is
// removed.
func (f *finder) findData(ctx context.Context) error {
	claims := f.host.CoreV1().PersistentVolumeClaims(f.namespace)
	for _, name := range f.claims {
		f.remove("PersistentVolumeClaim", name, claims.Delete)
	}
	switch {
	case f.purge.Path == "" && len(f.claims) == 0:
		return fmt.Errorf("there is no etcd in namespace %s whose data could be found; without --purge-data the rest is removed, and data on a node is removed there, by default in %s", f.namespace, config.DefaultEtcdDataPath)
	case f.purge.Path == "":
		return nil
	case f.purge.Image == "":
		return fmt.Errorf("there is no Deployment %s or %s, by whose image the data is removed from the node; leave out --purge-data, and remove %s there", components.ControllerManager, components.AllInOne, f.purge.Path)
	}
	node, err := f.etcdNode(ctx)
	if err != nil {
		return err
	}
	f.purge.Namespace, f.purge.Node = f.namespace, node
	f.add(fmt.Sprintf("delete data of etcd in %s on node %q", f.purge.Path, node), dataPurge{f.host, f.purge}.run)
	return nil
}

// etcdNode returns the node that the data of etcd is on.
func (f *finder) etcdNode(ctx context.Context) (string, error) {
	pods, err := f.host.CoreV1().Pods(f.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + components.Etcd})
	if err != nil {
		return "", fmt.Errorf("finding the node of etcd: %w", err)
	}
	for i := range pods.Items {
		if node := pods.Items[i].Spec.NodeName; node != "" {
			return node, nil
		}
	}
	nodes, err := f.host.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: components.EtcdNodeLabel})
	if err != nil {
		return "", fmt.Errorf("finding the node of etcd: %w", err)
	}
	if len(nodes.Items) != 1 {
		return "", fmt.Errorf("etcd has no pod, and %d nodes have the label %s: the node of its data is not known; leave out --purge-data, and remove %s there", len(nodes.Items), components.EtcdNodeLabel, f.purge.Path)
	}
	return nodes.Items[0].Name, nil
}

// dataPurge removes the data of etcd from its node.
type dataPurge struct {
	host kubernetes.Interface
	components.Purge
}

// run runs the pod that removes the data, once etcd is gone.
func (d dataPurge) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, purgeLimit, fmt.Errorf("not done after %s", purgeLimit))
	defer cancel()
	o := wait.Options{Interval: podInterval}
	if err := wait.Until(ctx, o, controlPlanePods{d.host, d.Namespace}.checkGone()); err != nil {
		return err
	}
	pods := d.host.CoreV1().Pods(d.Namespace)
	pod := components.PurgeDataPod(d.Purge)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("running a pod on node %s: %w", d.Node, err)
	}
	defer func() { _ = pods.Delete(context.WithoutCancel(ctx), pod.Name, metav1.DeleteOptions{}) }()
	return wait.Until(ctx, o, func(ctx context.Context) error {
		have, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		switch reason, stuck := rollout.PodReason(have); {
		case have.Status.Phase == corev1.PodSucceeded:
			return nil
		case have.Status.Phase == corev1.PodFailed, stuck:
			return wait.Terminal(fmt.Errorf("%s%s; remove %s on node %s", reason.Text, lastWords(have), d.Path, d.Node))
		default:
			return fmt.Errorf("pod %s: %s", pod.Name, reason.Text)
		}
	})
}

// lastWords returns what the container of a pod ended with, after a colon.
func lastWords(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Terminated != nil && s.State.Terminated.Message != "" {
			return ": " + rollout.FirstLine(s.State.Terminated.Message)
		}
	}
	return ""
}
