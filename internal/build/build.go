// Package build builds objects for tests.
package build

import (
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Cluster returns a cluster with options, such as Ready.
func Cluster(name string, options ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	for _, option := range options {
		option(c)
	}
	return c
}

// Ready sets the condition Ready of a cluster.
func Ready(status metav1.ConditionStatus) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: status})
	}
}

// Taints adds taints to a cluster.
func Taints(taints ...corev1.Taint) func(*clusterv1alpha1.Cluster) {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = append(c.Spec.Taints, taints...) }
}

// Deployment returns a template with one container, in the namespace default, as an API server
// returns it: with UID and resource version, generation 1 and the label app.
func Deployment(name string, replicas int64) *unstructured.Unstructured {
	obj := Object("apps/v1", "Deployment", "default", name)
	obj.SetGeneration(1)
	obj.SetLabels(map[string]string{"app": name})
	obj.Object["spec"] = map[string]any{
		"replicas": replicas,
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "nginx"}}}},
	}
	return obj
}

// Object returns an object of any kind with UID and resource version.
func Object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(types.UID("uid-" + name))
	obj.SetResourceVersion("10")
	return obj
}

// Bounded fails a test if fn allocates more than so many bytes or takes longer than the limit. Both are generous: they
// distinguish work in proportion to its input from work that multiplies. Parallel tests in the process count as well, and the
// race detector drops pooled buffers and takes its time, so that both count four times.
func Bounded(t testing.TB, limit time.Duration, bytes uint64, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := clock.RealClock{}.Now()
	fn()
	took := clock.RealClock{}.Since(start)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4*bytes {
		t.Errorf("it allocated %d bytes, more than %d", allocated, 4*bytes)
	}
	if took > 4*limit {
		t.Errorf("it took %s, more than %s", took, 4*limit)
	}
}
