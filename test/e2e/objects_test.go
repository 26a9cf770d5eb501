package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGuestbook_CustomResourcesAndOverrides applies samples/guestbook in the order of its README.
func TestGuestbook_CustomResourcesAndOverrides(t *testing.T) {
	ns := namespace(t)
	sample := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "samples", "guestbook", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	apply(t, ns, sample("guestbooks-crd.yaml"), sample("guestbooks-clusterpropagationpolicy.yaml"))
	t.Cleanup(func() {
		ctl("", "delete", "crd", "guestbooks.webapp.my.domain", "--ignore-not-found")
		ctl("", "delete", "cpp", "example-policy", "--ignore-not-found")
	})
	eventually(t, is("member1", "default", "crd/guestbooks.webapp.my.domain", `{.status.conditions[?(@.type=="Established")].status}`, "True"))

	eventually(t, func() error {
		r := ctl(sample("guestbook.yaml")+"---\n"+sample("guestbooks-propagationpolicy.yaml"), "apply", "-n", ns, "-f", "-")
		if r.code != 0 {
			return fmt.Errorf("%s%s", r.out, r.err)
		}
		return nil
	})
	eventually(t, is("member1", ns, "guestbooks/guestbook-sample", "{.spec.size}", "2"))

	apply(t, ns, sample("guestbooks-overridepolicy.yaml"))
	eventually(t, all(
		is("member1", ns, "guestbooks/guestbook-sample", "{.spec.size}", "4"),
		is("member1", ns, "guestbooks/guestbook-sample", "{.metadata.annotations.OverridePolicy}", "test"),
		is("", ns, "guestbooks/guestbook-sample", "{.spec.size}", "2"),
	))
	if out := must(t, "get", "guestbooks", "guestbook-sample", "-n", ns, "-s", "members", "-C", "member1", "-o", "yaml"); !strings.Contains(out, "size: 4") {
		t.Errorf("the last command of the README prints\n%s", out)
	}
}

// i
func TestDescribe_ShowsTheWayOfATemplate(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, deployment("nginx", 2), policy("nginx", weighted(1, 1)))
	eventually(t, func() error {
		out := must(t, "describe", "deploy", "nginx", "-n", ns)
		for _, want := range []string{
			"ApplyPolicySucceed", "Apply policy(" + ns + "/nginx) succeed",
			"ScheduleBindingSucceed", "Binding has been scheduled successfully. Result: {member1:1, member2:1}",
			"SyncSucceed", "Successfully applied resource(" + ns + "/nginx) to cluster member1",
		} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("describe does not show %q:\n%s", want, out)
			}
		}
		return appliedEvents(out, ns+"/nginx", "member1", "member2")
	})
	eventually(t, shows(row{"NAME": "nginx", "CLUSTER": "Karmada", "READY": "2/2"}, "get", "deploy", "-n", ns))
}

// Kinds that the interpreter knows, each carried there and its status back.
func TestKinds_StatusComesBack(t *testing.T) {
	ns := namespace(t)
	version, err := value("", "", "cluster/member1", "{.status.kubernetesVersion}")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, ns, `
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      # Every node of a real cluster has this image.
      containers: [{name: main, image: "registry.k8s.io/kube-proxy:`+version+`", command: [kube-proxy, --version]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "`+image+`"}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each}
spec:
  selector: {matchLabels: {app: each}}
  template: {metadata: {labels: {app: each}}, spec: {containers: [{name: main, image: "`+image+`"}]}}
`, policyFor("everything", `{apiVersion: batch/v1, kind: Job}, {apiVersion: v1, kind: ConfigMap, name: settings},
    {apiVersion: v1, kind: Service}, {apiVersion: apps/v1, kind: StatefulSet}, {apiVersion: apps/v1, kind: DaemonSet}`, to("member1", "member2")))
	eventually(t, is("", ns, "job/once", "{.status.succeeded}", "2"))
	eventually(t, is("", ns, "sts/db", "{.status.readyReplicas}", "2"))
	eventually(t, is("", ns, "ds/each", "{.status.numberReady}", "2"))
	eventually(t, is("member2", ns, "cm/settings", "{.data.a}", "b"))
	eventually(t, is("member1", ns, "svc/web", "{.spec.ports[0].port}", "80"))
	for _, rb := range []string{"once-job", "settings-configmap", "web-service", "db-statefulset", "each-daemonset"} {
		eventually(t, is("", ns, "rb/"+rb, `{.status.conditions[?(@.type=="FullyApplied")].status}`, "True"))
	}
}

// appliedEvents returns an error unless the events of success in a text, which may name several clusters each, name
// every cluster for an object.
func appliedEvents(text, object string, clusters ...string) error {
	var named []string
	for line := range strings.Lines(text) {
		if _, list, ok := strings.Cut(line, "Successfully applied resource("+object+") to cluster "); ok {
			named = append(named, strings.Split(strings.TrimSpace(list), ", ")...)
		}
	}
	for _, cluster := range clusters {
		if !slices.Contains(named, cluster) {
			return fmt.Errorf("no event names cluster %s:\n%s", cluster, text)
		}
	}
	return nil
}
