package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// proxyReader is a user who may read through the proxy to all clusters, and nothing else.
const proxyReader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-proxy-reader}
rules:
- {apiGroups: [cluster.karmada.io], resources: [clusters/proxy], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-proxy-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-proxy-reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: e2e-proxy-reader}
`

// TestAllClusters_PathsThatAreNoResources reads paths of the control plane's API server through the proxy to all clusters:
// with the rights of the requester, not with those of the aggregated API server.
func TestAllClusters_PathsThatAreNoResources(t *testing.T) {
	namespace(t)
	mustWith(t, proxyReader, "apply", "-f", "-")
	t.Cleanup(func() { ctl(proxyReader, "delete", "-f", "-", "--ignore-not-found") })
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "e2e-proxy-reader", Groups: []string{"system:authenticated"}}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/version": {http.StatusOK, "gitVersion"},
		"/metrics": {http.StatusForbidden, `cannot get path`},
	} {
		eventually(t, func() error { // rights take effect with a delay
			resp, err := client.Get(cfg.Host + "/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy" + path)
			if err != nil {
				return err
			}
			defer resp.Body.Close() //nolint:errcheck // it was read
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			if resp.StatusCode != want.code || !strings.Contains(string(body), want.text) {
				return fmt.Errorf("%s: %d\n%s", path, resp.StatusCode, body)
			}
			return nil
		})
	}
}
