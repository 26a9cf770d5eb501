//go:build !kind

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// queue is an API server of custom metrics in a member: the length of a queue for a Deployment, and the same for a pod of
// each of two namespaces.
type queue struct {
	length atomic.Int64
	// fail has every value refused.
	fail atomic.Bool
}

const customMetrics = "/apis/custom.metrics.k8s.io/v1beta2"

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, served := strings.CutPrefix(r.URL.Path, customMetrics)
	value := func(kind, namespace, name string) string {
		return fmt.Sprintf(`{"describedObject":{"kind":%q,"namespace":%q,"name":%q},"metric":{"name":"queue"},"timestamp":"2026-01-01T00:00:00Z","value":"%d"}`, kind, namespace, name, q.length.Load())
	}
	list := func(values ...string) {
		_, _ = fmt.Fprintf(w, `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[%s]}`, strings.Join(values, ","))
	}
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case served && path == "":
		resource := `{"name":%q,"singularName":"","namespaced":true,"kind":"MetricValueList","verbs":["get"]}`
		_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"custom.metrics.k8s.io/v1beta2","resources":[`+resource+`,`+resource+`]}`, "deployments.apps/queue", "pods/queue")
	case served && q.fail.Load():
		w.WriteHeader(http.StatusInternalServerError)
	case served && len(parts) == 5 && parts[2] == "deployments.apps":
		list(value("Deployment", parts[1], parts[3]))
	case served && strings.HasPrefix(path, "/namespaces/*/pods/*/"):
		list(value("Pod", "a", "web"), value("Pod", "b", "web"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// serve registers the server in a member.
func (q *queue) serve(t *testing.T, name string) {
	t.Helper()
	server := httptest.NewTLSServer(q)
	t.Cleanup(server.Close)
	objects := fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: queue, namespace: default}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta2.custom.metrics.k8s.io}
spec:
  group: custom.metrics.k8s.io
  version: v1beta2
  groupPriorityMinimum: 100
  versionPriority: 200
  insecureSkipTLSVerify: true
  service: {namespace: default, name: queue, port: %d}
`, server.Listener.Addr().(*net.TCPAddr).Port)
	mustWith(t, objects, member(name, "apply", "-f", "-")...)
	t.Cleanup(func() { ctl(objects, member(name, "delete", "-f", "-")...) })
}

// TestCustomMetrics_OfAllMembers scales a workload by a custom metric that is the sum of those of two members.
func TestCustomMetrics_OfAllMembers(t *testing.T) {
	ns := namespace(t)
	queues := map[string]*queue{"member1": {}, "member2": {}}
	for name, q := range queues {
		q.length.Store(2)
		q.serve(t, name)
	}
	apply(t, ns, deployment("web", 2), policy("web", weighted(1, 1)), `
apiVersion: autoscaling.karmada.io/v1alpha1
kind: FederatedHPA
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 10
  metrics:
  - type: Object
    object:
      describedObject: {apiVersion: apps/v1, kind: Deployment, name: web}
      metric: {name: queue}
      target: {type: AverageValue, averageValue: "1"}
  behavior:
    scaleUp: {policies: [{type: Pods, value: 10, periodSeconds: 1}]}
    scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 10, periodSeconds: 1}]}
`)
	eventually(t, scaledTo(ns, "web", "4"))
	queues["member2"].length.Store(4)
	eventually(t, scaledTo(ns, "web", "6"))

	eventually(t, func() error { // the list may be some seconds old
		code, body, _ := planeAnswer(t, customMetrics)
		if code != http.StatusOK || strings.Count(body, `"pods/queue"`) != 1 || strings.Count(body, `"deployments.apps/queue"`) != 1 {
			return fmt.Errorf("the metrics are %d %s", code, body)
		}
		return nil
	})
	code, body, warnings := planeAnswer(t, customMetrics+"/namespaces/*/pods/*/queue")
	if code != http.StatusOK || strings.Count(body, `"value":"6"`) != 2 || len(warnings) > 0 {
		t.Errorf("the metrics of all namespaces are %d %s, warnings %q", code, body, warnings)
	}
	queues["member1"].fail.Store(true)
	_, body, warnings = planeAnswer(t, customMetrics+"/namespaces/*/pods/*/queue")
	if strings.Count(body, `"value":"4"`) != 2 || len(warnings) != 1 || !strings.Contains(warnings[0], "cluster(member1): its metrics are missing") {
		t.Errorf("without member1: %s, warnings %q", body, warnings)
	}
	// No member's external metrics are served: they are of no cluster.
	if code, body, _ = planeAnswer(t, "/apis/external.metrics.k8s.io/v1beta1"); code != http.StatusNotFound {
		t.Errorf("external metrics are %d %s", code, body)
	}
}
