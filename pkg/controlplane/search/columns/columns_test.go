package columns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"n","creationTimestamp":"1999-12-31T23:59:00Z"},
"spec":{"nodeName":"node1","containers":[{"name":"a"},{"name":"b"}]},"status":{"phase":"Running","podIP":"10.0.0.1",
"containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}},{"name":"b","restartCount":2,"state":{"running":{}},"lastState":{"terminated":{"finishedAt":"1999-12-31T23:59:30Z"}}}]}}`
	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","creationTimestamp":"1999-12-31T23:59:00Z"},
"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"spec":{"containers":[{"name":"web","image":"nginx"}]}}},"status":{"readyReplicas":2,"updatedReplicas":3,"availableReplicas":2}}`
	widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","creationTimestamp":"1999-12-31T23:59:00Z"},"spec":{"size":4,"since":"1999-12-31T23:59:50Z"}}`
)

func widgets() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1"}, {
		Name: "v1", AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Size", Type: "integer", JSONPath: ".spec.size"}, {Name: "Since", Type: "date", JSONPath: ".spec.since"},
			{Name: "Missing", Type: "string", JSONPath: ".spec.missing"},
		},
	}}
	return d
}

// layout returns the names of the columns of a kind, and the cells of an object.
func layout(t *testing.T, l *Layouts, resource, object string) (names, cells string) {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal([]byte(object), &head); err != nil {
		t.Fatal(err)
	}
	kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
	found, err := l.Of(t.Context(), schema.GroupResource{Group: kind.Group, Resource: resource}, kind)
	if err != nil {
		t.Fatal(err)
	}
	of := make([]string, 0, len(found.Columns()))
	for _, c := range found.Columns() {
		of = append(of, c.Name)
	}
	got, err := found.Cells([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(of, "|"), strings.ReplaceAll(fmt.Sprint(got...), "<nil>", "-")
}

// Kinds have their own columns, and times are those of the moment.
func TestLayouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(func(_ context.Context, resource schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
			if resource.Resource == "widgets" {
				return widgets(), nil
			}
			return nil, nil // there is no definition
		})
		of := func(resource, object string) string {
			names, cells := layout(t, l, resource, object)
			return names + " = " + cells
		}
		for minute, want := range [][]string{{
			"Name|Ready|Status|Restarts|Age|IP|Node|Nominated Node|Readiness Gates = web1/2 Running2 (30s ago)60s10.0.0.1 node1 <none> <none>",
			"Name|Ready|Up-to-date|Available|Age|Containers|Images|Selector = web2/3 3 2 60s web nginx app=web",
			"Name|Size|Since|Missing = w 410s -",
			"Name|Age = other60s",
		}, {
			"Name|Ready|Status|Restarts|Age|IP|Node|Nominated Node|Readiness Gates = web1/2 Running2 (90s ago)2m10.0.0.1 node1 <none> <none>",
			"Name|Ready|Up-to-date|Available|Age|Containers|Images|Selector = web2/3 3 2 2m web nginx app=web",
			"Name|Size|Since|Missing = w 470s -",
			"Name|Age = other2m",
		}} {
			time.Sleep(time.Duration(minute) * time.Minute)
			got := []string{
				of("pods", pod), of("deployments", deployment), of("widgets", widget),
				of("others", strings.NewReplacer("Widget", "Other", `"w"`, `"other"`).Replace(widget)),
			}
			for i := range got {
				if strings.ReplaceAll(got[i], " ", "") != strings.ReplaceAll(want[i], " ", "") {
					t.Errorf("minute %d:\n got %s\nwant %s", minute, got[i], want[i])
				}
			}
		}
	})
}

