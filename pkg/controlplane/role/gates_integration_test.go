//go:build integration

package role

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

// TestFeatureGates_AllStages starts each role that has feature gates alone, and all in one process, with the gates of
// Karmada's manifests.
func TestFeatureGates_AllStages(t *testing.T) {
	cp := controlPlane(t)
	admin := rest.CopyConfig(cp.Config)
	admin.Insecure, admin.CAData, admin.CAFile = true, nil, ""
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	etcd := "etcd-servers=" + cp.Info.Etcd
	more := map[string][]string{
		"aggregated-apiserver": {etcd},
		"search":               {etcd},
		"webhook":              {"cert-dir=" + certDir(t, cp), "tls-cert-file-name=apiserver.crt", "tls-private-key-file-name=apiserver.key"},
		"scheduler-estimator":  {"cluster-name=m1", "server-port=0"},
		"agent":                {"cluster-name=m1", "karmada-kubeconfig=" + cp.Kubeconfig},
	}
	group := map[string]string{"aggregated-apiserver": clusterv1alpha1.GroupName, "search": searchv1alpha1.GroupName}
	// settings returns flags of a role after a prefix, and the URLs of its server.
	settings := func(r Role, prefix string) (args, urls []string) {
		flags := append([]string{"feature-gates=AllAlpha=true,AllBeta=true"}, more[r.Name]...)
		if r.Serves {
			address := freeAddress(t)
			_, port, _ := net.SplitHostPort(address)
			flags = append(flags, "secure-port="+port)
			if group[r.Name] != "" {
				urls = append(urls, "https://"+address+"/apis/"+group[r.Name]+"/v1alpha1")
			}
		}
		for _, flag := range flags {
			args = append(args, prefix+flag)
		}
		return args, urls
	}
	run := func(name string, args []string, urls ...string) {
		health := freeAddress(t)
		urls = append(urls, "http://"+health+"/readyz")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runRole(t, append([]string{name, "--kubeconfig=" + cp.Kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=" + health}, args...))
			for _, url := range urls {
				testenv.Eventually(t, time.Minute, func(ctx context.Context) error { return get(ctx, client, url) })
			}
		})
	}
	var together, servers []string
	for _, r := range Table() {
		if single(r).Flags().Lookup("feature-gates") == nil {
			continue
		}
		args, urls := settings(r, "--")
		run(r.Name, args, urls...)
		if slices.Contains(allInOneRoles(), r.Name) {
			args, urls := settings(r, "--"+r.Name+".")
			together, servers = append(together, args...), append(servers, urls...)
		}
	}
	run("all-in-one", together, servers...)
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/cbor, application/json;q=0.9")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	if kind := resp.Header.Get("Content-Type"); kind == "application/cbor" {
		return fmt.Errorf("%s: %s", url, kind)
	}
	return nil
}
