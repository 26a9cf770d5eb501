package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

const (
	// removeLimit is how long pods may take to end.
	removeLimit = 60 * time.Second
	// podInterval is the time between two lists of the pods that are to end.
	podInterval = 250 * time.Millisecond
)

// Removal is what a control plane leaves in a host cluster: everything that init
// made, and nothing else.
type Removal struct {
	host      kubernetes.Interface
	namespace string
	steps     []removal
	// claims hold data; path is where it is on a node. It is kept unless it was asked to
	// be removed.
	claims []string
	path   string
	purge  components.Purge
}

// RemovalOptions say what goes beside what init made anew each time.
type RemovalOptions struct {
	// Namespace removes the namespace with everything in it.
	Namespace bool
	// Data removes the data of etcd: without it, the next init on the data brings the
	// old federation back.
	Data bool
}

// removal is one object to remove.
type removal struct {
	// text is how it is told.
	text string
	do   func(context.Context) error
}

// PlanRemoval looks for what init made in a namespace of the host cluster.
func PlanRemoval(ctx context.Context, cfg *rest.Config, namespace string, o RemovalOptions) (*Removal, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	host, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	if err := hostcluster.RefuseControlPlane(cfg.Host, host.Discovery()); err != nil {
		return nil, err
	}
	return planRemoval(ctx, host, namespace, o)
}

func planRemoval(ctx context.Context, host kubernetes.Interface, namespace string, o RemovalOptions) (*Removal, error) {
	if _, err := host.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	r := &Removal{host: host, namespace: namespace}
	for _, find := range []func(context.Context) error{r.findDeployments, r.findStatefulSets, r.findServices, r.findSecrets, r.findClaims} {
		if err := find(ctx); err != nil {
			return nil, err
		}
	}
	if o.Data {
		if err := r.purgeData(ctx); err != nil {
			return nil, err
		}
	}
	if o.Namespace {
		r.add(fmt.Sprintf("delete Namespace %q", namespace), func(ctx context.Context) error {
			return host.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		})
	}
	return r, r.findNodes(ctx)
}

func (r *Removal) add(text string, do func(context.Context) error) {
	r.steps = append(r.steps, removal{text, do})
}

// withPods removes an object together with its pods, which then can be waited for.
func withPods() metav1.DeleteOptions {
	return metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
}

func (r *Removal) findDeployments(ctx context.Context) error {
	c := r.host.AppsV1().Deployments(r.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the Deployments of the control plane: %w", err)
	}
	for _, d := range list.Items {
		if pod := &d.Spec.Template.Spec; d.Name == components.ControllerManager && len(pod.Containers) > 0 {
			r.purge.Image, r.purge.PullPolicy, r.purge.PullSecrets = pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy, pod.ImagePullSecrets
		}
		r.add(fmt.Sprintf("delete deployment %q", d.Name), func(ctx context.Context) error { return c.Delete(ctx, d.Name, withPods()) })
	}
	return nil
}

func (r *Removal) findStatefulSets(ctx context.Context) error {
	c := r.host.AppsV1().StatefulSets(r.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the StatefulSets of the control plane: %w", err)
	}
	for _, s := range list.Items {
		for _, v := range s.Spec.Template.Spec.Volumes {
			if v.HostPath != nil {
				r.path = v.HostPath.Path
				r.purge.Path = r.path
			}
		}
		r.add(fmt.Sprintf("delete StatefulSet: %q", s.Name), func(ctx context.Context) error { return c.Delete(ctx, s.Name, withPods()) })
	}
	return nil
}

func (r *Removal) findServices(ctx context.Context) error {
	c := r.host.CoreV1().Services(r.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the Services of the control plane: %w", err)
	}
	for _, s := range list.Items {
		r.add(fmt.Sprintf("delete Service %q", s.Name), func(ctx context.Context) error { return c.Delete(ctx, s.Name, metav1.DeleteOptions{}) })
	}
	return nil
}

func (r *Removal) findSecrets(ctx context.Context) error {
	c := r.host.CoreV1().Secrets(r.namespace)
	list, err := c.List(ctx, components.Installed())
	if err != nil {
		return fmt.Errorf("listing the Secrets of the control plane: %w", err)
	}
	for _, s := range list.Items {
		r.add(fmt.Sprintf("delete Secrets %q", s.Name), func(ctx context.Context) error { return c.Delete(ctx, s.Name, metav1.DeleteOptions{}) })
	}
	return nil
}

