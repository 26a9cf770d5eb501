package metricsadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/karmada-toolkit/karmada/internal/quantity"
)

// allObjects is the name of objects in requests for those that a selector selects.
const allObjects = "*"

// custom serves the custom metrics of all members.
type custom struct {
	*requester
	ctx context.Context //nolint:containedctx // the life of the server: the library lists metrics without a context

	listing listing
}

var _ provider.CustomMetricsProvider = &custom{}

// GetMetricByName implements provider.CustomMetricsProvider: the sum of the values in all members.
func (p *custom) GetMetricByName(ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo, metric labels.Selector) (*custom_metrics.MetricValue, error) {
	values, err := p.values(ctx, query{info: info, namespace: name.Namespace, name: name.Name, metric: metric})
	if err != nil {
		return nil, err
	}
	sum := values[0]
	for _, v := range values[1:] {
		sum.Value.Add(v.Value)
	}
	return &sum, nil
}

// GetMetricBySelector implements provider.CustomMetricsProvider: the sum of the values in all members for each namespace
// and name. There are several namespaces if that of the request is "*".
func (p *custom) GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo, metric labels.Selector) (*custom_metrics.MetricValueList, error) {
	values, err := p.values(ctx, query{info: info, namespace: namespace, name: allObjects, objects: selector, metric: metric})
	if err != nil {
		return nil, err
	}
	sums := map[types.NamespacedName]custom_metrics.MetricValue{}
	for _, v := range values {
		key := types.NamespacedName{Namespace: v.DescribedObject.Namespace, Name: v.DescribedObject.Name}
		if sum, ok := sums[key]; ok {
			v.Value.Add(sum.Value)
		}
		sums[key] = v
	}
	list := &custom_metrics.MetricValueList{Items: slices.Collect(maps.Values(sums))}
	slices.SortFunc(list.Items, func(a, b custom_metrics.MetricValue) int {
		return cmp.Or(cmp.Compare(a.DescribedObject.Namespace, b.DescribedObject.Namespace), cmp.Compare(a.DescribedObject.Name, b.DescribedObject.Name))
	})
	return list, nil
}

// values returns the values that the members have, those of the first member first, or a NotFound error.
func (p *custom) values(ctx context.Context, q query) ([]custom_metrics.MetricValue, error) {
	segments, err := q.path()
	if err != nil {
		return nil, err
	}
	clusters, missing := p.members.snapshot()
	lists, failed := each(ctx, p.requester, clusters, func(ctx context.Context, c *cluster) ([]custom_metrics.MetricValue, error) {
		return c.values(ctx, q, segments)
	})
	warn(ctx, append(missing, failed...))
	values := slices.Concat(lists...)
	if len(values) == 0 {
		return nil, provider.NewMetricNotFoundError(q.info.GroupResource, q.info.Metric)
	}
	return values, nil
}

// ListAllMetrics implements provider.CustomMetricsProvider: those of all members, each once, as they were last listed. The API
// server of the control plane waits for the answer, so only the first request waits for members, and not for long.
func (p *custom) ListAllMetrics() []provider.CustomMetricInfo {
	return p.listing.get(p.ctx, p.members.clock, p.listAll)
}

// listAll asks the members for their metrics.
func (p *custom) listAll() []provider.CustomMetricInfo {
	clusters, _ := p.members.snapshot()
	lists, _ := each(p.ctx, p.requester, clusters, func(ctx context.Context, c *cluster) ([]provider.CustomMetricInfo, error) {
		found, err := c.customMetrics(ctx)
		return found.metrics, err
	})
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b provider.CustomMetricInfo) int {
		return cmp.Or(cmp.Compare(a.GroupResource.String(), b.GroupResource.String()), cmp.Compare(a.Metric, b.Metric), compareBool(a.Namespaced, b.Namespaced))
	})
	return slices.Compact(all)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// query is a request for custom metrics.
type query struct {
	info            provider.CustomMetricInfo
	namespace, name string
	// objects selects objects if the name is allObjects, metric selects series.
	objects, metric labels.Selector
}

