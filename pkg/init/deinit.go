package installer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	steps []removalStep
	pods  controlPlanePods
	// claims and path are where data is kept, unless its removal was requested.
	claims []string
	path   string
}

// RemovalOptions choose what is removed besides the objects that every init makes again.
type RemovalOptions struct {
	// Namespace removes the namespace with everything in it.
	Namespace bool
	// Data removes the data of etcd: without it, the next init on the data brings the
	// old federation back.
	Data bool
}

// removalStep is one object to remove.
type removalStep struct {
	// text is the line that reports it.
	text string
	do   func(context.Context) error
}

// PlanRemoval finds what init made in a namespace of the host cluster.
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
	if _, err := host.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return nil, hostcluster.NotInstalled(namespace)
	} else if err != nil {
		return nil, err
	}
	f := &finder{host: host, namespace: namespace}
	if err := f.findObjects(ctx); err != nil {
		return nil, err
	}
	if o.Data {
		if err := f.findData(ctx); err != nil {
			return nil, err
		}
	}
	if o.Namespace {
		f.remove("Namespace", namespace, host.CoreV1().Namespaces().Delete)
	}
	if err := f.findNodes(ctx); err != nil {
		return nil, err
	}
	return &Removal{steps: f.steps, pods: controlPlanePods{host, namespace}, claims: f.claims, path: f.purge.Path}, nil
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
// are kept unless their removal was requested.
func (r *Removal) Claims() []string { return r.claims }

// DataPath is the directory on a node that holds etcd's data, empty when there is
// none, or no etcd. It is kept unless its removal was requested.
func (r *Removal) DataPath() string { return r.path }

// Run removes what was found, reports each step, and waits until the pods are gone. What
// is gone already is no error.
func (r *Removal) Run(ctx context.Context, report func(string)) error {
	var errs []error
	for _, s := range r.steps {
		report(s.text)
		if err := s.do(ctx); err != nil && !apierrors.IsNotFound(err) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			errs = append(errs, fmt.Errorf("%s: %w", s.text, err))
		}
	}
	return errors.Join(append(errs, r.pods.waitGone(ctx, report))...)
}

// controlPlanePods are the pods of a control plane that is removed.
type controlPlanePods struct {
	host      kubernetes.Interface
	namespace string
}

// waitGone returns when they are gone.
func (p controlPlanePods) waitGone(ctx context.Context, report func(string)) error {
	err := wait.Until(ctx, wait.Options{Interval: podInterval, Timeout: removeLimit, Publish: func(reason error) {
		if reason != nil {
			report("waiting for pods to end: " + reason.Error())
		}
	}}, p.checkGone())
	if errors.Is(err, wait.ErrTimeout) {
		return fmt.Errorf("waiting for pods to end: %w; see to them with \"kubectl -n %s describe pods\"", err, p.namespace)
	}
	return err
}

// checkGone returns a check whose error names the pods that are left.
func (p controlPlanePods) checkGone() func(context.Context) error {
	terminating := map[string]bool{}
	return func(ctx context.Context) error {
		left, err := p.left(ctx, terminating)
		if err == nil && len(left) > 0 {
			err = errors.New(strings.Join(left, ", "))
		}
		return err
	}
}

// left returns the pods that are left. No client uses the servers any more, so that those
// that are terminating need no grace period; etcd has its time to close its files.
func (p controlPlanePods) left(ctx context.Context, terminating map[string]bool) ([]string, error) {
	pods := p.host.CoreV1().Pods(p.namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app"})
	if err != nil {
		return nil, hostcluster.ConnectionError(err)
	}
	var out []string
	for _, pod := range list.Items {
		if !components.IsWorkload(pod.Labels["app"]) {
			continue
		}
		if pod.DeletionTimestamp != nil && pod.Labels["app"] != components.Etcd && !terminating[pod.Name] {
			terminating[pod.Name] = true
			grace := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}
			if err := pods.Delete(ctx, pod.Name, grace); hostcluster.ConnectionError(err) != nil {
				return nil, err
			}
		}
		if pod.DeletionTimestamp != nil || metav1.GetControllerOf(&pod) != nil {
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				out = append(out, pod.Name)
			}
		}
	}
	return out, nil
}