// findClaims notes the claims of etcd: data is never removed without being named.
func (r *Removal) findClaims(ctx context.Context) error {
	list, err := r.host.CoreV1().PersistentVolumeClaims(r.namespace).List(ctx, components.Installed())
	if err != nil {
		return hostcluster.ConnectionError(err)
	}
	for _, c := range list.Items {
		r.claims = append(r.claims, c.Name)
	}
	return nil
}

// findNodes looks for nodes that init labelled, unless another control plane of
// the cluster needs the label.
func (r *Removal) findNodes(ctx context.Context) error {
	sets, err := r.host.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, components.Installed())
	if hostcluster.ConnectionError(err) != nil {
		return fmt.Errorf("looking for other control planes: %w", err)
	}
	if err == nil && slices.ContainsFunc(sets.Items, func(s appsv1.StatefulSet) bool {
		_, ok := s.Spec.Template.Spec.NodeSelector[components.EtcdNodeLabel]
		return ok && s.Namespace != r.namespace
	}) {
		return nil
	}
	list, err := r.host.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: components.EtcdNodeLabel})
	if err != nil {
		return fmt.Errorf("listing the nodes of etcd: %w", err)
	}
	for i := range list.Items {
		node := &list.Items[i]
		r.add(fmt.Sprintf("remove node %q labels %q", node.Name, components.EtcdNodeLabel), func(ctx context.Context) error {
			patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, components.EtcdNodeLabel)
			_, err := r.host.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
	if len(list.Items) == 0 {
		r.add(fmt.Sprintf("node not found by label %q", components.EtcdNodeLabel), func(context.Context) error { return nil })
	}
	return nil
}

// Lines are what would be done, one line each.
func (r *Removal) Lines() []string {
	var out []string
	for _, s := range r.steps {
		out = append(out, s.text)
	}
	return out
}

// Claims are the names of the PersistentVolumeClaims that hold etcd's data. They
// are kept unless they are to be removed.
func (r *Removal) Claims() []string { return r.claims }

// DataPath is the directory on a node that holds etcd's data, empty when there is
// none, or no etcd. It is kept unless it is to be removed.
func (r *Removal) DataPath() string { return r.path }

// Run removes what was found, says each step, and waits until the pods are gone. What
// is gone already is no error.
func (r *Removal) Run(ctx context.Context, say func(string)) error {
	var errs []error
	for _, s := range r.steps {
		say(s.text)
		if err := s.do(ctx); err != nil && !apierrors.IsNotFound(err) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			errs = append(errs, fmt.Errorf("%s: %w", s.text, err))
		}
	}
	return errors.Join(append(errs, r.waitForPods(ctx, say))...)
}

// waitForPods returns when the pods of the control plane are gone.
func (r *Removal) waitForPods(ctx context.Context, say func(string)) error {
	err := wait.Until(ctx, wait.Options{Interval: podInterval, Timeout: removeLimit, Publish: func(reason error) {
		if reason != nil {
			say("waiting for pods to end: " + reason.Error())
		}
	}}, r.podsGone(map[string]bool{}))
	if errors.Is(err, wait.ErrTimeout) {
		return fmt.Errorf("waiting for pods to end: %w; see to them with \"kubectl -n %s describe pods\"", err, r.namespace)
	}
	return err
}

// podsGone returns a check that names the pods that are left. Those in terminating were ended faster already.
func (r *Removal) podsGone(terminating map[string]bool) func(context.Context) error {
	return func(ctx context.Context) error {
		left, err := r.pods(ctx, terminating)
		if err == nil && len(left) > 0 {
			err = errors.New(strings.Join(left, ", "))
		}
		return err
	}
}

// pods returns those that are left. Nobody uses the servers any more, so that they
// need no time for their clients; etcd has its time to close its files.
func (r *Removal) pods(ctx context.Context, terminating map[string]bool) ([]string, error) {
	list, err := r.host.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app in (" + strings.Join(components.WorkloadNames(), ",") + ")"})
	if err != nil {
		return nil, hostcluster.ConnectionError(err)
	}
	var out []string
	for _, p := range list.Items {
		if p.DeletionTimestamp != nil && p.Labels["app"] != components.Etcd && !terminating[p.Name] {
			terminating[p.Name] = true
			grace := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}
			if err := r.host.CoreV1().Pods(r.namespace).Delete(ctx, p.Name, grace); hostcluster.ConnectionError(err) != nil {
				return nil, err
			}
		}
		if p.DeletionTimestamp != nil || slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }) {
			if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				out = append(out, p.Name)
			}
		}
	}
	return out, nil
}
