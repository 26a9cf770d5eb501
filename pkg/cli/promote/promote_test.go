package promote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	memberaccess "github.com/karmada-toolkit/karmada/pkg/member/access"
)

// getter is access to a member with the types of the control plane.
type getter struct {
	genericclioptions.RESTClientGetter
	config *rest.Config
	mapper meta.RESTMapper
}

func (g getter) ToRESTConfig() (*rest.Config, error)    { return g.config, nil }
func (g getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// TestRead_LyingMember asks for a Deployment and gets a ClusterRoleBinding.
func TestRead_LyingMember(t *testing.T) {
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"web"}}`
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}, meta.RESTScopeRoot)
	for name, tc := range map[string]struct {
		answer, selector string
		args             []string
		ok               bool
	}{
		"the Deployment": {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"}}`, "", []string{"deployments", "web"}, true},
		"another kind":   {role, "", []string{"deployments", "web"}, false},
		"another name":   {`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"evil"}}`, "", []string{"deployments/web"}, false},
		"a list with another kind": {
			`{"apiVersion":"apps/v1","kind":"DeploymentList","items":[` + role + `]}`, "app=web", []string{"deployments"}, false,
		},
		"a generic list with another kind": {`{"apiVersion":"v1","kind":"List","items":[` + role + `]}`, "app=web", []string{"deployments"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, tc.answer)
			}))
			t.Cleanup(server.Close)
			types := memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}})
			config := memberaccess.Guard(&rest.Config{Host: server.URL})
			member := getter{genericclioptions.NewTestConfigFlags().WithDiscoveryClient(types), config, mapper}
			f := flags{selector: tc.selector}
			f.Cluster, f.Namespace = "m1", "default"
			objects, err := read(t.Context(), member, f, tc.args)
			if tc.ok != (err == nil) || !tc.ok && !strings.Contains(err.Error(), "was refused") {
				t.Errorf("got %v, %v", objects, err)
			}
		})
	}
}
