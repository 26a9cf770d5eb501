package follow_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// TestProjection_HostileMembers reads each kind of source from members that answer anything, and then what they should.
func TestProjection_HostileMembers(t *testing.T) {
	sources := map[string]func(*access.Member) follow.Source{
		"Pod":           func(m *access.Member) follow.Source { return follow.Pods(m, follow.Selection{Phases: follow.Running}) },
		"Node":          follow.Nodes,
		"Deployment":    follow.Deployments,
		"ReplicaSet":    follow.ReplicaSets,
		"ResourceQuota": follow.ResourceQuotas,
		"ConfigMap": func(m *access.Member) follow.Source {
			return follow.Objects(m, corev1.SchemeGroupVersion.WithResource("configmaps"), follow.Selection{})
		},
		"Secret": func(m *access.Member) follow.Source {
			return follow.Metadata(m, corev1.SchemeGroupVersion.WithResource("secrets"))
		},
	}
	version := func(kind string) string {
		if kind == "Deployment" || kind == "ReplicaSet" {
			return "apps/v1"
		}
		return "v1"
	}
	object := func(kind, name, more string) string {
		if kind == "Secret" {
			return fmt.Sprintf(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"ns","name":%q%s}}`, name, more)
		}
		return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"namespace":"ns","name":%q%s}}`, kind, version(kind), name, more)
	}
	list := func(kind, meta string, items ...string) string {
		of, group := kind+"List", version(kind)
		if kind == "Secret" {
			of, group = "PartialObjectMetadataList", "meta.k8s.io/v1"
		}
		return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{%s},"items":[%s]}`, of, group, meta, strings.Join(items, ","))
	}
	for name, tc := range map[string]struct {
		answer func(kind string) string
		// err is a part of the failure; empty if what the member answers is read.
		err string
	}{
		"pages without end":        {func(kind string) string { return list(kind, `"continue":"more"`) }, "have no end"},
		"short pages without end":  {func(kind string) string { return list(kind, `"continue":"more"`, object(kind, "a", "")) }, "have no end"},
		"objects without versions": {func(kind string) string { return list(kind, ``, object(kind, "a", "")) }, ""},
		"versions that are none": {func(kind string) string {
			return list(kind, `"resourceVersion":"x"`, object(kind, "a", `,"resourceVersion":"-1"`))
		}, ""},
		"an object several times": {func(kind string) string { return list(kind, ``, object(kind, "a", ""), object(kind, "a", "")) }, ""},
		"an object that is too large": {func(kind string) string {
			return list(kind, ``, object(kind, "a", `,"labels":{"l":"`+strings.Repeat("x", 5<<20)+`"}`))
		}, "more objects than can be kept"},
		"another kind": {func(string) string { return list("Event", ``, object("Event", "a", "")) }, ""},
		"no list": {func(string) string {
			return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden"}`
		}, ""},
		"metadata that is none": {func(kind string) string {
			return list(kind, ``, strings.Replace(object(kind, "a", ""), `{"namespace"`, `[{"namespace"`, 1))
		}, ""},
		"text of the member everywhere": {func(string) string { return "<html>" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var good atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				kind := ""
				for k := range sources {
					if plural, _ := meta.UnsafeGuessKindToResource(corev1.SchemeGroupVersion.WithKind(k)); strings.HasSuffix(r.URL.Path, "/"+plural.Resource) {
						kind = k
					}
				}
				switch {
				case r.URL.Query().Get("watch") != "":
					_ = http.NewResponseController(w).Flush()
					_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}{"type":"MODIFIED","object":{"kind":"Event"}}{"type":"DELETED","object":null}{"type":"BOOKMARK"}`, object(kind, "", ""))
				case good.Load():
					_, _ = w.Write([]byte(list(kind, `"resourceVersion":"5"`, object(kind, "good", ``))))
				default:
					_, _ = w.Write([]byte(tc.answer(kind)))
				}
			}))
			t.Cleanup(server.Close)
			m, err := access.NewMember("m1", &rest.Config{Host: server.URL, QPS: -1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for kind, source := range sources {
				p := follow.Start(t.Context(), follow.Config[string]{
					Name: kind, Source: source(m), Project: func(obj runtime.Object, _ *string) (string, error) {
						o, err := meta.Accessor(obj)
						return o.GetName() + strings.Join(labelsOf(o.GetLabels()), ""), err
					},
					Size: func(s string) int { return len(s) }, MaxSize: func() int { return 1 << 20 },
				})
				t.Cleanup(p.Stop)
				if err := p.Await(t.Context()); tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
					t.Errorf("%s: %v, want %q", kind, err, tc.err)
				}
				good.Store(true)
				accesstest.Eventually(t, func() error {
					p.Retry()
					if p.Get(types.NamespacedName{Namespace: "ns", Name: "good"}) == nil {
						return fmt.Errorf("%s is not read: %w", kind, p.Failure())
					}
					return nil
				})
				good.Store(false)
				p.Stop()
			}
		})
	}
}

func labelsOf(labels map[string]string) (out []string) {
	for key, value := range labels {
		out = append(out, key, value)
	}
	return out
}
