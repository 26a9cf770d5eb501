//go:build kind

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	metricsServerImage = "karmada-e2e/metrics-server:test"
	burnerImage        = "karmada-e2e/burner:test"
	// burnerPort is the port of each node at which the pods of its cluster answer.
	burnerPort = "30080"
	// visitors is the number of requests to each member at a time.
	visitors = 8
)

// scratch builds a program of a module and loads an image of it alone into members.
func scratch(t *testing.T, module, pkg, tag string, members ...string) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-C", module, "-ldflags", "-s -w", "-o", filepath.Join(dir, "program"), pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY program /program\nENTRYPOINT [\"/program\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	docker(t, "build", "-q", "-t", tag, dir)
	for _, name := range members {
		cluster := strings.TrimSuffix(node(name), "-control-plane")
		if out, err := exec.Command("kind", "load", "docker-image", tag, "--name", cluster).CombinedOutput(); err != nil {
			t.Fatalf("loading %s into %s: %v\n%s", tag, name, err, out)
		}
	}
}

// serveUsage runs metrics-server in members, and the metrics adapter in the control plane.
func serveUsage(t *testing.T, members ...string) {
	t.Helper()
	scratch(t, "../metrics", "sigs.k8s.io/metrics-server/cmd/metrics-server", metricsServerImage, members...)
	for _, name := range members {
		mustWith(t, metricsServer, member(name, "apply", "-f", "-")...)
		t.Cleanup(func() { ctl(metricsServer, member(name, "delete", "--wait=false", "-f", "-")...) })
	}
	withAddon(t, "karmada-metrics-adapter")
	for _, name := range members {
		eventually(t, func() error {
			r := ctl("", "top", "nodes", "--clusters", name, "--no-headers")
			if r.code != 0 || strings.Contains(r.out, "unknown") || !strings.Contains(r.out, "%") {
				return fmt.Errorf("no usage of the nodes of %s:\n%s%s", name, r.out, r.err)
			}
			return nil
		})
	}
}

// load requests the pods of members, whichever they are, until it is ended.
func load(t *testing.T, members ...string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, name := range members {
		url := "http://" + docker(t, "inspect", "-f", "{{.NetworkSettings.Networks.kind.IPAddress}}", node(name)) + ":" + burnerPort
		for range visitors {
			group.Go(func() {
				for ctx.Err() == nil {
					if err := visit(ctx, client, url); err != nil {
						time.Sleep(100 * time.Millisecond) // there is no pod in this member yet
					}
				}
			})
		}
	}
	end = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	t.Cleanup(end)
	return end
}

func visit(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// TestAutoscaling_RealLoad scales a workload over two members by what metrics-server measures of pods that use the
// processor, from 1 to 10 and back.
func TestAutoscaling_RealLoad(t *testing.T) {
	if err := started(); err != nil {
		t.Fatal(err)
	}
	members := []string{"member1", "member2"}
	scratch(t, "../..", "./hack/burner", burnerImage, members...)
	serveUsage(t, members...)
	ns := namespace(t)
	apply(t, ns, burner, policy("burner", weighted(1, 1)), policyFor("burner-service", "{apiVersion: v1, kind: Service, name: burner}", to(members...)))
	eventually(t, is("", ns, "deploy/burner", "{.status.readyReplicas}", "1"))
	active := `{.status.conditions[?(@.type=="ScalingActive")].reason}`
	eventually(t, all(is("", ns, "fhpa/burner", active, "ValidMetricFound"), is("", ns, "fhpa/burner", "{.status.currentReplicas}", "1")))

	begun := time.Now()
	end := load(t, members...)
	eventually(t, func() error {
		if replicas, err := value("", ns, "deploy/burner", "{.spec.replicas}"); err != nil || replicas == "1" {
			return fmt.Errorf("replicas %q, %w", replicas, err)
		}
		return nil
	})
	t.Logf("from the load to the first scale-up: %.1f s", time.Since(begun).Seconds())
	eventually(t, all(
		is("", ns, "deploy/burner", "{.status.readyReplicas}", "10"),
		is("member1", ns, "deploy/burner", "{.status.readyReplicas}", "5"),
		is("member2", ns, "deploy/burner", "{.status.readyReplicas}", "5"),
	))
	t.Logf("from the load to 10 ready replicas: %.1f s", time.Since(begun).Seconds())
	eventually(t, func() error {
		out := ctl("", "top", "pods", "-n", ns, "-C", "member1,member2", "--no-headers").out // a busy member may answer late
		if strings.Count(out, "member1") < 5 || strings.Count(out, "member2") < 5 {
			return fmt.Errorf("not all pods have usage:\n%s", out)
		}
		return nil
	})
	end()
	begun = time.Now()
	eventually(t, is("", ns, "deploy/burner", "{.status.readyReplicas}", "1"))
	t.Logf("from the end of the load to 1 replica: %.1f s", time.Since(begun).Seconds())
	for _, event := range []string{"cpu resource utilization (percentage of request) above target", "All metrics below target"} {
		if out := must(t, "describe", "fhpa", "burner", "-n", ns); !strings.Contains(out, event) {
			t.Errorf("no event %q in\n%s", event, out)
		}
	}
}

// burner is a workload whose pods use five times what they request while they are under load, and its autoscaler.
const burner = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: burner}
spec:
  replicas: 1
  selector: {matchLabels: {app: burner}}
  template:
    metadata: {labels: {app: burner}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: burner
        image: ` + burnerImage + `
        imagePullPolicy: Never
        env: [{name: GOMAXPROCS, value: "2"}]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 20m}, limits: {cpu: 100m}}
---
apiVersion: v1
kind: Service
metadata: {name: burner}
spec:
  type: NodePort
  selector: {app: burner}
  ports: [{port: 8080, nodePort: ` + burnerPort + `}]
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: FederatedHPA
metadata: {name: burner}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: burner}
  minReplicas: 1
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
  behavior:
    scaleDown: {stabilizationWindowSeconds: 0}
`

// metricsServer are the objects of metrics-server, as its release has them.
const metricsServer = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-server, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:metrics-server}
rules:
- {apiGroups: [""], resources: [nodes/metrics], verbs: [get]}
- {apiGroups: [""], resources: [pods, nodes], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:metrics-server}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:metrics-server}
subjects: [{kind: ServiceAccount, name: metrics-server, namespace: kube-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-server:system:auth-delegator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: metrics-server, namespace: kube-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: metrics-server-auth-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: metrics-server, namespace: kube-system}]
---
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec:
  selector: {k8s-app: metrics-server}
  ports: [{name: https, port: 443, targetPort: https}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: metrics-server, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: metrics-server}}
  template:
    metadata: {labels: {k8s-app: metrics-server}}
    spec:
      serviceAccountName: metrics-server
      containers:
      - name: metrics-server
        image: ` + metricsServerImage + `
        imagePullPolicy: Never
        args:
        - --cert-dir=/tmp
        - --secure-port=10250
        - --kubelet-preferred-address-types=InternalIP
        - --kubelet-use-node-status-port
        - --kubelet-insecure-tls
        - --metric-resolution=15s
        ports: [{name: https, containerPort: 10250}]
        readinessProbe: {httpGet: {path: /readyz, port: https, scheme: HTTPS}, periodSeconds: 2}
        securityContext: {runAsNonRoot: true, runAsUser: 1000, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true}
        volumeMounts: [{name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp, emptyDir: {}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: kube-system, name: metrics-server}
`
