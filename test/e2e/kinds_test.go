//go:build !kind

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	dividedKinds = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rs}
spec:
  replicas: 4
  selector: {matchLabels: {app: rs}}
  template: {metadata: {labels: {app: rs}}, spec: {containers: [{name: main, image: "busybox:1"}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: sts}
spec:
  replicas: 4
  serviceName: sts
  selector: {matchLabels: {app: sts}}
  template: {metadata: {labels: {app: sts}}, spec: {containers: [{name: main, image: "busybox:1"}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  parallelism: 4
  completions: 4
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "busybox:1"}]}}
`
	duplicatedKinds = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: ds}}
  template: {metadata: {labels: {app: ds}}, spec: {containers: [{name: main, image: "busybox:1"}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec: {containers: [{name: main, image: "busybox:1"}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "busybox:1"}]}}}}
---
apiVersion: v1
kind: Service
metadata: {name: svc}
spec: {type: LoadBalancer, selector: {app: dep}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ing}
spec: {defaultBackend: {service: {name: svc, port: {number: 80}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: pdb}
spec: {minAvailable: 1, selector: {matchLabels: {app: dep}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: hpa}
spec:
  minReplicas: 1
  maxReplicas: 9
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}
  behavior: {scaleDown: {selectPolicy: Disabled}} # pods without load: the members would remove the replicas of drift
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {a: b}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: pvc}
spec: {storageClassName: manual, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME}
spec:
  storageClassName: manual
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /tmp/NAME}
  claimRef: {namespace: NAME, name: pvc}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: NAME}
spec:
  resourceSelectors: [{apiVersion: v1, kind: PersistentVolume, name: NAME}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
`
)

