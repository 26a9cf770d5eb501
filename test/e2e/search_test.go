package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cacheWorkloads applies the sample of a registry, and waits until it is Ready.
func cacheWorkloads(t *testing.T) {
	t.Helper()
	under.serveSearch(t)
	registry, err := os.ReadFile(filepath.Join("..", "..", "samples", "search", "resourceregistry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mustWith(t, string(registry), "apply", "-f", "-")
	t.Cleanup(func() { ctl("", "delete", "resourceregistry", "workloads", "--ignore-not-found") })
	must(t, "wait", "--for=condition=Ready", "resourceregistry/workloads", "--timeout=60s")
}

// TestSearch_AnswersForAllClusters applies the sample, waits for it, and reads the objects of both members with one request.
func TestSearch_AnswersForAllClusters(t *testing.T) {
	ns := namespace(t)
	cacheWorkloads(t)
	apply(t, ns, deployment("web", 2), policy("web", ""))

	const cache = "/apis/search.karmada.io/v1alpha1/search/cache"
	eventually(t, func() error {
		code, body, warnings := planeAnswer(t, cache+"/apis/apps/v1/namespaces/"+ns+"/deployments/web")
		for _, name := range []string{"member1", "member2"} {
			if !strings.Contains(body, `"resource.karmada.io/cached-from-cluster":"`+name+`"`) {
				return fmt.Errorf("the object of %s is missing: %d %v\n%s", name, code, warnings, body)
			}
		}
		return nil
	})
	const proxy = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"
	eventually(t, func() error {
		out := must(t, "get", "deployments", "-n", ns, "--cached", "--no-headers")
		if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "member1") || !strings.Contains(lines[1], "2/2") {
			return fmt.Errorf("get --cached:\n%s", out)
		}
		return nil
	})
	if r := ctl("", "get", "services", "--cached"); r.code == 0 || !strings.Contains(r.err, "kind: ResourceRegistry") {
		t.Errorf("a kind that is not cached: %d\n%s%s", r.code, r.out, r.err)
	}
	if out := must(t, "search", "kubeconfig"); !strings.Contains(out, proxy+"\n") || !strings.Contains(out, "current-context: fleet\n") || !strings.Contains(out, "name: fleet-member2\n") {
		t.Errorf("search kubeconfig:\n%s", out)
	}
	if code, body, _ := planeAnswer(t, proxy+"/api/v1"); code != 200 || !strings.Contains(body, `"pods/exec"`) {
		t.Errorf("discovery through the proxy: %d\n%s", code, body)
	}
	t.Run("a ServiceAccount", func(t *testing.T) { testSearchAccount(t, ns, proxy) })
	// The registry ends, and with it what is cached.
	must(t, "delete", "resourceregistry", "workloads")
	eventually(t, func() error {
		if _, body, _ := planeAnswer(t, cache+"/apis/apps/v1/namespaces/"+ns+"/deployments"); strings.Contains(body, `"web"`) {
			return fmt.Errorf("it is still cached:\n%s", body)
		}
		return nil
	})
}

// testSearchAccount applies the objects of docs/search.md that give a ServiceAccount rights, and reads, logs, executes and deletes
// with its token.
func testSearchAccount(t *testing.T, ns, proxy string) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "search.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), "\n## Who may read and write\n")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```\n")
	mustWith(t, strings.ReplaceAll(text, "namespace: team", "namespace: "+ns), "apply", "-f", "-")
	t.Cleanup(func() { ctl("", "delete", "clusterrole,clusterrolebinding", "search-user", "--ignore-not-found") })
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(must(t, "create", "token", "robot", "-n", ns))
	at := func(path string) *corev1client.CoreV1Client {
		as := rest.AnonymousClientConfig(cfg)
		as.BearerToken, as.Host = token, cfg.Host+path
		c, err := corev1client.NewForConfig(as)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	fleet, member1 := at(proxy), at("/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy")
	pods := fleet.Pods(ns)
	var pod string
	eventually(t, func() error {
		list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "status.phase=Running"})
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			if p.Annotations["resource.karmada.io/cached-from-cluster"] == "member1" {
				pod = p.Name
				return nil
			}
		}
		return fmt.Errorf("no running pod in member1, of %d", len(list.Items))
	})
	eventually(t, func() error { // rights take effect with a delay
		_, err := member1.Pods(ns).Get(t.Context(), pod, metav1.GetOptions{})
		return err
	})
	if err := pods.GetLogs(pod, &corev1.PodLogOptions{}).Do(t.Context()).Error(); err != nil && !strings.Contains(err.Error(), "simulated pods have no logs") {
		t.Errorf("logs: %v", err)
	}
	err = fleet.RESTClient().Post().Namespace(ns).Resource("pods").Name(pod).SubResource("exec").Param("command", "true").Do(t.Context()).Error()
	if err == nil || !strings.Contains(err.Error(), "simulated pods have no ") && !strings.Contains(err.Error(), "Upgrade request required") {
		t.Errorf("exec: %v", err)
	}
	if err := pods.Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete: %v", err)
	}
	for where, c := range map[string]*corev1client.CoreV1Client{"all clusters": fleet, "member1": member1} {
		if _, err := c.Pods("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("pods of another namespace of %s: %v", where, err)
		}
	}
}

// planeAnswer returns what the control plane answers to a path, with the warnings.
func planeAnswer(t *testing.T, path string) (code int, body string, warnings []string) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(cfg.Host + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header.Values("Warning")
}
