package aggregated

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

const contractDir = "../../../test/contract/testdata/aggregated/"

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// raw is a GET of a path as a user.
func (r *runningServer) raw(t *testing.T, token, path string, header http.Header, into any) *http.Response {
	t.Helper()
	transport, err := rest.TransportFor(r.config(token))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	answer, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if into != nil {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			t.Fatalf("GET %s: %s: %v", path, answer.Status, err)
		}
	}
	return answer
}

// bare removes descriptions, which the contract does not pin, and defaults, which
// OpenAPI v2 is served without.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if _, text := value.(string); key == "default" || key == "description" && text {
				delete(v, key)
				continue
			}
			v[key] = bare(value)
		}
	case []any:
		for i := range v {
			v[i] = bare(v[i])
		}
	}
	return v
}

func TestServer_ServesTheContract(t *testing.T) {
	etcd, _ := startEtcd(t, t.TempDir())
	s := startServer(t, etcd, newControlPlane(t), nil)
	var got struct {
		Definitions map[string]any            `json:"definitions"`
		Paths       map[string]map[string]any `json:"paths"`
	}
	s.raw(t, "admin", "/openapi/v2", http.Header{"Accept": {"application/json"}}, &got)

	t.Run("definitions", func(t *testing.T) {
		var all map[string]any
		readJSON(t, contractDir+"definitions.json", &all)
		want := map[string]any{}
		for name, d := range all {
			if strings.Contains(name, ".apis.cluster.") {
				want[name] = bare(d)
			}
		}
		ours := map[string]any{}
		for name, d := range got.Definitions {
			if strings.Contains(name, "karmada") {
				ours[name] = bare(d)
			}
		}
		if diff := cmp.Diff(want, ours); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("paths", func(t *testing.T) {
		var all map[string][]string
		readJSON(t, contractDir+"paths.json", &all)
		want, ours := map[string][]string{}, map[string][]string{}
		for path, methods := range all {
			if strings.HasPrefix(path, "/apis/cluster.karmada.io") {
				want[path] = methods
			}
		}
		for path, methods := range got.Paths {
			if !strings.HasPrefix(path, "/apis/cluster.karmada.io") {
				continue
			}
			for method := range methods {
				if method != "parameters" {
					ours[path] = append(ours[path], method)
				}
			}
			slices.Sort(ours[path])
		}
		if diff := cmp.Diff(want, ours); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("discovery", func(t *testing.T) {
		var list struct {
			Resources []struct {
				Name, SingularName, Kind string
				Namespaced               bool
				ShortNames, Verbs        []string
			}
		}
		s.raw(t, "admin", "/apis/cluster.karmada.io/v1alpha1", nil, &list)
		var lines []string
		for _, r := range list.Resources {
			slices.Sort(r.Verbs)
			lines = append(lines, strings.Join([]string{r.Name, r.SingularName, r.Kind, strings.Join(r.ShortNames, "+"), strings.Join(r.Verbs, "+")}, " "))
			if r.Namespaced {
				t.Errorf("%s is namespaced", r.Name)
			}
		}
		want := []string{
			"clusters cluster Cluster  create+delete+deletecollection+get+list+patch+update+watch",
			"clusters/proxy  ClusterProxyOptions  create+delete+get+patch+update",
			"clusters/status  Cluster  get+patch+update",
		}
		slices.Sort(lines)
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Error(diff)
		}
	})
}