// Every kind with built-in rules is propagated to two members: replicas are divided,
// status is aggregated, health is reported. Fields that the members own are retained,
// and once all objects are stable no controller writes them.
func TestKinds_PropagateAndBecomeStable(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("dep", 4), dividedKinds, policyFor("divided", `{apiVersion: apps/v1, kind: Deployment, name: dep},
    {apiVersion: apps/v1, kind: ReplicaSet, name: rs}, {apiVersion: apps/v1, kind: StatefulSet, name: sts}, {apiVersion: batch/v1, kind: Job, name: job}`, weighted(1, 1)))
	apply(t, ns, strings.Replace(deployment("scaled", 1), "labels: {app: scaled}", `labels: {app: scaled, resourcetemplate.karmada.io/retain-replicas: "true"}`, 1),
		duplicatedKinds, policyFor("duplicated", `{apiVersion: apps/v1, kind: Deployment, name: scaled}, {apiVersion: apps/v1, kind: DaemonSet}, {apiVersion: v1, kind: Pod},
    {apiVersion: batch/v1, kind: CronJob}, {apiVersion: v1, kind: Service}, {apiVersion: networking.k8s.io/v1, kind: Ingress}, {apiVersion: policy/v1, kind: PodDisruptionBudget},
    {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}, {apiVersion: v1, kind: ServiceAccount, name: sa}, {apiVersion: v1, kind: Secret}, {apiVersion: v1, kind: PersistentVolumeClaim}`,
			to("member1", "member2")))
	t.Cleanup(func() {
		ctl("", "delete", "pv", ns, "--ignore-not-found", "--wait=false")
		ctl("", "delete", "cpp", ns, "--ignore-not-found")
	})
	apply(t, ns, strings.ReplaceAll(volume, "NAME", ns))

	for _, m := range []string{"member1", "member2"} {
		for object, path := range map[string]string{
			"deploy/dep": "{.spec.replicas}", "rs/rs": "{.spec.replicas}", "sts/sts": "{.spec.replicas}", "job/job": "{.spec.parallelism}/{.spec.completions}",
		} {
			eventually(t, is(m, ns, object, path, map[bool]string{true: "2/2", false: "2"}[object == "job/job"]))
		}
		eventually(t, is(m, ns, "svc/svc", "{.metadata.name}", "svc"))
		eventually(t, is(m, ns, "ing/ing", "{.metadata.name}", "ing"))
		address := "10.0.0." + strings.TrimPrefix(m, "member")
		status := `{"status":{"loadBalancer":{"ingress":[{"ip":"` + address + `"}]}}}`
		must(t, member(m, "patch", "svc", "svc", "-n", ns, "--subresource=status", "--type=merge", "-p", status)...)
		must(t, member(m, "patch", "ing", "ing", "-n", ns, "--subresource=status", "--type=merge", "-p", status)...)
		drift(t, m, ns)
	}
	for _, want := range []struct{ object, path, value string }{
		{"deploy/dep", "{.status.readyReplicas}", "4"},
		{"rs/rs", "{.status.readyReplicas}", "4"},
		{"sts/sts", "{.status.readyReplicas}", "4"},
		{"job/job", "{.status.succeeded}", "4"},
		{"job/job", `{.status.conditions[?(@.type=="Complete")].status}`, "True"},
		{"ds/ds", "{.status.numberReady}", "2"},
		{"pod/pod", "{.status.phase}", "Running"},
		{"svc/svc", "{.status.loadBalancer.ingress[*].ip}", "10.0.0.1 10.0.0.2"},
		{"ing/ing", "{.status.loadBalancer.ingress[*].ip}", "10.0.0.1 10.0.0.2"},
		{"pdb/pdb", "{.status.expectedPods}/{.status.currentHealthy}", "4/4"},
		{"pvc/pvc", "{.status.phase}", "Bound"},
		{"pv/" + ns, "{.status.phase}", "Bound"},
	} {
		eventually(t, is("", ns, want.object, want.path, want.value))
	}
	eventually(t, func() error {
		generations, err := value("", ns, "deploy/dep", "{.metadata.generation} {.status.observedGeneration}")
		if now, observed, _ := strings.Cut(generations, " "); err == nil && now != observed {
			err = fmt.Errorf("generation %s, observed %s", now, observed)
		}
		return err
	})
	for _, rb := range []string{
		"dep-deployment", "rs-replicaset", "sts-statefulset", "job-job", "ds-daemonset", "pod-pod", "cron-cronjob", "svc-service", "ing-ingress",
		"pdb-poddisruptionbudget", "hpa-horizontalpodautoscaler", "sa-serviceaccount", "secret-secret", "pvc-persistentvolumeclaim", "scaled-deployment",
	} {
		eventually(t, is("", ns, "rb/"+rb, "{.status.aggregatedStatus[*].health}", "Healthy Healthy"))
		eventually(t, is("", ns, "rb/"+rb, `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"))
	}
	atRest(t)
	for _, m := range []string{"member1", "member2"} {
		if err := all(
			is(m, ns, "deploy/scaled", "{.spec.replicas}", "5"),
			is(m, ns, "sa/sa", "{.imagePullSecrets[*].name}", "mine"),
			is(m, ns, "pvc/pvc", "{.spec.volumeName}", ns),
		)(); err != nil {
			t.Error(err)
		}
	}
}

// drift changes what the member owns: an autoscaler's number of replicas, a pull
// secret. The address of its Service and the volume of its claim it has itself.
func drift(t *testing.T, m, ns string) {
	t.Helper()
	eventually(t, is(m, ns, "deploy/scaled", "{.metadata.name}", "scaled"))
	must(t, member(m, "patch", "deploy", "scaled", "-n", ns, "-p", `{"spec":{"replicas":5}}`)...)
	eventually(t, is(m, ns, "sa/sa", "{.metadata.name}", "sa"))
	must(t, member(m, "patch", "sa", "sa", "-n", ns, "--type=merge", "-p", `{"imagePullSecrets":[{"name":"mine"}]}`)...)
}

// atRest waits until none of the clusters is written to for as long as the control
// plane takes to probe each member twice.
func atRest(t *testing.T) {
	t.Helper()
	const probes, limit = 2, 3 * time.Minute
	servers := []string{"karmada-apiserver", "member1", "member2"}
	deadline := time.Now().Add(limit)
	begin := counts(t, servers)
	var seen []string
	for {
		time.Sleep(time.Second)
		now := counts(t, servers)
		news := now.writesSince(begin)
		seen = append(seen, news...)
		switch {
		case len(news) == 0 && now.probedSince(begin) >= probes:
			return
		case time.Now().After(deadline):
			t.Fatalf("in %s there was no rest: %s", limit, strings.Join(seen, "; "))
		case len(news) > 0:
			begin = now
		}
	}
}

// count is what an API server has done: writes by resource, and probes.
type count struct {
	writes map[string]float64
	probes float64
}

type countsByServer map[string]count

func (c countsByServer) writesSince(before countsByServer) []string {
	var out []string
	for server, now := range c {
		for what, n := range now.writes {
			if d := n - before[server].writes[what]; d > 0 {
				out = append(out, fmt.Sprintf("%s: %v times %s", server, d, what))
			}
		}
	}
	return out
}

// probedSince returns how often the member that was probed least was.
func (c countsByServer) probedSince(before countsByServer) float64 {
	least := -1.0
	for server, now := range c {
		if d := now.probes - before[server].probes; strings.HasPrefix(server, "member") && (least < 0 || d < least) {
			least = d
		}
	}
	return least
}

func counts(t *testing.T, servers []string) countsByServer {
	t.Helper()
	out := countsByServer{}
	for _, server := range servers {
		c, err := countOf(server)
		if err != nil {
			t.Fatalf("reading the metrics of %s: %v", server, err)
		}
		out[server] = c
	}
	return out
}

func countOf(context string) (count, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return count{}, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return count{}, err
	}
	defer client.CloseIdleConnections()
	response, err := client.Get(strings.TrimSuffix(config.Host, "/") + "/metrics")
	if err != nil {
		return count{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return count{}, errors.New(response.Status)
	}
	return parseCounts(response.Body)
}

// parseCounts adds up requests. Leases, events and reviews are the clusters' own
// heartbeat, and so is the status of simulated nodes.
func parseCounts(r io.Reader) (count, error) {
	c := count{writes: map[string]float64{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		labels, found := strings.CutPrefix(line, "apiserver_request_total{")
		if !found {
			continue
		}
		labels, number, _ := strings.Cut(labels, "} ")
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return c, fmt.Errorf("reading %q: %w", line, err)
		}
		label := func(name string) string {
			_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
		switch resource := label("resource"); {
		case strings.HasPrefix(label("subresource"), "/readyz"):
			c.probes += n
		case strings.Contains("GET LIST WATCH CONNECT OPTIONS", label("verb")),
			resource == "" || resource == "leases" || resource == "events" || resource == "nodes" || strings.HasSuffix(resource, "reviews"):
		default:
			c.writes[label("verb")+" "+resource+"/"+label("subresource")] += n
		}
	}
	return c, lines.Err()
}
