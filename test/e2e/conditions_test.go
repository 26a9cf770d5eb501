package e2e

import (
	"strings"
	"testing"
)

// TestConditions_TemplatesAreWaitedForAsOnAPlainCluster runs what pipelines run:
// kubectl's wait and rollout status, on templates.
func TestConditions_TemplatesAreWaitedForAsOnAPlainCluster(t *testing.T) {
	ns := namespace(t)
	workload := func(kind, name, spec string) string {
		return `
apiVersion: apps/v1
kind: ` + kind + `
metadata: {name: ` + name + `}
spec:
  ` + spec + `
  selector: {matchLabels: {app: ` + name + `}}
  template: {metadata: {labels: {app: ` + name + `}}, spec: {containers: [{name: main, image: "` + image + `"}]}}`
	}
	apply(t, ns, deployment("web", 2), workload("StatefulSet", "db", "replicas: 2\n  serviceName: db"), workload("DaemonSet", "each", ""),
		policyFor("divided", "{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps/v1, kind: StatefulSet}", weighted(1, 1)),
		policyFor("each", "{apiVersion: apps/v1, kind: DaemonSet}", to("member1", "member2")))
	must(t, "wait", "--for=condition=Available", "deploy/web", "-n", ns, "--timeout=60s")
	for _, object := range []string{"deploy/web", "sts/db", "ds/each"} {
		must(t, "rollout", "status", object, "-n", ns, "--timeout=60s")
	}
	must(t, "patch", "deploy", "web", "-n", ns, "--type=merge", "-p", `{"spec":{"template":{"metadata":{"annotations":{"revision":"next"}}}}}`)
	out := must(t, "rollout", "status", "deploy/web", "-n", ns, "--timeout=60s")
	if !strings.Contains(out, "successfully rolled out") {
		t.Errorf("rollout status: %s", out)
	}
	eventually(t, is("member2", ns, "deploy/web", "{.spec.template.metadata.annotations.revision}", "next"))
}