// ofNamespace reports whether the metric describes a namespace.
func (q *query) ofNamespace() bool {
	return q.info.GroupResource == corev1.Resource("namespaces") && q.namespace == ""
}

// path returns the path of the request to a member, below the version. Each part must be one segment: the request is
// sent with the rights of the control plane in the member.
func (q *query) path() ([]string, error) {
	segments := []string{q.info.GroupResource.String(), q.name, q.info.Metric}
	switch {
	case q.ofNamespace():
		segments = []string{"namespaces", q.name, "metrics", q.info.Metric}
	case q.namespace != "":
		segments = append([]string{"namespaces", q.namespace}, segments...)
	}
	for _, s := range segments {
		if problems := content.IsPathSegmentName(s); s == "" || len(problems) > 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%q is no name of a resource, object or metric", s))
		}
	}
	return segments, nil
}

// values returns the values that a member has.
func (c *cluster) values(ctx context.Context, q query, segments []string) ([]custom_metrics.MetricValue, error) {
	found, err := c.customMetrics(ctx)
	if err != nil || found.version == "" {
		return nil, err
	}
	req := c.rest.Get().AbsPath(append([]string{"/apis", custom_metrics.GroupName, found.version}, segments...)...)
	if q.objects != nil && !q.objects.Empty() {
		req = req.Param("labelSelector", q.objects.String())
	}
	if !q.metric.Empty() {
		req = req.Param("metricLabelSelector", q.metric.String())
	}
	data, err := req.Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := struct {
		Items []valueView `json:"items"`
	}{}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("reading custom metrics: %w", err)
	}
	out := make([]custom_metrics.MetricValue, 0, len(list.Items))
	for i := range list.Items {
		if v, err := list.Items[i].value(); err == nil && q.concerns(&v.DescribedObject) {
			out = append(out, v)
		}
	}
	return out, nil
}

// valueView is a value in either version. Its quantity is not decoded: that of some texts takes minutes.
type valueView struct {
	DescribedObject corev1.ObjectReference   `json:"describedObject"`
	Metric          v1beta2.MetricIdentifier `json:"metric"`
	Timestamp       metav1.Time              `json:"timestamp"`
	WindowSeconds   *int64                   `json:"windowSeconds"`
	Value           json.RawMessage          `json:"value"`

	// MetricName, Selector and Window are of v1beta1 only.
	MetricName string                `json:"metricName"`
	Selector   *metav1.LabelSelector `json:"selector"`
	Window     *int64                `json:"window"`
}

// value returns the value, or an error if it is no quantity.
func (v *valueView) value() (custom_metrics.MetricValue, error) {
	parsed, err := quantity.ParseJSON(v.Value)
	o := &v.DescribedObject
	return custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{
			Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, APIVersion: o.APIVersion,
			ResourceVersion: o.ResourceVersion, FieldPath: o.FieldPath,
		},
		Metric:        custom_metrics.MetricIdentifier{Name: cmp.Or(v.Metric.Name, v.MetricName), Selector: cmp.Or(v.Metric.Selector, v.Selector)},
		Timestamp:     v.Timestamp,
		WindowSeconds: cmp.Or(v.WindowSeconds, v.Window),
		Value:         parsed,
	}, err
}

// concerns reports whether a described object can be a result. A member may report others, such as those of namespaces
// that the client may not read.
func (q *query) concerns(o *custom_metrics.ObjectReference) bool {
	if !q.ofNamespace() && q.namespace != allObjects && o.Namespace != q.namespace {
		return false
	}
	return q.name == allObjects || o.Name == q.name
}

// external serves no external metrics: they are of no cluster.
type external struct{}

var _ provider.ExternalMetricsProvider = external{}

// GetExternalMetric implements provider.ExternalMetricsProvider.
func (external) GetExternalMetric(context.Context, string, labels.Selector, provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	return nil, errors.New("karmada-metrics-adapter still not implement it")
}

// ListAllExternalMetrics implements provider.ExternalMetricsProvider.
func (external) ListAllExternalMetrics() []provider.ExternalMetricInfo { return nil }
