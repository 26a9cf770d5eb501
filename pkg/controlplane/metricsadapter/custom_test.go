package metricsadapter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

// metric makes a member serve a version of custom.metrics.k8s.io with values at a path.
func (f *federation) metric(cluster, version, path string, values ...map[string]any) {
	gv := "custom.metrics.k8s.io/" + version
	f.servers[cluster].Put("/apis/"+gv, object("v1", "APIResourceList", map[string]any{}, map[string]any{
		"groupVersion": gv,
		"resources": []any{
			map[string]any{"name": "pods/rps", "namespaced": true, "kind": "MetricValueList", "verbs": []any{"get"}},
			map[string]any{"name": "namespaces/load", "namespaced": false, "kind": "MetricValueList", "verbs": []any{"get"}},
			map[string]any{"name": "broken", "namespaced": true, "kind": "MetricValueList", "verbs": []any{"get"}},
		},
	}))
	var items []any
	for _, v := range values {
		items = append(items, v)
	}
	f.servers[cluster].Put("/apis/"+gv+"/"+path, object(gv, "MetricValueList", map[string]any{}, map[string]any{"items": items}))
}

// value returns a value in the form of v1beta2, and of v1beta1.
func value(namespace, name, quantity string) map[string]any {
	return map[string]any{
		"describedObject": map[string]any{"kind": "Pod", "namespace": namespace, "name": name, "apiVersion": "/v1"},
		"metric":          map[string]any{"name": "rps"}, "metricName": "rps",
		"timestamp": "2026-01-01T00:00:00Z", "value": quantity,
	}
}

var rps = provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: "rps"}

func TestCustom_AddsTheValuesOfMembers(t *testing.T) {
	f := newFederation(t, "m1", "m2", "m3", "m4")
	f.metric("m1", "v1beta2", "namespaces/default/pods/*/rps", value("default", "a", "1"), value("default", "b", "2"), value("other", "c", "9"))
	f.metric("m2", "v1beta1", "namespaces/default/pods/*/rps", value("default", "b", "500m"), value("default", "d", "-1"))
	f.metric("m1", "v1beta2", "namespaces/default/pods/a/rps", value("default", "a", "1"))
	f.metric("m2", "v1beta1", "namespaces/default/pods/a/rps", value("default", "a", "3"), value("default", "z", "3"))
	f.metric("m3", "v1beta2", "namespaces/default/metrics/load", map[string]any{
		"describedObject": map[string]any{"kind": "Namespace", "name": "default"}, "metric": map[string]any{"name": "load"}, "timestamp": "2026-01-01T00:00:00Z", "value": "7",
	})
	f.open(t)
	p := &custom{requester: f.requester, ctx: t.Context()}
	ctx, w := warned(t)
	list, err := p.GetMetricBySelector(ctx, "default", labels.Everything(), rps, labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, item := range list.Items {
		got[item.DescribedObject.Name] = item.Value.String()
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2500m", "d": "-1"}, got); diff != "" {
		t.Error(diff)
	}
	one, err := p.GetMetricByName(ctx, types.NamespacedName{Namespace: "default", Name: "a"}, rps, labels.Everything())
	if err != nil || one.Value.String() != "4" || one.Metric.Name != "rps" {
		t.Errorf("got %v, %v", one, err)
	}
	load := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "namespaces"}, Metric: "load"}
	one, err = p.GetMetricByName(ctx, types.NamespacedName{Name: "default"}, load, labels.Everything())
	if err != nil || one.Value.String() != "7" {
		t.Errorf("got %v, %v", one, err)
	}
	_, err = p.GetMetricByName(ctx, types.NamespacedName{Namespace: "default", Name: "none"}, rps, labels.Everything())
	if !apierrors.IsNotFound(err) || err.Error() != "the server could not find the metric rps for pods" {
		t.Errorf("got %v", err)
	}
	if len(*w) > 0 {
		t.Error("a member without custom metrics is no failure", *w)
	}
}

func TestCustom_AllNamespaces(t *testing.T) {
	f := newFederation(t, "m1", "m2")
	const path = "namespaces/*/pods/*/rps"
	f.metric("m1", "v1beta2", path, value("a", "web", "1"), value("b", "web", "2"))
	f.metric("m2", "v1beta2", path, value("b", "web", "3"))
	f.open(t)
	p := &custom{requester: f.requester, ctx: t.Context()}
	list, err := p.GetMetricBySelector(t.Context(), "*", labels.Everything(), rps, labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range list.Items {
		got = append(got, item.DescribedObject.Namespace+"/"+item.DescribedObject.Name+" "+item.Value.String())
	}
	if diff := cmp.Diff([]string{"a/web 1", "b/web 5"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCustom_DiscoveryIsCached(t *testing.T) {
	f := newFederation(t, "m1", "m2", "m3")
	f.metric("m1", "v1beta2", "namespaces/default/pods/*/rps")
	f.metric("m2", "v1beta1", "namespaces/default/pods/*/rps")
	f.open(t)
	f.fail["m3"] = 500
	p := &custom{requester: f.requester, ctx: t.Context()}
	want := []provider.CustomMetricInfo{{GroupResource: schema.GroupResource{Resource: "namespaces"}, Metric: "load"}, rps}
	for range 3 {
		if diff := cmp.Diff(want, p.ListAllMetrics()); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"m1": 1, "m2": 2, "m3": 1}, f.requests); diff != "" {
		t.Error(diff)
	}
}

// TestCustom_StaysBelowItsPath requests what would be another path in a member, where the adapter has all rights.
func TestCustom_StaysBelowItsPath(t *testing.T) {
	f := newFederation(t, "m1")
	f.metric("m1", "v1beta2", "namespaces/default/pods/*/rps")
	f.open(t)
	p := &custom{requester: f.requester, ctx: t.Context()}
	for _, name := range []string{"..", ".", "a/b", "a%2fb", ""} {
		clear(f.requests)
		info := rps
		info.Metric = name
		for _, err := range []error{
			second(p.GetMetricByName(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, rps, labels.Everything())),
			second(p.GetMetricByName(t.Context(), types.NamespacedName{Namespace: name + "/..", Name: "a"}, rps, labels.Everything())),
			second(p.GetMetricBySelector(t.Context(), "default", labels.Everything(), info, labels.Everything())),
		} {
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "is no name of") {
				t.Errorf("%q: got %v", name, err)
			}
		}
		if len(f.requests) > 0 {
			t.Errorf("%q: the member got a request", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }
