package federatedhpa

import (
	"context"
	"fmt"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	customclient "k8s.io/metrics/pkg/client/custom_metrics"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// metricsTimeout bounds a request to the metrics APIs of the control plane, which request them from members.
const metricsTimeout = 15 * time.Second

// metricsSource reads the metrics APIs.
type metricsSource interface {
	pods(ctx context.Context, namespace string, selector labels.Selector) ([]metricsv1beta1.PodMetrics, error)
	// podMetric returns a custom metric of pods, objectMetric that of one object.
	podMetric(namespace string, selector labels.Selector, metric autoscalingv2.MetricIdentifier) ([]v1beta2.MetricValue, error)
	objectMetric(namespace string, source *autoscalingv2.ObjectMetricSource) ([]v1beta2.MetricValue, error)
}

func getOptions() metav1.GetOptions { return metav1.GetOptions{} }

// planeMetrics reads the metrics APIs of the control plane.
type planeMetrics struct {
	resource resourceclient.MetricsV1beta1Interface
	custom   customclient.CustomMetricsClient
	versions customclient.AvailableAPIsGetter
	period   time.Duration
}

func newMetricsSource(mgr manager.Manager, period time.Duration) (*planeMetrics, error) {
	// What the metrics APIs return comes from members.
	cfg := access.Guard(rest.CopyConfig(mgr.GetConfig()))
	cfg.Timeout = metricsTimeout
	resource, err := resourceclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to metrics.k8s.io: %w", err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to custom.metrics.k8s.io: %w", err)
	}
	versions := customclient.NewAvailableAPIsGetter(found)
	return &planeMetrics{
		resource: resource, versions: versions, period: period,
		custom: customclient.NewForConfig(cfg, mgr.GetRESTMapper(), versions),
	}, nil
}

// Start forgets the served version of custom metrics at regular times.
func (p *planeMetrics) Start(ctx context.Context) error {
	customclient.PeriodicallyInvalidate(p.versions, p.period, ctx.Done())
	return nil
}

func (p *planeMetrics) pods(ctx context.Context, namespace string, selector labels.Selector) ([]metricsv1beta1.PodMetrics, error) {
	list, err := p.resource.PodMetricses(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (p *planeMetrics) podMetric(namespace string, selector labels.Selector, metric autoscalingv2.MetricIdentifier) ([]v1beta2.MetricValue, error) {
	metricSelector, err := validation.LabelSelector(metric.Selector)
	if err != nil {
		return nil, err
	}
	list, err := p.custom.NamespacedMetrics(namespace).GetForObjects(schema.GroupKind{Kind: "Pod"}, selector, metric.Name, metricSelector)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (p *planeMetrics) objectMetric(namespace string, source *autoscalingv2.ObjectMetricSource) ([]v1beta2.MetricValue, error) {
	metricSelector, err := validation.LabelSelector(source.Metric.Selector)
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(source.DescribedObject.APIVersion)
	if err != nil {
		return nil, err
	}
	kind, name, metrics := gv.WithKind(source.DescribedObject.Kind).GroupKind(), source.DescribedObject.Name, p.custom.NamespacedMetrics(namespace)
	if autoscaling.OfNamespace(source) {
		name, metrics = namespace, p.custom.RootScopedMetrics()
	}
	value, err := metrics.GetForObject(kind, name, source.Metric.Name, metricSelector)
	if err != nil {
		return nil, err
	}
	return []v1beta2.MetricValue{*value}, nil
}

// fetch reads the metrics of an object at the same time: those of resources once, for all that need them.
func (r *reconciler) fetch(ctx context.Context, obj *autoscalingv1alpha1.FederatedHPA, selector labels.Selector) autoscaling.Metrics {
	obj = obj.DeepCopy()
	autoscalingv1alpha1.DefaultFederatedHPA(obj)
	out := autoscaling.Metrics{Custom: map[int]autoscaling.Custom{}}
	var group sync.WaitGroup
	var mu sync.Mutex
	custom := func(i int, kind string, read func() ([]v1beta2.MetricValue, error)) {
		group.Go(func() {
			began := r.clock.Now()
			values, err := read()
			r.observe.pull(kind, r.clock.Since(began), err)
			mu.Lock()
			defer mu.Unlock()
			out.Custom[i] = autoscaling.Custom{Values: values, Err: err}
		})
	}
	resources := false
	for i := range obj.Spec.Metrics {
		spec := &obj.Spec.Metrics[i]
		switch {
		case spec.Pods != nil:
			custom(i, typeRaw, func() ([]v1beta2.MetricValue, error) {
				return r.metrics.podMetric(obj.Namespace, selector, spec.Pods.Metric)
			})
		case spec.Object != nil:
			custom(i, typeObject, func() ([]v1beta2.MetricValue, error) { return r.metrics.objectMetric(obj.Namespace, spec.Object) })
		case spec.Resource != nil, spec.ContainerResource != nil:
			resources = true
		}
	}
	if resources {
		began := r.clock.Now()
		out.Pods, out.PodsErr = r.metrics.pods(ctx, obj.Namespace, selector)
		r.observe.pull(typeResource, r.clock.Since(began), out.PodsErr)
	}
	group.Wait()
	return out
}

// readyOf returns the Ready condition of a pod, alone.
func readyOf(p *corev1.Pod) []corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return nil
}