// The kinds that users look at most have the columns of Kubernetes.
func TestLayouts_OfKubernetes(t *testing.T) {
	l := New(func(context.Context, schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
		return nil, errors.New("it was asked for a definition")
	})
	for _, kind := range []string{
		"v1/Pod", "v1/Service", "v1/Node", "v1/Event", "v1/ConfigMap", "v1/Secret", "v1/Namespace", "v1/PersistentVolumeClaim", "v1/ResourceQuota",
		"apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/DaemonSet", "apps/v1/ReplicaSet", "batch/v1/Job", "batch/v1/CronJob",
		"autoscaling/v2/HorizontalPodAutoscaler", "networking.k8s.io/v1/Ingress", "networking.k8s.io/v1/NetworkPolicy", "policy/v1/PodDisruptionBudget",
		"rbac.authorization.k8s.io/v1/RoleBinding", "storage.k8s.io/v1/StorageClass", "discovery.k8s.io/v1/EndpointSlice", "coordination.k8s.io/v1/Lease",
		"scheduling.k8s.io/v1/PriorityClass", "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "certificates.k8s.io/v1/CertificateSigningRequest",
		"events.k8s.io/v1/Event", "flowcontrol.apiserver.k8s.io/v1/FlowSchema", "node.k8s.io/v1/RuntimeClass", "resource.k8s.io/v1/DeviceClass",
	} {
		parts := strings.Split("/"+kind, "/")
		parts = parts[len(parts)-3:]
		found, err := l.Of(t.Context(), schema.GroupResource{}, schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if !slices.ContainsFunc(found.Columns(), func(c metav1.TableColumnDefinition) bool { return c.Name == "Age" || c.Name == "Last Seen" }) {
			t.Errorf("%s: %v", kind, found.Columns())
		}
	}
}

// An object of a member that no API server would have stored is an error, nothing worse.
func FuzzCells(f *testing.F) {
	for _, object := range []string{pod, deployment, `{"apiVersion":"v1","kind":"Pod"}`, `{"apiVersion":"v1","kind":"Secret"}`, `{"kind":"Deployment","apiVersion":"apps/v1","spec":{"selector":{"matchExpressions":[{"operator":"?"}]}}}`} {
		f.Add(object)
	}
	l := New(nil)
	layouts := map[string]Layout{}
	for _, kind := range []string{"Pod", "Service", "Node", "Event", "Secret", "PersistentVolume", "ResourceQuota"} {
		found, err := l.Of(f.Context(), schema.GroupResource{}, schema.GroupVersionKind{Version: "v1", Kind: kind})
		if err != nil {
			f.Fatal(err)
		}
		layouts[kind] = found
	}
	f.Fuzz(func(t *testing.T, object string) {
		for kind, layout := range layouts {
			cells, err := layout.Cells([]byte(object))
			if err == nil && len(cells) != len(layout.Columns()) {
				t.Errorf("%s has %d cells and %d columns", kind, len(cells), len(layout.Columns()))
			}
		}
	})
}

// A definition is read again when it is another version, or there was none; an error is not kept.
func TestRemember(t *testing.T) {
	failing := errors.New("no answer")
	version, failure, asked := "", error(nil), 0
	d := Remember(func(context.Context, schema.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
		asked++
		out := widgets()
		out.ResourceVersion = version
		return out, nil
	}, func(context.Context, schema.GroupResource) (string, error) { return version, failure })
	for _, step := range []struct {
		version string
		failure error
		asked   int
	}{{"", nil, 0}, {"1", failing, 0}, {"1", nil, 1}, {"1", nil, 1}, {"2", nil, 2}, {"", nil, 2}, {"2", nil, 3}} {
		version, failure = step.version, step.failure
		found, err := d(t.Context(), schema.GroupResource{Group: "example.com", Resource: "widgets"})
		if !errors.Is(err, failure) || asked != step.asked || (found != nil) != (version != "" && failure == nil) || found != nil && found.ResourceVersion != version {
			t.Errorf("%+v: asked %d times, found %v, %v", step, asked, found, err)
		}
	}
}

func BenchmarkCells(b *testing.B) {
	found, err := New(nil).Of(b.Context(), schema.GroupResource{}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := found.Cells([]byte(pod)); err != nil {
			b.Fatal(err)
		}
	}
}
